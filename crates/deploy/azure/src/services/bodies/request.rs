//! Common parts of the bodies of all services.

use std::collections::BTreeMap;
use std::time::Duration;

use cudock_http::Method;
use serde::Serialize;
use serde_json::{Value, json};

use crate::call::{Body, Call, Plane};
use crate::services::bodies::names::Tags;
use crate::services::error::TranslationError;

/// A part of a request as JSON.
pub(crate) fn to_json<T: Serialize>(value: &T) -> Result<Value, TranslationError> {
    serde_json::to_value(value)
        .map_err(|error| TranslationError::new(format!("cannot write the request: {error}")))
}

pub(crate) fn body<T: Serialize>(value: &T) -> Result<Body, TranslationError> {
    to_json(value).map(Body::new)
}

/// A request to the resource manager.
pub(crate) fn call(method: Method, id: &str, version: &str, body: Option<Body>) -> Call {
    Call { method, plane: Plane::ResourceManager, path: format!("{id}?api-version={version}"), body }
}

pub(crate) fn get(id: &str, version: &str) -> Call {
    call(Method::GET, id, version, None)
}

pub(crate) fn put(id: &str, version: &str, body: Body) -> Call {
    call(Method::PUT, id, version, Some(body))
}

pub(crate) fn delete(id: &str, version: &str) -> Call {
    call(Method::DELETE, id, version, None)
}

/// A resource of its own, as the body of a PUT.
#[derive(Debug, Serialize)]
pub(crate) struct ResourceBody<P> {
    pub(crate) location: String,
    pub(crate) tags: Tags,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) identity: Option<Identity>,
    pub(crate) properties: P,
}

/// The identity of a resource.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Identity {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    /// Their values are empty objects.
    user_assigned_identities: BTreeMap<String, Value>,
}

/// An empty object.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Empty {}

impl Identity {
    pub(crate) fn system() -> Self {
        Self { kind: "SystemAssigned", user_assigned_identities: BTreeMap::new() }
    }

    pub(crate) fn user(id: &str) -> Self {
        Self { kind: "UserAssigned", user_assigned_identities: BTreeMap::from([(id.to_owned(), json!({}))]) }
    }

    /// An own identity and an existing one, as virtual machines spell it.
    pub(crate) fn system_and_user(id: &str) -> Self {
        Self { kind: "SystemAssigned, UserAssigned", ..Self::user(id) }
    }
}

/// A duration in ISO 8601.
pub(crate) fn iso_8601(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds > 0 && seconds.is_multiple_of(3600) {
        format!("PT{}H", seconds / 3600)
    } else if seconds > 0 && seconds.is_multiple_of(60) {
        format!("PT{}M", seconds / 60)
    } else {
        format!("PT{seconds}S")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_in_the_largest_whole_unit() {
        for (seconds, text) in
            [(0, "PT0S"), (59, "PT59S"), (60, "PT1M"), (90, "PT90S"), (7200, "PT2H"), (90000, "PT25H")]
        {
            assert_eq!(iso_8601(Duration::from_secs(seconds)), text);
        }
    }
}
