//! Keys of `cudock.toml` whose value is the name of one of several kinds: `sampler = "tpe"`.
//!
//! The file is flat (the name in one key, the settings in others beside it) and the journal is not, so a name is read as
//! the [`Kind`] that it stands for, and becomes the value with its settings when all keys have been read.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::config::keys::{Key, Keys};
use crate::config::problem::Problem;

/// An enum with one variant for each name.
pub trait Kinds: Sized + 'static {
    /// What the settings are read from.
    type Settings: 'static;
    /// The name and the description of the schema.
    const SCHEMA: (&'static str, &'static str);
    const KINDS: &'static [Kind<Self>];
}

/// A name, and what it stands for.
pub struct Kind<T: Kinds> {
    pub(crate) name: &'static str,
    /// A sentence for editors; empty if the name says it all.
    pub(crate) summary: &'static str,
    /// The keys that it has; others that no kind lists are for all of them.
    pub(crate) keys: &'static [Key],
    pub(crate) read: fn(&T::Settings) -> Result<T, Problem>,
}

impl<T: Kinds> Kind<T> {
    /// A kind without keys that others do not have.
    pub(crate) const fn new(
        name: &'static str,
        summary: &'static str,
        read: fn(&T::Settings) -> Result<T, Problem>,
    ) -> Self {
        Self { name, summary, keys: &[], read }
    }
}

/// The kind that a file names.
pub struct Choice<T: Kinds>(&'static Kind<T>);

impl<T: Kinds> Choice<T> {
    pub(crate) fn name(self) -> &'static str {
        self.0.name
    }

    pub(crate) fn read(self, settings: &T::Settings) -> Result<T, Problem> {
        (self.0.read)(settings)
    }
}

/// All keys of all kinds, each with the names of those that have it.
pub(crate) fn keys_of<T: Kinds>() -> Vec<(Key, Vec<&'static str>)> {
    let mut keys: Vec<(Key, Vec<&'static str>)> = Vec::new();
    for kind in T::KINDS {
        for key in kind.keys {
            match keys.iter_mut().find(|(known, _)| known.name == key.name) {
                Some((_, users)) => users.push(kind.name),
                None => keys.push((*key, vec![kind.name])),
            }
        }
    }
    keys
}

/// A key that is set, and is for other kinds than the chosen one only: its name and theirs.
pub(crate) fn foreign_key<T: Kinds>(chosen: &str, keys: &Keys) -> Option<(&'static str, Vec<&'static str>)> {
    let mut set = keys_of::<T>().into_iter().filter(|(key, _)| keys.has(*key));
    set.find(|(_, users)| !users.contains(&chosen)).map(|(key, users)| (key.name, users))
}

impl<T: Kinds> Clone for Choice<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Kinds> Copy for Choice<T> {}

impl<T: Kinds> PartialEq for Choice<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl<T: Kinds> Eq for Choice<T> {}

impl<T: Kinds> fmt::Debug for Choice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

impl<'de, T: Kinds> Deserialize<'de> for Choice<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(NameVisitor(PhantomData))
    }
}

struct NameVisitor<T>(PhantomData<T>);

impl<T: Kinds> Visitor<'_> for NameVisitor<T> {
    type Value = Choice<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Choice<T>, E> {
        let unknown = || unknown("variant", text, T::KINDS.iter().map(|kind| kind.name));
        T::KINDS.iter().find(|kind| kind.name == text).map(Choice).ok_or_else(unknown)
    }
}

/// The error of serde about a name that is not one of those that are known.
pub(crate) fn unknown<E: de::Error>(what: &str, name: &str, known: impl Iterator<Item = &'static str>) -> E {
    let known: Vec<String> = known.map(|name| format!("`{name}`")).collect();
    E::custom(format_args!("unknown {what} `{name}`, expected one of {}", known.join(", ")))
}

/// As the schema of an enum with these variants: those without a sentence are in one list.
impl<T: Kinds> JsonSchema for Choice<T> {
    fn schema_name() -> Cow<'static, str> {
        T::SCHEMA.0.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let (plain, described): (Vec<_>, Vec<_>) = T::KINDS.iter().partition(|kind| kind.summary.is_empty());
        let plain: Vec<&str> = plain.into_iter().map(|kind| kind.name).collect();
        let plain = (!plain.is_empty()).then(|| json!({"type": "string", "enum": plain}));
        let described = described
            .into_iter()
            .map(|kind| json!({"description": kind.summary, "type": "string", "const": kind.name}));
        let kinds: Vec<Value> = plain.into_iter().chain(described).collect();
        json_schema!({"description": T::SCHEMA.1, "oneOf": kinds})
    }
}

/// Declares an enum of kinds that are defined in a file each, and makes its values usable by their interface.
///
/// A kind without settings is a unit struct with `SUMMARY`. One with settings also has `KEYS` and a function `read` from
/// [`Keys`].
macro_rules! kinds {
    (
        $(#[$meta:meta])*
        $enum:ident: $interface:ident, $schema:expr;
        plain { $($plain_name:literal => $plain_module:ident::$plain:ident,)* }
        with_settings { $($name:literal => $module:ident::$kind:ident,)* }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
        pub enum $enum {
            $(#[serde(rename = $plain_name)] $plain,)*
            $(#[serde(rename = $name)] $kind($module::$kind),)*
        }

        impl $enum {
            fn interface(&self) -> &dyn $interface {
                match self {
                    $(Self::$plain => &$plain_module::$plain,)*
                    $(Self::$kind(kind) => kind,)*
                }
            }
        }

        impl $crate::config::choice::Kinds for $enum {
            type Settings = $crate::config::keys::Keys;
            const SCHEMA: (&'static str, &'static str) = $schema;
            const KINDS: &'static [$crate::config::choice::Kind<Self>] = &[
                $($crate::config::choice::Kind::new($plain_name, $plain_module::$plain::SUMMARY, |_| Ok(Self::$plain)),)*
                $($crate::config::choice::Kind {
                    name: $name,
                    summary: $module::$kind::SUMMARY,
                    keys: $module::$kind::KEYS,
                    read: |keys| $module::$kind::read(keys).map(Self::$kind),
                },)*
            ];
        }
    };
}
pub(crate) use kinds;
