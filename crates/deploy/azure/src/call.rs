//! One request to Azure, as data.

use std::fmt;

use cudock_base::Secret;
use cudock_http::Method;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// A request, without the host and the authorization: the client adds those of its cloud.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    #[serde(serialize_with = "write_method", deserialize_with = "read_method")]
    pub method: Method,
    pub plane: Plane,
    /// The path with its query, `api-version` included. It begins with `/`.
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Body>,
}

/// Actions that have the same effect twice, by the last part of their path in lower case. Others may not: each start of a
/// job in Container Apps is a new execution, and a command runs again. Batch refuses to create the same id twice.
const REPEATABLE_ACTIONS: [&str; 21] = [
    "addtaskcollection",
    "cancel",
    "deallocate",
    "disable",
    "evaluateautoscale",
    "generate",
    "getauthtoken",
    "getlogs",
    "jobs",
    "listcredentials",
    "listkeys",
    "listsecrets",
    "pools",
    "query",
    "register",
    "resources",
    "stop",
    "tasks",
    "terminate",
    "validate",
    "whatif",
];

impl Call {
    /// Whether it may be sent again if its response was lost.
    pub fn is_repeatable(&self) -> bool {
        match self.method {
            Method::GET | Method::HEAD | Method::PUT | Method::DELETE => true,
            Method::POST => {
                let path = self.path.split('?').next().unwrap_or_default();
                let action = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
                REPEATABLE_ACTIONS.contains(&action.to_ascii_lowercase().as_str())
            }
            _ => false,
        }
    }
}

/// The API that a request goes to. Each has its own host and audience.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Plane {
    ResourceManager,
    /// The data plane of a Batch account.
    Batch {
        account: String,
        region: String,
        /// The host according to the account itself. That of an account which is created here is
        /// made of its name and region.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        endpoint: Option<String>,
    },
    /// The run history of Machine Learning in the region of a workspace.
    MlHistory {
        region: String,
        /// The host according to the workspace itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        endpoint: Option<String>,
    },
}

/// A JSON body. Its secrets are sent, but never printed or stored.
#[derive(Clone, PartialEq)]
pub struct Body {
    value: Value,
    /// The secrets, each with its JSON pointer.
    secrets: Vec<(String, Secret)>,
}

impl Body {
    /// A body without secrets.
    pub fn new(value: Value) -> Self {
        Self { value, secrets: Vec::new() }
    }

    /// Puts a secret in the place of the value at a JSON pointer.
    #[must_use]
    pub fn secret(mut self, pointer: impl Into<String>, secret: Secret) -> Self {
        let pointer = pointer.into();
        if let Some(place) = self.value.pointer_mut(&pointer) {
            *place = Value::from("…");
            self.secrets.push((pointer, secret));
        }
        self
    }

    /// The body without its secrets.
    pub fn redacted(&self) -> &Value {
        &self.value
    }

    /// The secrets, and where they belong as JSON pointers.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = (&str, &Secret)> {
        self.secrets.iter().map(|(pointer, secret)| (pointer.as_str(), secret))
    }

    /// The body for the wire and nothing else.
    pub fn expose(&self) -> Value {
        let mut value = self.value.clone();
        for (pointer, secret) in self.secrets() {
            if let Some(place) = value.pointer_mut(pointer) {
                *place = Value::from(secret.expose().as_str());
            }
        }
        value
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Body({})", self.value)
    }
}

impl Serialize for Body {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Body {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::new)
    }
}

fn write_method<S: Serializer>(method: &Method, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(method.as_str())
}

fn read_method<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Method, D::Error> {
    let name = String::deserialize(deserializer)?;
    name.parse().map_err(|_| serde::de::Error::custom(format!("`{name}` is not an HTTP method")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_has_the_same_effect_twice_is_repeated() {
        for (method, path, is_repeatable) in [
            (Method::GET, "/x", true),
            (Method::PUT, "/x", true),
            (Method::DELETE, "/x", true),
            (Method::PATCH, "/x", false),
            (Method::POST, "/vm/deallocate?api-version=1", true),
            (Method::POST, "/providers/Microsoft.Batch/batchAccounts/a/listKeys?api-version=1", true),
            (Method::POST, "/providers/Microsoft.ResourceGraph/resources?api-version=1", true),
            (Method::POST, "/pools?api-version=1", true),
            (Method::POST, "/providers/Microsoft.App/jobs/j/start?api-version=1", false),
            (Method::POST, "/vm/runCommand?api-version=1", false),
        ] {
            let call = Call { method, plane: Plane::ResourceManager, path: path.to_owned(), body: None };
            assert_eq!(call.is_repeatable(), is_repeatable, "{} {path}", call.method);
        }
        assert!(REPEATABLE_ACTIONS.is_sorted());
    }

    #[test]
    fn planes_of_earlier_versions_are_read() {
        let read = |text: &str| serde_json::from_str::<Plane>(text).unwrap();
        let (account, region) = ("a".to_owned(), "eastus".to_owned());
        let batch = Plane::Batch { account, region: region.clone(), endpoint: None };
        assert_eq!(read(r#"{"batch": {"account": "a", "region": "eastus"}}"#), batch);
        assert_eq!(
            read(r#"{"ml-history": {"region": "eastus"}}"#),
            Plane::MlHistory { region, endpoint: None }
        );
    }

    #[test]
    fn secrets_are_sent_and_never_printed() {
        let body =
            Body::new(json!({"a": [{"password": ""}]})).secret("/a/0/password", Secret::new("swordfish"));
        assert_eq!(body.expose(), json!({"a": [{"password": "swordfish"}]}));
        let call =
            Call { method: Method::PUT, plane: Plane::ResourceManager, path: "/x".into(), body: Some(body) };
        let stored = serde_json::to_string(&call).unwrap();
        assert!(!stored.contains("swordfish") && !format!("{call:?}").contains("swordfish"));
        let read: Call = serde_json::from_str(&stored).unwrap();
        assert_eq!((read.method, read.plane), (Method::PUT, Plane::ResourceManager));
    }
}
