//! `[needs]`: the GPUs and the machine that a workload needs.

use std::fmt;

use cudock_base::Arch;
use cudock_facts::tables::ComputeFormat;
use cudock_facts::version::Capability;
use schemars::JsonSchema;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::one_or_many;
use crate::{ByteSize, json_schema};

/// The GPUs and the machine that a workload needs. What is absent is found by inspection, or assumed.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Needs {
    /// Memory of each GPU: `"16GiB"`. Estimated from the model if absent.
    #[schemars(extend("pattern" = "[1-9]"))]
    pub gpu_memory: Option<ByteSize>,
    /// Number format that it calculates in: `"fp32"`, `"bf16"`, `"fp16"`, `"fp8"`, `"int8"`, `"int4"`.
    pub precision: Option<ComputeFormat>,
    /// GPUs in one instance: `8`.
    #[schemars(extend("minimum" = 1))]
    pub gpus: Option<u32>,
    /// Instances that work together: `2`.
    #[schemars(extend("minimum" = 1))]
    pub nodes: Option<u32>,
    /// Whether the GPUs of an instance must be connected by `NVLink`.
    pub nvlink: Option<bool>,
    /// Whether instances must be connected by `InfiniBand`.
    pub infiniband: Option<bool>,
    /// Compute capabilities it runs on: `"8.0"` is the least, `{ least = "7.0", greatest = "7.5" }` is a range.
    pub capability: Option<CapabilityRange>,
    /// Allowed GPUs: `"T4"`, or `["A100-80", "H100"]`; any if absent.
    #[serde(deserialize_with = "one_or_many::names")]
    #[schemars(schema_with = "json_schema::names")]
    pub gpu: Vec<String>,
    /// Virtual processors of an instance: `8`.
    #[schemars(extend("minimum" = 1))]
    pub cpu: Option<u32>,
    /// Main memory of an instance: `"64GiB"`.
    #[schemars(extend("pattern" = "[1-9]"))]
    pub memory: Option<ByteSize>,
    /// Processor architecture of the program.
    #[schemars(with = "String", extend("enum" = Arch::SPELLINGS))]
    pub architecture: Option<Arch>,
}

/// Compute capabilities from one to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CapabilityRange {
    pub least: Option<Capability>,
    /// The greatest: machine code without PTX runs on its own generation only.
    pub greatest: Option<Capability>,
}

impl<'de> Deserialize<'de> for CapabilityRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RangeVisitor)
    }
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RangeEnds {
    least: Option<RangeEnd>,
    greatest: Option<RangeEnd>,
}

struct RangeVisitor;

impl<'de> Visitor<'de> for RangeVisitor {
    type Value = CapabilityRange;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a compute capability such as \"8.0\", or { least = \"7.0\", greatest = \"7.5\" }")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<CapabilityRange, E> {
        let least = text.parse().map_err(E::custom)?;
        Ok(CapabilityRange { least: Some(least), greatest: None })
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<CapabilityRange, E> {
        self.visit_str(&number_text(number))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<CapabilityRange, A::Error> {
        let ends = RangeEnds::deserialize(de::value::MapAccessDeserializer::new(map))?;
        Ok(CapabilityRange { least: ends.least.map(|end| end.0), greatest: ends.greatest.map(|end| end.0) })
    }
}

struct RangeEnd(Capability);

impl<'de> Deserialize<'de> for RangeEnd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EndVisitor;
        impl Visitor<'_> for EndVisitor {
            type Value = RangeEnd;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a compute capability such as \"8.0\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<RangeEnd, E> {
                text.parse().map(RangeEnd).map_err(E::custom)
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<RangeEnd, E> {
                self.visit_str(&number_text(number))
            }
        }
        deserializer.deserialize_any(EndVisitor)
    }
}

/// The number `8.0` stands for `"8.0"`.
fn number_text(number: f64) -> String {
    format!("{number:?}")
}
