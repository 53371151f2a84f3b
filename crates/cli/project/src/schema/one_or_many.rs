//! Values with more than one notation.

use std::fmt;

use cudock_facts::version::Date;
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Deserializes a name or a list of names.
pub(super) fn names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    struct NamesVisitor;
    impl<'de> Visitor<'de> for NamesVisitor {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a name, or a list of names")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<String>, E> {
            Ok(vec![text.to_owned()])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Vec<String>, A::Error> {
            Vec::deserialize(de::value::SeqAccessDeserializer::new(list))
        }
    }
    deserializer.deserialize_any(NamesVisitor)
}

/// Deserializes a day from a string or a TOML date.
pub(super) fn day<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Date>, D::Error> {
    struct DayVisitor;
    impl<'de> Visitor<'de> for DayVisitor {
        type Value = Option<Date>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a day such as \"2026-12-01\"")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Option<Date>, E> {
            text.parse().map(Some).map_err(E::custom)
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Option<Date>, A::Error> {
            let written = toml::value::Datetime::deserialize(de::value::MapAccessDeserializer::new(map))?;
            match (written.date, written.time) {
                (Some(date), None) => self.visit_str(&date.to_string()),
                _ => Err(de::Error::custom(format!(
                    "invalid day `{written}`: expected a date such as 2026-12-01"
                ))),
            }
        }
    }
    deserializer.deserialize_any(DayVisitor)
}
