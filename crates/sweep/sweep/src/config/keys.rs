//! Keys of `cudock.toml` that only some samplers or policies have.
//!
//! They are in one table with the name of the sampler or policy, so they are read before it is known which of them it takes.

use std::collections::BTreeMap;

use schemars::{Schema, SchemaGenerator};
use serde::de::{self, DeserializeOwned, DeserializeSeed, Unexpected};
use serde::{Deserialize, Deserializer};
use serde_json::{Number, Value};

/// A key, defined in the file of the sampler or policy that has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    /// A sentence for editors.
    about: &'static str,
    kind: KeyKind,
}

#[derive(Debug, Clone, Copy)]
enum KeyKind {
    Flag,
    Count32,
    Count,
    Number,
}

impl Key {
    pub(crate) const fn flag(name: &'static str, about: &'static str) -> Self {
        Self { name, about, kind: KeyKind::Flag }
    }

    /// A whole number below 2^32.
    pub(crate) const fn count32(name: &'static str, about: &'static str) -> Self {
        Self { name, about, kind: KeyKind::Count32 }
    }

    pub(crate) const fn count(name: &'static str, about: &'static str) -> Self {
        Self { name, about, kind: KeyKind::Count }
    }

    pub(crate) const fn number(name: &'static str, about: &'static str) -> Self {
        Self { name, about, kind: KeyKind::Number }
    }

    /// The schema of the key; `users` are the kinds that have it, unless the sentence names them.
    pub(crate) fn schema(&self, users: &[&str], generator: &mut SchemaGenerator) -> Schema {
        let mut schema = match self.kind {
            KeyKind::Flag => generator.subschema_for::<bool>(),
            KeyKind::Count32 => generator.subschema_for::<u32>(),
            KeyKind::Count => generator.subschema_for::<u64>(),
            KeyKind::Number => generator.subschema_for::<f64>(),
        };
        let users = if users.is_empty() { String::new() } else { format!("{}: ", users.join(", ")) };
        schema.insert("description".to_owned(), format!("{users}{}", self.about).into());
        schema
    }
}

/// Reads the value of the key.
impl<'de> DeserializeSeed<'de> for Key {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self.kind {
            KeyKind::Flag => bool::deserialize(deserializer).map(Value::from),
            KeyKind::Count32 => u32::deserialize(deserializer).map(Value::from),
            KeyKind::Count => u64::deserialize(deserializer).map(Value::from),
            KeyKind::Number => {
                let number = f64::deserialize(deserializer)?;
                let infinite = || de::Error::invalid_value(Unexpected::Float(number), &"a finite number");
                Number::from_f64(number).map(Value::Number).ok_or_else(infinite)
            }
        }
    }
}

/// The limit of trials, on which defaults of samplers depend.
pub(crate) const TRIALS: Key = Key::count32("limits.trials", "Trials in total.");

/// The keys that a file sets, with their values.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Keys(BTreeMap<&'static str, Value>);

impl Keys {
    pub(crate) fn set(&mut self, key: Key, value: Value) {
        self.0.insert(key.name, value);
    }

    pub(crate) fn has(&self, key: Key) -> bool {
        self.0.contains_key(key.name)
    }

    /// The value of a key; none if it is not set, or of another type than the key has.
    pub(crate) fn get<T: DeserializeOwned>(&self, key: Key) -> Option<T> {
        T::deserialize(self.0.get(key.name)?).ok()
    }
}
