//! Reads responses. Unknown fields and states of newer api-versions are accepted.

use cudock_base::Timestamp;
use serde_json::Value;

use crate::deployment::Phase;
use crate::status::{DeploymentState, Status};

/// The text at a JSON pointer.
pub(crate) fn text<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty())
}

pub(crate) fn time(value: &Value, pointer: &str) -> Option<Timestamp> {
    text(value, pointer).and_then(Timestamp::parse)
}

pub(crate) fn integer(value: &Value, pointer: &str) -> Option<i32> {
    value.pointer(pointer).and_then(Value::as_i64).and_then(|number| i32::try_from(number).ok())
}

/// The entries of a list at a JSON pointer; none if there is no list.
pub(crate) fn list<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Whether a state is this one, in any case: services are not consistent.
pub(crate) fn is(state: Option<&str>, name: &str) -> bool {
    state.is_some_and(|state| state.eq_ignore_ascii_case(name))
}

/// The response at an index, if there was one.
pub(crate) fn response(responses: &[Option<Value>], index: usize) -> Option<&Value> {
    responses.get(index).and_then(Option::as_ref)
}

/// The deepest message of an error, which names the cause.
pub(crate) fn deepest_error(error: &Value) -> Option<String> {
    let mut at = error.get("error").unwrap_or(error);
    // Azure nests few levels; a limit keeps this linear for any response.
    for _ in 0..16 {
        let deeper = at.get("details").and_then(Value::as_array).and_then(|details| details.first());
        match deeper.or_else(|| at.get("innererror")).filter(|next| next.is_object()) {
            Some(next) => at = next,
            None => break,
        }
    }
    match (text(at, "/code"), text(at, "/message")) {
        (Some(code), Some(message)) => Some(format!("{code}: {message}")),
        (code, message) => message.or(code).map(str::to_owned),
    }
}

impl Status {
    pub(crate) fn new(state: DeploymentState, phase: Phase) -> Self {
        Self {
            state,
            phase,
            detail: None,
            exit_code: None,
            url: None,
            billed_from: None,
            billed_until: None,
            jobs: Vec::new(),
        }
    }

    pub(crate) fn starting(phase: Phase) -> Self {
        Self::new(DeploymentState::Starting, phase)
    }

    #[must_use]
    pub(crate) fn detail(mut self, detail: Option<impl Into<String>>) -> Self {
        self.detail = detail.map(Into::into);
        self
    }

    #[must_use]
    pub(crate) fn exit(mut self, code: Option<i32>) -> Self {
        self.exit_code = code;
        self
    }

    #[must_use]
    pub(crate) fn billed(mut self, from: Option<Timestamp>, until: Option<Timestamp>) -> Self {
        self.billed_from = from;
        self.billed_until = until;
        self
    }
}

/// The state of a job's result, with its exit code if the service reports it.
pub(crate) fn ended(exit_code: Option<i32>, has_failed: bool) -> Status {
    let state = if has_failed || exit_code.is_some_and(|code| code != 0) {
        DeploymentState::Failed
    } else {
        DeploymentState::Succeeded
    };
    Status::new(state, Phase::Work).exit(exit_code)
}

/// Adds the state of the group: it is deleted, or being deleted.
pub(crate) fn with_group(status: Status, group: Option<&Value>, responses: &[Option<Value>]) -> Status {
    let deleting =
        |status: Status| Status { state: DeploymentState::Deleting, phase: Phase::Delete, ..status };
    match group {
        None if responses.iter().all(Option::is_none) => Status::new(DeploymentState::Gone, Phase::Delete),
        Some(group) if is(text(group, "/properties/provisioningState"), "Deleting") => deleting(status),
        _ => status,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_deepest_error_names_the_cause() {
        let nested = json!({"error": {"code": "DeploymentFailed", "message": "see details", "details": [
            {"code": "Conflict", "message": "no", "innererror": {"code": "QuotaExceeded", "message": "0 left"}}]}});
        assert_eq!(deepest_error(&nested).as_deref(), Some("QuotaExceeded: 0 left"));
        assert_eq!(deepest_error(&json!({"code": "X"})).as_deref(), Some("X"));
        for odd in [json!(null), json!([]), json!({"error": 5}), json!({"details": [3]})] {
            assert_eq!(deepest_error(&odd), None, "{odd}");
        }
    }
}
