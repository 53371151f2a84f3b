//! Resources that a container may use.

/// The day Azure ended GPUs in container instances. A test holds it to the tables of `cudock-facts`.
pub const GPUS_ENDED: &str = "2025-07-14";

/// The kinds of GPU that container instances had.
const SKUS: [&str; 3] = ["K80", "P100", "V100"];

/// The limits of a container; where the file has none, its requests, as in Azure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resources {
    /// Thousandths of a core, at least 1.
    pub cpu_millis: u32,
    /// Bytes, at least 1. Azure's GB are taken for 2^30 bytes.
    pub memory_bytes: u64,
    /// The requested GPUs, or those of the limits.
    pub gpu: Option<RequestedGpu>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedGpu {
    /// The number of GPUs; at least 1.
    pub count: u32,
    pub sku: String,
}

impl RequestedGpu {
    pub(crate) fn new(count: u32, sku: String) -> Self {
        let known = SKUS.iter().find(|known| known.eq_ignore_ascii_case(&sku));
        Self { count, sku: known.map_or(sku, |known| (*known).to_owned()) }
    }

    /// Whether Azure ever had them.
    pub(crate) fn was_offered(&self) -> bool {
        matches!(self.count, 1 | 2 | 4) && SKUS.contains(&self.sku.as_str())
    }

    /// The note for a container that gets a GPU of this name (`Tesla V100-SXM2-16GB`) instead; none
    /// if it is the requested one.
    pub fn other_card(&self, card: &str) -> Option<String> {
        let mut words = card.split(|letter: char| !letter.is_ascii_alphanumeric());
        if words.any(|word| word.eq_ignore_ascii_case(&self.sku)) {
            return None;
        }
        Some(format!("the group requests {}, this machine has {card}: measurements here differ", self.sku))
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
        let v100 = RequestedGpu::new(1, "v100".to_owned());
        assert_eq!(v100.other_card("Tesla V100-SXM2-16GB"), None);
        let message = v100.other_card("NVIDIA H200").unwrap();
        assert_eq!(
            message,
            "the group requests V100, this machine has NVIDIA H200: measurements here differ"
        );
        assert!(RequestedGpu::new(1, "H20".to_owned()).other_card("NVIDIA H200").is_some());
    }
}
