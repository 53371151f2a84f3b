//! Whether a client wants JSON, by its `Accept` header (RFC 9110, 12.5.1).

use hyper::header::{self, HeaderMap};

/// Whether a client takes JSON and prefers nothing else. Only the answers to such requests can be joined and split; the
/// others are passed on as they come, and those who take a stream of events get it as one.
pub(crate) fn prefers_json(headers: &HeaderMap) -> bool {
    let (mut json, mut others, mut is_any) = (0.0_f32, 0.0_f32, false);
    for value in headers.get_all(header::ACCEPT) {
        let Ok(value) = value.to_str() else { return false };
        for range in value.split(',').map(str::trim).filter(|range| !range.is_empty()) {
            is_any = true;
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default();
            let quality = parts.find_map(quality).unwrap_or(1.0);
            match kind {
                kind if is_stream(kind) && quality > 0.0 => return false,
                "*/*" | "application/*" => json = json.max(quality),
                kind if is_json(kind) => json = json.max(quality),
                _ => others = others.max(quality),
            }
        }
    }
    !is_any || (json > 0.0 && json >= others)
}

/// The quality of a media range; what is not a number counts as none.
fn quality(parameter: &str) -> Option<f32> {
    let (name, value) = parameter.split_once('=')?;
    name.trim().eq_ignore_ascii_case("q").then(|| value.trim().parse().unwrap_or(0.0))
}

/// Whether a media type is JSON.
pub(crate) fn is_json(kind: &str) -> bool {
    let suffix = kind.len().checked_sub("+json".len()).and_then(|at| kind.get(at..));
    kind.eq_ignore_ascii_case("application/json")
        || kind.eq_ignore_ascii_case("text/json")
        || suffix.is_some_and(|suffix| suffix.eq_ignore_ascii_case("+json"))
}

/// Whether a media type is read part by part.
fn is_stream(kind: &str) -> bool {
    ["text/event-stream", "application/x-ndjson", "application/jsonl", "application/json-seq"]
        .iter()
        .any(|stream| kind.eq_ignore_ascii_case(stream))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_prefer_json_unless_they_name_something_better_or_a_stream() {
        for (accept, expected) in [
            (&[][..], true),
            (&[""], true),
            (&["*/*"], true),
            (&["application/json"], true),
            (&["Application/JSON; q=0.5"], true),
            (&["application/json, text/plain, */*"], true),
            (&["application/vnd.api+json"], true),
            (&["text/csv;q=0.5, application/*"], true),
            (&["text/csv", "application/json"], true),
            (&["text/csv"], false),
            (&["text/csv, application/json;q=0.9"], false),
            (&["text/html,application/xml;q=0.9,*/*;q=0.8"], false),
            (&["application/json;q=0"], false),
            (&["application/json;q=high"], false),
            (&["text/event-stream"], false),
            (&["application/json, text/event-stream"], false),
            (&["*/*", "Text/Event-Stream;q=0.1"], false),
            (&["*/*, text/event-stream;q=0"], true),
            (&["application/octet-stream"], false),
        ] {
            let mut headers = HeaderMap::new();
            for value in accept {
                headers.append(header::ACCEPT, value.parse().unwrap());
            }
            assert_eq!(prefers_json(&headers), expected, "{accept:?}");
        }
    }
}
