//! What a container needs and may use.

use std::fmt;

use serde::Serialize;

/// The day Azure ended GPUs in container instances. A test holds it to the tables of `cudock-facts`.
pub const GPUS_ENDED: &str = "2025-07-14";

/// Requests and limits of a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Resources {
    /// What it is promised.
    pub requests: Amounts,
    /// What it may use, where that is more.
    pub limits: Option<Limits>,
}

/// An amount of everything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Amounts {
    /// Thousandths of a core, at least 1.
    pub cpu_millis: u32,
    /// Bytes, at least 1. Azure's GB are taken for 2^30 bytes.
    pub memory_bytes: u64,
    pub gpu: Option<RequestedGpu>,
}

/// Limits, each if it was given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Thousandths of a core, at least 1.
    pub cpu_millis: Option<u32>,
    /// Bytes, at least 1.
    pub memory_bytes: Option<u64>,
    pub gpu: Option<RequestedGpu>,
}

impl Resources {
    /// How much processor the container may use, in thousandths of a core: its limit, or its request, as in Azure.
    pub fn cpu_cap_millis(&self) -> u32 {
        self.limits.as_ref().and_then(|limits| limits.cpu_millis).unwrap_or(self.requests.cpu_millis)
    }

    /// How much memory the container may use, in bytes: its limit, or its request, as in Azure.
    pub fn memory_cap_bytes(&self) -> u64 {
        self.limits.as_ref().and_then(|limits| limits.memory_bytes).unwrap_or(self.requests.memory_bytes)
    }

    /// The GPUs it gets: those requested, or those of its limit.
    pub fn gpu(&self) -> Option<&RequestedGpu> {
        self.requests.gpu.as_ref().or_else(|| self.limits.as_ref()?.gpu.as_ref())
    }
}

/// GPUs of a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RequestedGpu {
    /// How many, at least 1.
    pub count: u32,
    pub sku: GpuSku,
}

impl RequestedGpu {
    /// What to say when the container gets a card of this name instead; nothing if it is the one asked for.
    pub fn other_card(&self, card: &str) -> Option<String> {
        if self.sku.is(card) {
            return None;
        }
        Some(format!("the group requests {}, this machine has {card}: measurements here differ", self.sku))
    }
}

/// The kinds of GPU that container instances had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum GpuSku {
    /// Tesla K80.
    K80,
    /// Tesla P100.
    P100,
    /// Tesla V100.
    V100,
    /// One that Azure never had here.
    #[serde(untagged)]
    Other(String),
}

impl GpuSku {
    pub fn named(name: &str) -> Self {
        match name.to_ascii_uppercase().as_str() {
            "K80" => Self::K80,
            "P100" => Self::P100,
            "V100" => Self::V100,
            _ => Self::Other(name.to_owned()),
        }
    }

    /// Whether a card as its driver names it (`Tesla V100-SXM2-16GB`) is of this kind.
    pub fn is(&self, card: &str) -> bool {
        let wanted = self.to_string();
        card.split(|letter: char| !letter.is_ascii_alphanumeric())
            .any(|word| word.eq_ignore_ascii_case(&wanted))
    }
}

impl fmt::Display for GpuSku {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::K80 => "K80",
            Self::P100 => "P100",
            Self::V100 => "V100",
            Self::Other(name) => name,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_day_gpus_ended_is_the_one_of_the_tables() {
        let facts = cudock_facts::Facts::embedded();
        let aci = facts.services().service.iter().find(|service| service.id == "aci").unwrap();
        assert_eq!(aci.gpu_retired_on.unwrap().to_string(), GPUS_ENDED);
    }

    #[test]
    fn a_card_is_known_by_a_whole_word_of_its_name() {
        let v100 = RequestedGpu { count: 1, sku: GpuSku::V100 };
        assert_eq!(v100.other_card("Tesla V100-SXM2-16GB"), None);
        let message = v100.other_card("NVIDIA H200").unwrap();
        assert_eq!(
            message,
            "the group requests V100, this machine has NVIDIA H200: measurements here differ"
        );
        assert!(!GpuSku::Other("H20".to_owned()).is("NVIDIA H200"));
    }

    #[test]
    fn without_a_limit_the_request_is_the_limit() {
        let requests = Amounts { cpu_millis: 500, memory_bytes: 1 << 30, gpu: None };
        let bare = Resources { requests: requests.clone(), limits: None };
        assert_eq!((bare.cpu_cap_millis(), bare.memory_cap_bytes()), (500, 1 << 30));
        let limits = Limits { cpu_millis: Some(2000), ..Limits::default() };
        let limited = Resources { requests, limits: Some(limits) };
        assert_eq!((limited.cpu_cap_millis(), limited.memory_cap_bytes()), (2000, 1 << 30));
    }
}
