//! Responses of the cloud.

use serde_json::{Map, Value, json};

/// A response before it is on the wire.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<Value>,
    /// Text in place of JSON: logs.
    pub(crate) text: Option<String>,
}

impl Answer {
    /// A response without a body.
    pub(crate) fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: None, text: None }
    }

    pub(crate) fn json(status: u16, body: Value) -> Self {
        Self { body: Some(body), ..Self::empty(status) }
    }

    pub(crate) fn text(text: String) -> Self {
        Self { text: Some(text), ..Self::empty(200) }
    }

    /// An error as Resource Manager writes it.
    pub(crate) fn error(status: u16, code: &str, message: impl Into<String>) -> Self {
        Self::json(status, json!({"error": {"code": code, "message": message.into()}}))
    }

    pub(crate) fn list(items: Vec<Value>) -> Self {
        Self::json(200, Value::Object(Map::from_iter([("value".to_owned(), Value::Array(items))])))
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The error in the body.
    pub(crate) fn reason(&self) -> Value {
        self.body.as_ref().map_or(Value::Null, |body| body["error"].clone())
    }
}
