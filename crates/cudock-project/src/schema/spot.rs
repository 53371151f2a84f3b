//! `deploy.spot`: whether and how eviction is borne.

use std::fmt;

use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::Span;

/// Whether machines that can be taken away will do, and what that costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SpotChoice {
    /// Whether they will do.
    pub allowed: SpotUse,
    /// Evictions an hour of one instance: `0.05`.
    pub evictions: Option<f64>,
    /// The time between checkpoints: `"30m"`; work starts over if left out.
    pub checkpoint_every: Option<Span>,
    /// What writing one takes: `"20s"`.
    pub checkpoint_takes: Option<Span>,
}

/// Whether machines that can be taken away will do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpotUse {
    /// They will, where they are cheaper.
    #[default]
    Yes,
    /// They will not.
    No,
    /// No others.
    Only,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Table {
    allow: SpotUse,
    evictions: Option<f64>,
    checkpoint_every: Option<Span>,
    checkpoint_takes: Option<Span>,
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
        let table = Table::deserialize(de::value::MapAccessDeserializer::new(map))?;
        let Table { allow: allowed, evictions, checkpoint_every, checkpoint_takes } = table;
        Ok(SpotChoice { allowed, evictions, checkpoint_every, checkpoint_takes })
    }
}
