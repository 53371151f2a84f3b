//! The bodies of Azure's errors. Every service has its own form, and the reason is often deep inside.

use serde_json::Value;

use super::cause::Cause;

/// Limits on the parts of an error body that are read.
const MAX_DEPTH: usize = 12;
const MAX_NODES: usize = 100;
const MAX_VALUES: usize = 4;

/// A code and a message, at some depth.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ErrorNode {
    pub(super) code: Option<String>,
    pub(super) message: Option<String>,
    depth: usize,
}

impl ErrorNode {
    pub(super) fn cause(&self) -> Cause {
        Cause::of(self.code.as_deref().unwrap_or_default(), self.message.as_deref().unwrap_or_default())
    }
}

/// The node that explains an error: the deepest whose meaning is known, else the deepest, else none.
pub(super) fn explanation(body: &Value) -> Option<ErrorNode> {
    let mut nodes = Vec::new();
    collect(body, 0, &mut nodes);
    let is_known = |node: &ErrorNode| node.cause() != Cause::Other;
    // The first of several at the same depth.
    nodes.into_iter().rev().max_by_key(|node| (is_known(node), node.code.is_some(), node.depth))
}

fn collect(value: &Value, depth: usize, nodes: &mut Vec<ErrorNode>) {
    if depth > MAX_DEPTH || nodes.len() >= MAX_NODES {
        return;
    }
    let object = match value {
        Value::Array(items) => {
            return items.iter().take(MAX_NODES).for_each(|item| collect(item, depth, nodes));
        }
        Value::String(text) => return collect_text(text, depth, nodes),
        Value::Object(object) => object,
        _ => return,
    };
    let field =
        |name: &str| object.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value);
    let message = field("message").and_then(|message| match message {
        // Batch: the identifiers of the request follow in further lines.
        Value::Object(_) => message.get("value")?.as_str()?.lines().next(),
        message => message.as_str(),
    });
    let code = field("code").and_then(|code| match code {
        Value::String(code) => Some(code.clone()),
        Value::Number(code) => Some(code.to_string()),
        _ => None,
    });
    let code = code.filter(|code| !code.is_empty());
    let message_is_json = message.is_some_and(is_json);
    let shown = message.filter(|text| !text.is_empty() && !message_is_json);
    if code.is_some() || shown.is_some() {
        let values = field("values").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let message = shown.map(|text| with_values(text, values));
        nodes.push(ErrorNode { code, message, depth });
    }
    if let Some(text) = message.filter(|_| message_is_json) {
        collect_text(text, depth + 1, nodes);
    }
    for name in ["error", "errors", "details", "innererror", "statusMessage", "properties", "values"] {
        // The value of a pair may be another error as text.
        match field(name) {
            Some(Value::Array(pairs)) if name == "values" => {
                for value in pairs.iter().take(MAX_NODES).filter_map(|pair| pair.get("value")?.as_str()) {
                    collect_text(value, depth + 1, nodes);
                }
            }
            Some(child) => collect(child, depth + 1, nodes),
            None => {}
        }
    }
}

fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
}

fn collect_text(text: &str, depth: usize, nodes: &mut Vec<ErrorNode>) {
    if is_json(text)
        && depth <= MAX_DEPTH
        && let Ok(value) = serde_json::from_str::<Value>(text)
    {
        collect(&value, depth, nodes);
    }
}

/// Batch names the invalid property next to its message.
fn with_values(message: &str, values: &[Value]) -> String {
    let pairs = values.iter().take(MAX_VALUES).filter_map(|pair| {
        let text = |name: &str| pair.get(name)?.as_str();
        Some(format!("{}: {}", text("key")?, text("value").filter(|value| !is_json(value))?))
    });
    let pairs: Vec<String> = pairs.collect();
    if pairs.is_empty() { message.to_owned() } else { format!("{message} ({})", pairs.join(", ")) }
}

/// How much quota is missing, as Compute writes it into its message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaShortage {
    pub region: String,
    pub limit: u64,
    pub used: u64,
    /// How much more than what is used.
    pub required: u64,
}

impl QuotaShortage {
    pub(super) fn parse(message: &str) -> Option<Self> {
        let after = |name: &str| message.split_once(name).map(|(_, rest)| rest.trim_start());
        let number = |name: &str| {
            let rest = after(name)?;
            rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
        };
        let region = after("Location:")?.split([',', ' ', '.']).next()?;
        let is_region = !region.is_empty() && region.bytes().all(|byte| byte.is_ascii_alphanumeric());
        is_region.then_some(())?;
        Some(Self {
            region: region.to_owned(),
            limit: number("Current Limit:")?,
            used: number("Current Usage:")?,
            required: number("Additional Required:")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn codes(body: &Value) -> (Option<String>, Option<String>) {
        explanation(body).map(|node| (node.code, node.message)).unwrap_or_default()
    }

    fn some(code: &str, message: &str) -> (Option<String>, Option<String>) {
        (Some(code.to_owned()), Some(message.to_owned()))
    }

    #[test]
    fn every_service_s_form_is_read() {
        for (body, expected) in [
            (json!({"error": {"code": "A", "message": "m"}}), some("A", "m")),
            // Compute's 429.
            (
                json!({"code": "OperationNotAllowed", "message": "m", "details": []}),
                some("OperationNotAllowed", "m"),
            ),
            (json!({"status": "Failed", "error": {"code": "A", "message": "m"}}), some("A", "m")),
            (
                json!({"code": "InvalidPropertyValue", "message": {"lang": "en", "value": "m\nRequestId:1"},
                    "values": [{"key": "PropertyName", "value": "vmSize"}]}),
                some("InvalidPropertyValue", "m (PropertyName: vmSize)"),
            ),
            (
                json!({"error": {"code": "UserError", "message": "m", "innerError": {"code": "B"}}}),
                (Some("B".to_owned()), None),
            ),
            (
                json!({"error": {"code": "A", "message": "{\"error\":{\"code\":\"B\",\"message\":\"inner\"}}"}}),
                some("B", "inner"),
            ),
            (
                json!({"error": {"code": "DeploymentFailed", "message": "m", "details": [
                    {"code": "Conflict", "message": "x"}, {"code": "ScopeLocked", "message": "locked"}]}}),
                some("ScopeLocked", "locked"),
            ),
            (json!({"error": {"code": 404, "message": "m"}}), some("404", "m")),
            (
                json!({"code": "AllocationFailed", "message": "m", "values": [{"key": "Provider Error Json",
                    "value": "{\"error\":{\"code\":\"SkuNotAvailable\",\"message\":\"inner\"}}"}]}),
                some("SkuNotAvailable", "inner"),
            ),
            (
                json!({"properties": {"statusMessage": {"error": {"code": "A", "message": "m"}}}}),
                some("A", "m"),
            ),
            (json!({"error": {"code": "", "message": ""}}), (None, None)),
            (json!(["x", 1, null]), (None, None)),
            (json!("<html>"), (None, None)),
        ] {
            assert_eq!(codes(&body), expected, "{body}");
        }
    }

    #[test]
    fn a_quota_message_has_its_numbers() {
        let message = "Operation could not be completed as it results in exceeding approved Total Regional Cores \
            quota. Additional details - Deployment Model: Resource Manager, Location: westus, Current Limit: 10, \
            Current Usage: 9, Additional Required: 2, (Minimum) New Limit Required: 11.";
        let shortage = QuotaShortage { region: "westus".to_owned(), limit: 10, used: 9, required: 2 };
        assert_eq!(QuotaShortage::parse(message), Some(shortage));
        for message in
            ["", "Location: , Current Limit: 1", "Location: x, Current Limit: many", "Location: a/b"]
        {
            assert_eq!(QuotaShortage::parse(message), None, "{message}");
        }
    }

    /// An error inside others, in one of the ways that services nest them.
    fn nested(inner: Value, ways: &[u8]) -> Value {
        ways.iter().fold(inner, |inner, way| match way % 5 {
            0 => json!({"code": "DeploymentFailed", "message": "see details", "details": [inner]}),
            1 => json!({"code": "BadRequest", "message": "x", "innererror": inner}),
            2 => json!({"code": "Conflict", "message": json!({"error": inner}).to_string()}),
            3 => json!({"error": inner}),
            _ => json!({"code": "UserError", "details": {"code": "X"}, "InnerError": inner}),
        })
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let names =
            prop_oneof!["code|message|error|details|innererror|values|value|key|properties", ".{0,6}"];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,20}".prop_map(Value::from),
            "[\\[{\":,}\\]a]{0,30}".prop_map(Value::from),
        ];
        leaf.prop_recursive(6, 60, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec((names.clone(), inner.clone()), 0..5)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
                inner.prop_map(|value| Value::from(value.to_string())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_known_code_is_found_wherever_it_is(ways in prop::collection::vec(0_u8..5, 0..6)) {
            let inner = json!({"code": "SkuNotAvailable", "message": "deep"});
            prop_assert_eq!(codes(&nested(inner, &ways)), some("SkuNotAvailable", "deep"));
        }

        #[test]
        fn no_body_makes_it_panic(body in any_json()) {
            if let Some(node) = explanation(&body) {
                prop_assert!(node.depth <= MAX_DEPTH);
                prop_assert!(node.code.is_some() || node.message.is_some());
            }
        }

        #[test]
        fn no_message_makes_it_panic(message in ".{0,80}|(Location: |Current Limit: |[0-9a-z, ]){0,12}") {
            let _ = QuotaShortage::parse(&message);
        }
    }
}
