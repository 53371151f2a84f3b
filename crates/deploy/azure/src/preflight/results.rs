//! The results of queries to Azure.

use std::collections::BTreeMap;

use cudock_base::text;
use serde_json::Value;

use super::query::Topic;

/// Characters of an error message that are shown, at most.
const MAX_MESSAGE: usize = 160;

/// The result of one query.
#[derive(Debug, Clone, PartialEq)]
pub enum QueryResult {
    Response {
        status: u16,
        body: Value,
    },
    /// There was no response, for this reason.
    Failed(String),
}

/// The results of all queries.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueryResults {
    by_topic: BTreeMap<Topic, QueryResult>,
}

/// Why a response is missing or unusable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Gap {
    /// The service does not exist there, or the resource does not exist.
    NotFound,
    NotSignedIn,
    /// The account may not ask.
    Denied,
    Failed(String),
}

impl QueryResults {
    pub fn insert(&mut self, topic: Topic, result: QueryResult) {
        self.by_topic.insert(topic, result);
    }

    pub fn extend(&mut self, other: Self) {
        self.by_topic.extend(other.by_topic);
    }

    pub(crate) fn contains(&self, topic: &Topic) -> bool {
        self.by_topic.contains_key(topic)
    }

    pub fn all(&self) -> impl Iterator<Item = (&Topic, &QueryResult)> {
        self.by_topic.iter()
    }

    /// The body of a successful response.
    pub(crate) fn body(&self, topic: &Topic) -> Result<&Value, Gap> {
        match self.by_topic.get(topic) {
            Some(QueryResult::Response { status: 200..=299, body }) => Ok(body),
            Some(QueryResult::Response { status, body }) => Err(Gap::of(*status, body)),
            Some(QueryResult::Failed(reason)) => Err(Gap::Failed(reason.clone())),
            None => Err(Gap::Failed("not asked".to_owned())),
        }
    }

    /// The elements of a list that a service returns as `value`.
    pub(crate) fn list(&self, topic: &Topic) -> Result<&[Value], Gap> {
        let body = self.body(topic)?;
        let list = body.get("value").and_then(Value::as_array);
        list.map(Vec::as_slice).ok_or_else(|| Gap::Failed("the response is not a list".to_owned()))
    }

    pub(crate) fn is_signed_out(&self) -> bool {
        self.by_topic.keys().any(|topic| self.body(topic) == Err(Gap::NotSignedIn))
    }

    /// The reason, if there was no response at all.
    pub(crate) fn silence(&self) -> Option<&str> {
        let mut reasons = self.by_topic.values().map(|result| match result {
            QueryResult::Failed(reason) => Some(reason.as_str()),
            QueryResult::Response { .. } => None,
        });
        let first = reasons.next()??;
        reasons.all(|reason| reason.is_some()).then_some(first)
    }
}

impl Gap {
    fn of(status: u16, body: &Value) -> Self {
        let code = body.pointer("/error/code").and_then(Value::as_str).unwrap_or_default();
        let message = body.pointer("/error/message").and_then(Value::as_str).unwrap_or_default();
        match (status, code) {
            (401, _) => Self::NotSignedIn,
            (403, _) => Self::Denied,
            (404, _) | (400, "NoRegisteredProviderFound" | "LocationNotAvailableForResourceType") => {
                Self::NotFound
            }
            _ => Self::Failed(text::truncate(
                format!("{status} {code}: {message}").trim_end_matches([':', ' ']),
                MAX_MESSAGE,
            )),
        }
    }

    /// Why nothing is known, for a table.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::NotFound => "not found".to_owned(),
            Self::NotSignedIn => "not signed in".to_owned(),
            Self::Denied => "permission denied".to_owned(),
            Self::Failed(reason) => reason.clone(),
        }
    }
}

/// A number, however a service writes it.
pub(crate) fn number(value: Option<&Value>) -> Option<i64> {
    let value = value?;
    let whole = |number: f64| {
        #[allow(clippy::cast_possible_truncation, reason = "the range is checked")]
        (number.abs() < 1e15).then_some(number.floor() as i64)
    };
    let in_text = || value.as_str()?.trim().parse::<f64>().ok();
    value.as_i64().or_else(|| value.as_f64().or_else(in_text).and_then(whole))
}

/// The text of a field.
pub(crate) fn string<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn statuses_without_a_body_have_distinct_gaps() {
        let error = |code: &str| json!({"error": {"code": code, "message": "m\u{1b}"}});
        for (status, body, expected) in [
            (404, json!(null), Gap::NotFound),
            (400, error("NoRegisteredProviderFound"), Gap::NotFound),
            (400, error("LocationNotAvailableForResourceType"), Gap::NotFound),
            (400, error("Other"), Gap::Failed("400 Other: m ".to_owned())),
            (401, error("ExpiredAuthenticationToken"), Gap::NotSignedIn),
            (403, error("AuthorizationFailed"), Gap::Denied),
            (503, json!("<html>"), Gap::Failed("503".to_owned())),
        ] {
            let mut results = QueryResults::default();
            results.insert(Topic::Providers, QueryResult::Response { status, body: body.clone() });
            assert_eq!(results.body(&Topic::Providers), Err(expected), "{status} {body}");
        }
    }

    #[test]
    fn numbers_are_read_in_every_form() {
        for (value, expected) in [
            (json!(5), Some(5)),
            (json!(-1), Some(-1)),
            (json!(5.9), Some(5)),
            (json!("24"), Some(24)),
            (json!(" 24.0 "), Some(24)),
            (json!("NaN"), None),
            (json!(1e300), None),
            (json!("many"), None),
            (json!(null), None),
        ] {
            assert_eq!(number(Some(&value)), expected, "{value}");
        }
    }
}
