//! Values of a template in Bicep's syntax.

use std::fmt::Write as _;

use serde_json::Value;

use super::super::error::ExportError;
use super::expression;
use super::string::string;

/// A value at a level of indentation.
pub(super) fn value(value: &Value, indent: usize) -> Result<String, ExportError> {
    let margin = |indent: usize| "  ".repeat(indent);
    Ok(match value {
        // Bicep has no fractions.
        Value::Number(number) if number.is_f64() => format!("json('{number}')"),
        Value::String(text) => template_string(text)?,
        Value::Array(items) if items.is_empty() => "[]".to_owned(),
        Value::Object(members) if members.is_empty() => "{}".to_owned(),
        Value::Array(items) => {
            let mut out = String::from("[\n");
            for item in items {
                let _ = writeln!(out, "{}{}", margin(indent + 1), self::value(item, indent + 1)?);
            }
            out + &margin(indent) + "]"
        }
        Value::Object(members) => {
            let mut out = String::from("{\n");
            for (name, member) in members {
                let _ = writeln!(
                    out,
                    "{}{}: {}",
                    margin(indent + 1),
                    key(name),
                    self::value(member, indent + 1)?
                );
            }
            out + &margin(indent) + "}"
        }
        scalar => scalar.to_string(),
    })
}

/// A string of a template, which is an expression if it is in brackets. Two opening brackets stand for one.
fn template_string(text: &str) -> Result<String, ExportError> {
    match text
        .strip_prefix('[')
        .and_then(|inner| inner.strip_suffix(']').map(|expression| (inner, expression)))
    {
        Some((inner, _)) if inner.starts_with('[') => Ok(string(inner)),
        Some((_, expression)) => expression::to_bicep(expression),
        None => Ok(string(text)),
    }
}

/// The key of a member.
pub(super) fn key(name: &str) -> String {
    let is_plain = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_plain { name.to_owned() } else { string(name) }
}

/// The part of a file name for a text.
pub(super) fn identifier(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_of_templates_are_values_of_bicep() {
        let cases = [
            (json!(null), "null"),
            (json!(2), "2"),
            (json!(0.5), "json('0.5')"),
            (json!("it's ${x}\n"), r"'it\'s \${x}\n'"),
            (json!("[[ -f x ]"), "'[ -f x ]'"),
            (json!("[x"), "'[x'"),
            (json!("[parameters('a')]"), "a"),
            (json!({"a-b": [], "c": {"d": [1]}}), "{\n  'a-b': []\n  c: {\n    d: [\n      1\n    ]\n  }\n}"),
        ];
        for (template, expected) in cases {
            assert_eq!(value(&template, 0).unwrap(), expected, "{template}");
        }
    }
}
