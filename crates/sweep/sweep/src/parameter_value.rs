//! The values that parameters have.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ParameterValue {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
}

impl ParameterValue {
    /// The text that it is, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Bool(_) | Self::Int(_) | Self::Float(_) => None,
        }
    }

    /// The number that it is, if it is one: a coordinate, or a float in a file.
    #[allow(clippy::cast_precision_loss, reason = "large integers become the nearest float")]
    pub fn as_number(&self) -> Option<f64> {
        match *self {
            Self::Int(value) => Some(value as f64),
            Self::Float(value) => Some(value),
            Self::Bool(_) | Self::Text(_) => None,
        }
    }
}

/// Formats the value as the program reads it: without quotes, and floats with the digits needed to
/// read them back.
impl fmt::Display for ParameterValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Int(value) => value.fmt(f),
            // Not `Display`, which writes neither exponents nor, for whole numbers, the point.
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Text(value) => f.write_str(value),
        }
    }
}

impl<'de> Deserialize<'de> for ParameterValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ParameterVisitor)
    }
}

struct ParameterVisitor;

impl Visitor<'_> for ParameterVisitor {
    type Value = ParameterValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, a number or a boolean")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<ParameterValue, E> {
        Ok(ParameterValue::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<ParameterValue, E> {
        Ok(ParameterValue::Int(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<ParameterValue, E> {
        let out_of_range = || E::invalid_value(de::Unexpected::Unsigned(value), &self);
        i64::try_from(value).map(ParameterValue::Int).map_err(|_| out_of_range())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<ParameterValue, E> {
        Ok(ParameterValue::Float(value))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<ParameterValue, E> {
        Ok(ParameterValue::Text(value.to_owned()))
    }
}

impl JsonSchema for ParameterValue {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ParameterValue".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["string", "number", "boolean"]})
    }
}
