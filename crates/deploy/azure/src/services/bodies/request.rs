//! Common parts of the bodies of all services.

use std::collections::BTreeMap;
use std::time::Duration;

use cudock_http::Method;
use serde::Serialize;
use serde_json::{Value, json};

use crate::call::{Body, Call, Plane};
use crate::services::bodies::names::Tags;
use crate::spec::{DeploymentSpec, RegistryAccess};

/// The body of a request, without the fields that are null: an optional field is left out.
pub(crate) fn body(mut value: Value) -> Body {
    remove_nulls(&mut value);
    Body::new(value)
}

fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(remove_nulls);
        }
        Value::Array(entries) => entries.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}

/// A list as an optional field.
pub(crate) fn non_empty<T>(entries: impl IntoIterator<Item = T>) -> Option<Vec<T>> {
    Some(entries.into_iter().collect()).filter(|entries: &Vec<T>| !entries.is_empty())
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

/// A resource in the region of a deployment, as the body of a PUT.
pub(crate) fn resource(spec: &DeploymentSpec, identity: Option<&Identity>, properties: &Value) -> Value {
    json!({"location": spec.region, "tags": Tags::new(spec), "identity": identity, "properties": properties})
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

impl Identity {
    pub(crate) fn system() -> Self {
        Self { kind: "SystemAssigned", user_assigned_identities: BTreeMap::new() }
    }

    pub(crate) fn user(id: &str) -> Self {
        Self { kind: "UserAssigned", user_assigned_identities: BTreeMap::from([(id.to_owned(), json!({}))]) }
    }

    /// The identity that pulls the image, if one does.
    pub(crate) fn of_registry(spec: &DeploymentSpec) -> Option<Self> {
        match &spec.registry {
            Some(RegistryAccess::Identity { identity, .. }) => Some(Self::user(identity)),
            _ => None,
        }
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
    fn optional_fields_are_left_out() {
        let fields =
            json!({"a": null, "b": [{"c": null, "d": ""}], "e": {"f": null}, "g": non_empty([0; 0])});
        assert_eq!(body(fields).redacted(), &json!({"b": [{"d": ""}], "e": {}}));
    }

    #[test]
    fn durations_are_written_in_the_largest_whole_unit() {
        for (seconds, text) in
            [(0, "PT0S"), (59, "PT59S"), (60, "PT1M"), (90, "PT90S"), (7200, "PT2H"), (90000, "PT25H")]
        {
            assert_eq!(iso_8601(Duration::from_secs(seconds)), text);
        }
    }
}
