//! `deploy.spot`: whether machines may be evicted.

use std::fmt;

use schemars::JsonSchema;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::TimeSpan;

/// Whether evictable machines are allowed, and what an eviction costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(remote = "Self", default, deny_unknown_fields)]
pub struct SpotChoice {
    /// Whether such machines are allowed: `true`, `false` or `"only"`.
    #[serde(rename = "allow")]
    pub allowed: SpotUse,
    /// Evictions per hour of one instance: `0.05`.
    #[schemars(extend("minimum" = 0))]
    pub evictions: Option<f64>,
    /// Time between checkpoints: `"30m"`; work starts over if absent.
    #[schemars(extend("pattern" = "[1-9]"))]
    pub checkpoint_every: Option<TimeSpan>,
    /// Time to write one: `"20s"`.
    pub checkpoint_takes: Option<TimeSpan>,
}

/// Whether evictable machines are allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpotUse {
    /// Where they are cheaper.
    #[default]
    Yes,
    /// Never.
    No,
    /// Only such machines.
    Only,
}

impl<'de> Deserialize<'de> for SpotUse {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UseVisitor)
    }
}

struct UseVisitor;

impl Visitor<'_> for UseVisitor {
    type Value = SpotUse;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("true, false or \"only\"")
    }

    fn visit_bool<E: de::Error>(self, allowed: bool) -> Result<SpotUse, E> {
        Ok(if allowed { SpotUse::Yes } else { SpotUse::No })
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<SpotUse, E> {
        match text {
            "only" => Ok(SpotUse::Only),
            _ => Err(E::unknown_variant(text, &["only"])),
        }
    }
}

impl<'de> Deserialize<'de> for SpotChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ChoiceVisitor)
    }
}

struct ChoiceVisitor;

impl<'de> Visitor<'de> for ChoiceVisitor {
    type Value = SpotChoice;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "true, false, \"only\", or a table such as { evictions = 0.05, checkpoint_every = \"30m\" }",
        )
    }

    fn visit_bool<E: de::Error>(self, allowed: bool) -> Result<SpotChoice, E> {
        Ok(SpotChoice { allowed: UseVisitor.visit_bool(allowed)?, ..SpotChoice::default() })
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<SpotChoice, E> {
        Ok(SpotChoice { allowed: UseVisitor.visit_str(text)?, ..SpotChoice::default() })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SpotChoice, A::Error> {
        // The derived function, not the trait's: it reads a table only.
        SpotChoice::deserialize(de::value::MapAccessDeserializer::new(map))
    }
}
