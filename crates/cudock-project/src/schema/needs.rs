//! `[needs]`: what a workload needs of GPUs and of the machine around them.

use std::fmt;

use cudock_base::Arch;
use cudock_facts::version::Capability;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::words;
use crate::ByteSize;

/// What a workload needs; what is left out is found by inspection, or assumed.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Needs {
    /// Memory of each GPU: `"16GiB"`. Estimated from the model if left out.
    pub gpu_memory: Option<ByteSize>,
    /// Precision of its numbers: `"fp32"`, `"bf16"`, `"fp16"`, `"fp8"`, `"int8"`, `"int4"`.
    pub precision: Option<String>,
    /// GPUs in one instance: `8`.
    pub gpus: Option<u32>,
    /// Instances that work together: `2`.
    pub nodes: Option<u32>,
    /// Whether the GPUs of an instance must be joined by `NVLink`.
    pub nvlink: Option<bool>,
    /// Whether instances must be joined by `InfiniBand`.
    pub infiniband: Option<bool>,
    /// Compute capabilities it runs on: `"8.0"` is the least, `{ least = "7.0", greatest = "7.5" }` is a range.
    pub capability: Option<CapabilityRange>,
    /// GPUs that will do: `"T4"`, or `["A100-80", "H100"]`; any if left out.
    #[serde(deserialize_with = "words::one_or_more")]
    pub gpu: Vec<String>,
    /// Virtual processors of an instance: `8`.
    pub cpu: Option<u32>,
    /// Main memory of an instance: `"64GiB"`.
    pub memory: Option<ByteSize>,
    /// The processor the program is made for.
    pub architecture: Option<Arch>,
}

/// Compute capabilities from one to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CapabilityRange {
    /// The least.
    pub least: Option<Capability>,
    /// The greatest: machine code alone runs on its own generation only.
    pub greatest: Option<Capability>,
}

impl<'de> Deserialize<'de> for CapabilityRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RangeVisitor)
    }
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Ends {
    least: Option<One>,
    greatest: Option<One>,
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
        self.visit_str(&written(number))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<CapabilityRange, A::Error> {
        let ends = Ends::deserialize(de::value::MapAccessDeserializer::new(map))?;
        Ok(CapabilityRange { least: ends.least.map(|end| end.0), greatest: ends.greatest.map(|end| end.0) })
    }
}

/// A capability, as text or as the number it looks like.
struct One(Capability);

impl<'de> Deserialize<'de> for One {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneVisitor;
        impl Visitor<'_> for OneVisitor {
            type Value = One;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a compute capability such as \"8.0\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<One, E> {
                text.parse().map(One).map_err(E::custom)
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<One, E> {
                self.visit_str(&written(number))
            }
        }
        deserializer.deserialize_any(OneVisitor)
    }
}

/// `8.0` in a file is a number, and stands for `"8.0"`.
fn written(number: f64) -> String {
    format!("{number:?}")
}
