//! Deserializes YAML into serde types through JSON values.

use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value};

use crate::tree::{Data, Node, Scalar};
use crate::{Error, ErrorKind, parse};

/// Deserializes a value from YAML 1.2 or JSON.
pub fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    let node = match parse(text) {
        Ok(node) => node,
        // All of JSON is YAML, except tabs and sizes beyond the limit.
        Err(error) => return serde_json::from_str(text).map_err(|_| error),
    };
    let span = node.span;
    serde_json::from_value(value(&node))
        .map_err(|error| Error::new(span, ErrorKind::Syntax { message: error.to_string() }))
}

fn value(node: &Node) -> Value {
    match &node.data {
        Data::Scalar(scalar) => plain(scalar),
        Data::List(members) => Value::Array(members.iter().map(value).collect()),
        Data::Map(entries) => {
            let entries = entries.iter().map(|entry| (entry.key.clone(), value(&entry.value)));
            Value::Object(entries.collect::<Map<_, _>>())
        }
    }
}

/// A scalar by the rules of YAML 1.2: `yes` and `on` are text.
fn plain(scalar: &Scalar) -> Value {
    let text = scalar.text.as_str();
    if scalar.quoted {
        return Value::String(text.to_owned());
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number),
    }
}

fn number(text: &str) -> Option<Number> {
    let digits = text.trim_start_matches(['+', '-']);
    let based = |prefix: &str, radix| u64::from_str_radix(digits.strip_prefix(prefix)?, radix).ok();
    if let Some(based) = based("0x", 16).or_else(|| based("0o", 8)).filter(|_| digits.len() == text.len()) {
        return Some(based.into());
    }
    // `007` is a name, not seven.
    let has_leading_zero =
        digits.len() > 1 && digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.starts_with('0');
    if has_leading_zero || !digits.trim_start_matches('.').starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let unsigned = text.parse::<u64>().map(Number::from);
    let signed = unsigned.or_else(|_| text.parse::<i64>().map(Number::from));
    signed.ok().or_else(|| Number::from_f64(text.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn scalars_are_those_of_yaml_1_2() {
        let text = "a: [1, -2, 0x1f, 0o17, 1.5, 007, 1.2.3, true, on, ~, '1', 1e3]\nb: {}\n";
        let read: Value = from_str(text).unwrap();
        let list = json!([1, -2, 31, 15, 1.5, "007", "1.2.3", true, "on", null, "1", 1e3]);
        assert_eq!(read, json!({"a": list, "b": {}}));
    }

    #[test]
    fn json_with_tabs_is_read() {
        let read: Value = from_str("{\n\t\"a\": [\n\t\t1\n\t]\n}\n").unwrap();
        assert_eq!(read, json!({"a": [1]}));
    }

    #[test]
    fn an_error_has_its_location() {
        let error = from_str::<Value>("a: [1\n").unwrap_err();
        assert!(error.to_string().ends_with("at line 2 column 1"), "{error}");
    }
}
