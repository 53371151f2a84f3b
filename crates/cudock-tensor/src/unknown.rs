//! Unknown names in requests, as error messages show them.

use cudock_base::suggest::closest;
use cudock_base::text::truncate;

/// The end of a message about an unknown name: the name that was probably meant, or else every name there is.
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

/// A name from a request, short enough for a message.
pub(crate) fn shown(name: &str) -> String {
    truncate(name, 60)
}
