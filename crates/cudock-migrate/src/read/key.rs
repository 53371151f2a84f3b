//! Keys that mean something here, whatever language they stand in.

use super::names::folded;

/// The meaning of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// A virtual machine size is expected.
    Size,
    /// A region.
    Location,
    /// How many of something.
    Count,
    /// Which kind of something.
    Sku,
    /// What a resource is: its type, or the schema it follows.
    Type,
    /// Where a `SkyPilot` task runs.
    Cloud,
    /// The GPUs of a `SkyPilot` task.
    Accelerators,
    /// Low-priority nodes of a Batch pool.
    LowPriorityNodes,
    /// A number of low-priority nodes under a name of the text's own.
    LowPriorityCount,
    /// Dedicated nodes of a Batch pool.
    DedicatedNodes,
    /// What a parameter is if nobody says otherwise.
    Default,
    /// Dedicated or not.
    Tier,
    /// Anything else.
    Other,
}

impl Key {
    pub(super) fn of(word: &str) -> Self {
        // Longer words are no keys of ours, and folding them would cost.
        if word.len() > 40 {
            return Self::Other;
        }
        match folded(word).as_str() {
            "size" | "vmsize" | "nodevmsize" | "virtualmachinesize" | "instancetype" | "vmsku"
            | "poolvmsize" | "vmtype" | "agentvmsize" => Self::Size,
            "location" | "region" | "azurelocation" | "azureregion" => Self::Location,
            "count" => Self::Count,
            "sku" => Self::Sku,
            "type" | "schema" => Self::Type,
            "cloud" | "infra" => Self::Cloud,
            "accelerators" => Self::Accelerators,
            "targetlowprioritynodes" => Self::LowPriorityNodes,
            name if name.contains("lowpriority") => Self::LowPriorityCount,
            "targetdedicatednodes" => Self::DedicatedNodes,
            "default" | "defaultvalue" => Self::Default,
            "tier" | "vmpriority" | "priority" | "usespot" | "scalesetpriority" => Self::Tier,
            _ => Self::Other,
        }
    }
}

/// Whether a value of [`Key::Tier`] stands for machines that may be taken away.
pub(super) fn is_low_priority(value: &str) -> bool {
    matches!(folded(value).as_str(), "lowpriority" | "low" | "spot" | "true")
}
