//! Forms and queries.

use cudock_base::text::percent;

/// The fields of a form or a query.
pub(crate) fn fields(text: &str) -> Vec<(String, String)> {
    text.split('&')
        .filter_map(|field| field.split_once('='))
        .map(|(name, value)| {
            let decode = |text: &str| percent::decode(&text.replace('+', " ")).unwrap_or_default();
            (decode(name), decode(value))
        })
        .collect()
}
