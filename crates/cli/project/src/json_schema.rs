//! The JSON Schema of `cudock.toml`, by which editors check and complete it.
//!
//! It accepts what the parser accepts, key by key. Contradictions between keys are left to [`check`](crate::check), which
//! explains them better.

use std::borrow::Cow;

use cudock_base::NUMBER_PATTERN;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use crate::schema::{CapabilityRange, DayRate, RequestRate, SpotUse};
use crate::{HostName, ImageSize, Manifest, RateLimit, SpotChoice};

/// The JSON Schema of `cudock.toml`.
pub fn json_schema() -> Schema {
    let settings = SchemaSettings::draft2020_12().for_deserialize();
    settings
        .with_transform(RecursiveTransform(without_null))
        .into_generator()
        .into_root_schema_for::<Manifest>()
}

/// Removes `null`, which TOML does not have, and defaults, which the descriptions have.
fn without_null(schema: &mut Schema) {
    schema.remove("default");
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_mut_slice() {
            let only = only.take();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(choices)) = schema.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type").is_none_or(|name| name != "null"));
        if let [Value::Object(only)] = choices.as_mut_slice() {
            let only = std::mem::take(only);
            schema.remove("anyOf");
            for (key, value) in only {
                schema.ensure_object().entry(key).or_insert(value);
            }
        }
    }
}

/// The regular expression of a number of requests per period, from the beginning of a text.
fn rate_pattern() -> String {
    format!(r"^\s*\+?{NUMBER_PATTERN}(?:[eE][+-]?[0-9]+)?\s*(?:/\s*(?:s|sec|m|min|h|d|day)\s*)?")
}

/// Implements [`JsonSchema`] for a type that is parsed by hand.
macro_rules! schemas {
    ($($type:ident: |$generator:pat_param| $schema:tt;)*) => {$(
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema($generator: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    )*};
}

schemas! {
    RequestRate: |_| {
        "description": "Requests per second, or a number of requests per s, min, h or day.",
        "examples": [5, 0.2, "4/h", "100/min"],
        "type": ["number", "string"],
        "minimum": 0,
        "pattern": rate_pattern() + "$",
    };
    RateLimit: |_| {
        "type": "string",
        "description": "A number of requests per s, min, h or day, and after a colon how many may come at once.",
        "examples": ["100/s", "100/s:20"],
        "pattern": rate_pattern() + r"(?::\s*\+?0*[1-9][0-9]*\s*)?$",
    };
    HostName: |_| {
        "type": "string",
        "description": "A name or an address under which a server is reached, without scheme and port.",
        "examples": ["models.example", "10.0.0.5"],
        "pattern": concat!(
            r"^\s*(?:[A-Za-z0-9._~-]*[A-Za-z0-9][A-Za-z0-9._~-]*",
            r"|\[?[0-9A-Fa-f.]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*\]?)\s*$"
        ),
    };
    DayRate: |generator| {
        "description": "Requests per second: one rate, one by day and one by night, or one for each hour in UTC.",
        "examples": [5, "4/h", {"day": 5, "night": 0, "from": "08:00", "to": "20:00"}],
        "anyOf": [
            generator.subschema_for::<RequestRate>(),
            {"type": "array", "items": generator.subschema_for::<RequestRate>(), "minItems": 24, "maxItems": 24},
            {
                "type": "object",
                "properties": {
                    "day": generator.subschema_for::<RequestRate>(),
                    "night": generator.subschema_for::<RequestRate>(),
                    "from": hour("The full hour in UTC at which the day begins.", "08:00"),
                    "to": hour("The full hour in UTC at which the day ends.", "20:00"),
                },
                "required": ["day", "from", "to"],
                "additionalProperties": false,
            },
        ],
    };
    CapabilityRange: |_| {
        "description": "The least compute capability, or the least and the greatest.",
        "examples": ["8.0", {"least": "7.0", "greatest": "7.5"}],
        "type": ["string", "number", "object"],
        "pattern": CAPABILITY,
        "exclusiveMinimum": 0,
        "properties": {"least": capability("The least."), "greatest": capability("The greatest.")},
        "additionalProperties": false,
    };
    ImageSize: |_| {
        "description": "One length in pixels, or width and height.",
        "examples": [256, [224, 224]],
        "type": ["integer", "array"],
        "minimum": 1,
        "maximum": ImageSize::MAX,
        "items": {"type": "integer", "minimum": 1, "maximum": ImageSize::MAX},
        "minItems": 2,
        "maxItems": 2,
    };
    SpotUse: |_| {
        "enum": [true, false, "only"],
    };
}

const CAPABILITY: &str = r"^[1-9][0-9]*\.[0-9]$";

fn capability(description: &str) -> Schema {
    json_schema!({
        "description": description,
        "type": ["string", "number"],
        "pattern": CAPABILITY,
        "exclusiveMinimum": 0,
    })
}

fn hour(description: &str, example: &str) -> Schema {
    json_schema!({
        "description": description,
        "examples": [example],
        "type": "string",
        "pattern": r"^\s*(?:[01]?[0-9]|2[0-4]):00\s*$",
    })
}

/// A name or a list of names.
pub(crate) fn names(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "array"], "items": {"type": "string"}})
}

/// Whether Spot machines are allowed, alone or with what an eviction costs.
pub(crate) fn spot(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [generator.subschema_for::<SpotUse>(), generator.subschema_for::<SpotChoice>()]})
}
