//! The table `[sweep.early_termination]`: the name of a policy, and its keys.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, DeserializeSeed, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Map;

use crate::config::choice::{Choice, foreign_key, keys_of, unknown};
use crate::config::keys::{Key, Keys};
use crate::config::problem::Problem;
use crate::policy::TerminationPolicy;

/// When a trial is stopped before its end.
#[derive(Clone, Debug, PartialEq)]
pub struct EarlyTermination {
    policy: Choice<TerminationPolicy>,
    keys: Keys,
}

impl EarlyTermination {
    pub(super) fn policy(&self) -> Result<TerminationPolicy, Problem> {
        if let Some((key, users)) = foreign_key::<TerminationPolicy>(self.policy.name(), &self.keys) {
            let message = format!("`{key}` is for {}: remove it, or change `policy`", users.join(", "));
            return Err(Problem::new(&format!("early_termination.{key}"), message));
        }
        self.policy.read(&self.keys)
    }
}

impl<'de> Deserialize<'de> for EarlyTermination {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(TableVisitor)
    }
}

struct TableVisitor;

impl<'de> Visitor<'de> for TableVisitor {
    type Value = EarlyTermination;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table with `policy`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<EarlyTermination, A::Error> {
        let (mut policy, mut keys) = (None, Keys::default());
        while let Some(field) = table.next_key_seed(FieldName)? {
            match field {
                None => policy = Some(table.next_value()?),
                Some(key) => keys.set(key, table.next_value_seed(key)?),
            }
        }
        let policy = policy.ok_or_else(|| de::Error::missing_field("policy"))?;
        Ok(EarlyTermination { policy, keys })
    }
}

/// Reads the name of a field: none for `policy` itself.
struct FieldName;

impl<'de> DeserializeSeed<'de> for FieldName {
    type Value = Option<Key>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<Key>, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for FieldName {
    type Value = Option<Key>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Option<Key>, E> {
        if name == "policy" {
            return Ok(None);
        }
        let keys = || keys_of::<TerminationPolicy>().into_iter().map(|(key, _)| key);
        let known = || ["policy"].into_iter().chain(keys().map(|key| key.name));
        keys().find(|key| key.name == name).map(Some).ok_or_else(|| unknown("field", name, known()))
    }
}

impl JsonSchema for EarlyTermination {
    fn schema_name() -> Cow<'static, str> {
        "EarlyTermination".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let policy = generator.subschema_for::<Choice<TerminationPolicy>>();
        let mut properties = Map::from_iter([("policy".to_owned(), policy.to_value())]);
        for (key, users) in keys_of::<TerminationPolicy>() {
            properties.insert(key.name.to_owned(), key.schema(&users, generator).to_value());
        }
        json_schema!({
            "description": "When a trial is stopped before its end.",
            "type": "object",
            "properties": properties,
            "additionalProperties": false,
            "required": ["policy"],
        })
    }
}
