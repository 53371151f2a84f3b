//! The location of a deployment's log.

use cudock_base::Secret;
use serde_json::Value;

/// A part of a deployment's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogPart {
    Text(String),
    /// A file at an address that grants access by itself.
    File {
        name: String,
        address: Secret,
    },
    /// A stream at an address that wants its own token. Each line is a JSON object with `TimeStamp` and `Log`.
    Stream {
        address: String,
        token: Secret,
    },
}

impl LogPart {
    /// The text at a JSON pointer, or the response itself if it is text.
    pub(crate) fn text(response: &Value, pointer: &str) -> Option<Self> {
        let text = response.pointer(pointer).or(Some(response)).and_then(Value::as_str)?;
        Some(Self::Text(text.to_owned()))
    }
}
