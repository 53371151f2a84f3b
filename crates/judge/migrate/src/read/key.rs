//! Recognizes keys that matter here, in any language.

use super::names::folded;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// A virtual machine size is expected.
    Size,
    Location,
    /// A number of something.
    Count,
    Sku,
    /// The type or schema of a resource.
    Type,
    /// The cloud of a `SkyPilot` task.
    Cloud,
    /// The GPUs of a `SkyPilot` task.
    Accelerators,
    /// Low-priority nodes of a Batch pool.
    LowPriorityNodes,
    /// A number of low-priority nodes under a user-defined name.
    LowPriorityCount,
    /// Dedicated nodes of a Batch pool.
    DedicatedNodes,
    /// The default of a parameter.
    Default,
    /// Dedicated or not.
    Tier,
    /// Anything else.
    Other,
}

impl Key {
    pub(super) fn of(name: &str) -> Self {
        // Longer names are not in this list, and folding them would cost time.
        if name.len() > 40 {
            return Self::Other;
        }
        match folded(name).as_str() {
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

/// Whether a value of [`Key::Tier`] means machines that may be evicted.
pub(super) fn is_low_priority(value: &str) -> bool {
    matches!(folded(value).as_str(), "lowpriority" | "low" | "spot" | "true")
}
