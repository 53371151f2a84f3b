//! The body of a request with names in the places of its secrets.

use std::collections::BTreeMap;

use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum BodyValue {
    /// Null, a boolean or a number.
    Scalar(Value),
    Text(String),
    /// The name of a secret.
    Secret(String),
    List(Vec<Self>),
    Map(Vec<(String, Self)>),
}

/// A part of a text: literal, or the name of a secret.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Literal(String),
    Secret(String),
}

/// Members stay in their order. A secret has no value to write.
impl Serialize for BodyValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Scalar(scalar) => scalar.serialize(serializer),
            Self::Text(text) => text.serialize(serializer),
            Self::Secret(name) => Err(S::Error::custom(format!("`{name}` is a secret"))),
            Self::List(items) => items.serialize(serializer),
            Self::Map(members) => serializer.collect_map(members.iter().map(|(key, value)| (key, value))),
        }
    }
}

impl BodyValue {
    /// `secrets` are names by JSON pointer.
    pub(super) fn new(value: &Value, secrets: &BTreeMap<&str, &str>) -> Self {
        Self::at(value, "", secrets)
    }

    fn at(value: &Value, pointer: &str, secrets: &BTreeMap<&str, &str>) -> Self {
        if let Some(name) = secrets.get(pointer) {
            return Self::Secret((*name).to_owned());
        }
        match value {
            Value::String(text) => Self::Text(text.clone()),
            Value::Array(items) => {
                let item = |(index, item)| Self::at(item, &format!("{pointer}/{index}"), secrets);
                Self::List(items.iter().enumerate().map(item).collect())
            }
            Value::Object(members) => {
                let member = |(key, member): (&String, &Value)| {
                    let escaped = key.replace('~', "~0").replace('/', "~1");
                    (key.clone(), Self::at(member, &format!("{pointer}/{escaped}"), secrets))
                };
                Self::Map(members.iter().map(member).collect())
            }
            scalar => Self::Scalar(scalar.clone()),
        }
    }

    pub(super) fn members(&self) -> &[(String, Self)] {
        match self {
            Self::Map(members) => members,
            _ => &[],
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        self.members().iter().find(|(name, _)| name == key).map(|(_, member)| member)
    }

    /// The value at the end of a path of keys, which are separated by `/`.
    pub(super) fn at_path(&self, path: &str) -> Option<&Self> {
        path.split('/').try_fold(self, |value, key| value.get(key))
    }

    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The names of all secrets in it.
    pub(super) fn secrets(&self) -> Vec<&str> {
        match self {
            Self::Secret(name) => vec![name],
            Self::List(items) => items.iter().flat_map(Self::secrets).collect(),
            Self::Map(members) => members.iter().flat_map(|(_, member)| member.secrets()).collect(),
            Self::Scalar(_) | Self::Text(_) => Vec::new(),
        }
    }

    /// JSON in which each text and each secret is mapped.
    pub(super) fn to_json(&self, text: &impl Fn(&str) -> String, secret: &impl Fn(&str) -> String) -> Value {
        match self {
            Self::Scalar(scalar) => scalar.clone(),
            Self::Text(literal) => Value::from(text(literal)),
            Self::Secret(name) => Value::from(secret(name)),
            Self::List(items) => items.iter().map(|item| item.to_json(text, secret)).collect(),
            Self::Map(members) => {
                let member = |(key, member): &(String, Self)| (key.clone(), member.to_json(text, secret));
                Value::Object(members.iter().map(member).collect::<Map<_, _>>())
            }
        }
    }

    /// Indented JSON in pieces.
    pub(super) fn to_pieces(&self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        self.write(0, &mut pieces);
        pieces
    }

    fn write(&self, indent: usize, out: &mut Vec<Piece>) {
        let newline = |indent: usize| format!("\n{:width$}", "", width = 2 * indent);
        match self {
            Self::Scalar(scalar) => push(out, &scalar.to_string()),
            Self::Text(text) => push(out, &Value::from(text.as_str()).to_string()),
            Self::Secret(name) => out.push(Piece::Secret(name.clone())),
            Self::List(items) if items.is_empty() => push(out, "[]"),
            Self::Map(members) if members.is_empty() => push(out, "{}"),
            Self::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    push(out, if index == 0 { "[" } else { "," });
                    push(out, &newline(indent + 1));
                    item.write(indent + 1, out);
                }
                push(out, &format!("{}]", newline(indent)));
            }
            Self::Map(members) => {
                for (index, (key, member)) in members.iter().enumerate() {
                    push(out, if index == 0 { "{" } else { "," });
                    push(out, &format!("{}{}: ", newline(indent + 1), Value::from(key.as_str())));
                    member.write(indent + 1, out);
                }
                push(out, &format!("{}}}", newline(indent)));
            }
        }
    }
}

fn push(pieces: &mut Vec<Piece>, text: &str) {
    match pieces.last_mut() {
        Some(Piece::Literal(literal)) => literal.push_str(text),
        _ => pieces.push(Piece::Literal(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_names_and_everything_else_is_itself() {
        let value = json!({"a/b": [1, {"x": "…"}], "e": [], "m": {}, "t": "it's", "z": null});
        let body = BodyValue::new(&value, &BTreeMap::from([("/a~1b/1/x", "token")]));
        let json = body.to_json(&str::to_owned, &|name| format!("<{name}>"));
        assert_eq!(json, json!({"a/b": [1, {"x": "<token>"}], "e": [], "m": {}, "t": "it's", "z": null}));
        let pieces = body.to_pieces();
        assert_eq!(pieces.iter().filter(|piece| **piece == Piece::Secret("token".into())).count(), 1);
        let text: String = pieces
            .into_iter()
            .map(|piece| match piece {
                Piece::Literal(text) => text,
                Piece::Secret(name) => format!("\"<{name}>\""),
            })
            .collect();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), json);
    }
}
