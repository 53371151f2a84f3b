//! Rates how well a size replaces another.

use schemars::JsonSchema;
use serde::Serialize;

use super::old::MachineGpu;

/// How well a size replaces the old one, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fit {
    /// As many GPUs, each with as much memory.
    Whole,
    /// Fewer GPUs, with as much memory in all.
    FewerGpus,
    /// Less GPU memory.
    TooSmall,
}

impl Fit {
    /// How well GPUs replace others. Unknown properties are not compared.
    pub(super) fn of(old: Option<&MachineGpu>, new: &MachineGpu) -> Self {
        let Some(old) = old else { return Self::Whole };
        let (Some(needed), Some(given)) = (old.memory_gb, new.memory_gb) else {
            return if new.devices() >= old.devices() { Self::Whole } else { Self::FewerGpus };
        };
        if given >= needed && new.devices() >= old.devices() {
            Self::Whole
        } else if given >= needed && given * new.devices() >= needed * old.devices() {
            Self::FewerGpus
        } else {
            Self::TooSmall
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(count: f64, memory: f64) -> MachineGpu {
        MachineGpu { id: "X".to_owned(), count, memory_gb: Some(memory), capability: None }
    }

    #[test]
    fn as_many_gpus_with_as_much_memory_fit() {
        let four = gpu(4.0, 16.0);
        assert_eq!(Fit::of(Some(&four), &gpu(4.0, 16.0)), Fit::Whole);
        assert_eq!(Fit::of(Some(&four), &gpu(1.0, 94.0)), Fit::FewerGpus);
        assert_eq!(Fit::of(Some(&four), &gpu(2.0, 24.0)), Fit::TooSmall);
        assert_eq!(Fit::of(Some(&gpu(1.0, 12.0)), &gpu(0.5, 12.0)), Fit::Whole);
        assert_eq!(Fit::of(None, &gpu(1.0, 1.0)), Fit::Whole);
    }
}
