//! Suggestions for unknown names in requests.

use cudock_base::text::suggest::closest;
use cudock_base::text::truncate;

/// The end of a message about an unknown name: the closest name, or else all names.
pub(crate) fn alternatives<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str, IntoIter: Clone>,
) -> String {
    let candidates = candidates.into_iter();
    if let Some(candidate) = closest(name, candidates.clone()) {
        return format!("; did you mean `{candidate}`?");
    }
    let all: Vec<String> = candidates.map(|candidate| format!("`{candidate}`")).collect();
    format!("; expected {}", all.join(", "))
}

/// A name from a request, truncated for a message.
pub(crate) fn truncated(name: &str) -> String {
    truncate(name, 60)
}
