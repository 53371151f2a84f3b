//! Processors and memory, in the steps that services take.
//!
//! Requested amounts are rounded up. Limits are multiples of the steps, so that nothing is rounded
//! beyond one.

/// Processors and GiB of memory of a container.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Amounts {
    pub(crate) cpus: f64,
    pub(crate) memory_gib: f64,
}

/// How many parts of a unit a service takes.
#[derive(Debug, Clone, Copy)]
struct Steps {
    per_cpu: f64,
    per_gib: f64,
}

/// The steps that the service's error messages name: multiples of 0.01 processors and of 0.1 GB.
const CONTAINER_INSTANCES: Steps = Steps { per_cpu: 100.0, per_gib: 10.0 };
/// Quarters of a processor, and half a GiB for each.
const CONTAINER_APPS: Steps = Steps { per_cpu: 4.0, per_gib: 2.0 };
/// GiB of memory that each processor comes with on the consumption profile.
const CONSUMPTION_GIB: f64 = 2.0;

/// Tolerated error of a conversion: about a KiB.
const NOISE: f64 = 1e-6;

impl Steps {
    fn round_up(self, amounts: Amounts) -> Amounts {
        let up =
            |amount: f64, per_unit: f64| (amount * per_unit - NOISE * per_unit).ceil().max(1.0) / per_unit;
        Amounts { cpus: up(amounts.cpus, self.per_cpu), memory_gib: up(amounts.memory_gib, self.per_gib) }
    }
}

impl Amounts {
    pub(crate) fn of_container_instances(self) -> Self {
        CONTAINER_INSTANCES.round_up(self)
    }

    /// Rounds for a workload profile with machines of its own, or for that without.
    pub(crate) fn of_container_apps(self, has_profile: bool) -> Self {
        if has_profile {
            return CONTAINER_APPS.round_up(self);
        }
        let cpus = self.cpus.max(self.memory_gib / CONSUMPTION_GIB);
        let rounded = CONTAINER_APPS.round_up(Self { cpus, ..self });
        Self { memory_gib: rounded.cpus * CONSUMPTION_GIB, ..rounded }
    }
}
