//! One resource, deployment record, group or role assignment.

use serde_json::{Value, json};

use crate::resources::target::{Target, is_within};
use crate::time::Seconds;

/// A region as names are compared: `West Europe` and `westeurope` are the same.
pub(crate) fn bare_region(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
}

#[derive(Debug, Clone)]
pub(crate) struct Resource {
    pub(crate) target: Target,
    /// Distinguishes it from an earlier one with the same id.
    pub(crate) serial: u64,
    /// The body of a GET response, except for the parts that change by the second.
    pub(crate) body: Value,
    pub(crate) created: Seconds,
    /// GET is 404 before.
    pub(crate) visible_from: Seconds,
    /// When its last operation ends.
    pub(crate) ready_at: Seconds,
    /// When what it runs started and ended.
    pub(crate) started: Option<Seconds>,
    pub(crate) ended: Option<Seconds>,
    /// Whether its work is done, and ends when the client looks next.
    pub(crate) is_due: bool,
    /// Whether a DELETE was accepted.
    pub(crate) is_deleting: bool,
    /// Whether it was there before the test.
    pub(crate) is_seeded: bool,
}

impl Resource {
    pub(crate) fn state(&self) -> &str {
        self.body["properties"]["provisioningState"].as_str().unwrap_or("Succeeded")
    }

    pub(crate) fn set_state(&mut self, state: &str) {
        self.body["properties"]["provisioningState"] = json!(state);
    }

    /// Whether its last operation is still running.
    pub(crate) fn is_busy(&self) -> bool {
        !["Succeeded", "Failed", "Canceled"].contains(&self.state())
    }

    pub(crate) fn property(&self, name: &str) -> &Value {
        &self.body["properties"][name]
    }

    pub(crate) fn set(&mut self, name: &str, value: Value) {
        self.body["properties"][name] = value;
    }

    pub(crate) fn location(&self) -> String {
        bare_region(self.body["location"].as_str().unwrap_or("eastus"))
    }

    /// The object id of its system-assigned identity.
    pub(crate) fn principal(&self) -> Option<&str> {
        self.body["identity"]["principalId"].as_str().or_else(|| self.property("principalId").as_str())
    }

    pub(crate) fn is_within(&self, scope: &str) -> bool {
        is_within(&self.target.key, scope)
    }
}
