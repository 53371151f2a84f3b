//! How long a start takes, and how much of it is billed.

use cudock_facts::tables::{BilledFrom, SizeDriver};

use super::data;
use super::storage::DataStore;
use crate::context::{Case, ReadMode};
use cudock_base::mul_div_ceil;

const MB: u128 = 1_000_000;

/// The parts of a start, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Startup {
    pub(crate) provision: u128,
    pub(crate) driver: u128,
    pub(crate) pull: u128,
    pub(crate) unpack: u128,
    pub(crate) stage: u128,
    pub(crate) weights: u128,
    pub(crate) ready: u128,
    pub(crate) jit: u128,
    /// The part of the total that is billed.
    pub(crate) billed: u128,
}

impl Startup {
    /// A start of a case, with `copied` bytes of data copied to each instance.
    pub(crate) fn of(case: &Case, mode: ReadMode, copied: u64) -> Self {
        let Some(times) = case.terms.start else { return Self::default() };
        let start = &case.workload().start;
        let seconds = |count: u32| u128::from(count) * 1000;
        let reading =
            |bytes: u64, rate: u32| mul_div_ceil(u128::from(bytes), 1000, u128::from(rate.max(1)) * MB);
        // Service images contain the data center driver; GRID is installed by an extension.
        let grid = matches!(case.machine.driver, Some(SizeDriver::Grid | SizeDriver::GridV20));
        let jit = case.verdict().is_none_or(|verdict| verdict.jit);
        let (compressed, unpacked) =
            start.image.as_ref().map_or((0, 0), |image| (image.compressed, image.unpacked));
        let mut startup = Self {
            provision: seconds(times.provision_s),
            driver: if grid { seconds(times.gpu_driver_s.unwrap_or(0)) } else { 0 },
            pull: reading(compressed, times.pull_mb_per_s),
            unpack: reading(unpacked, times.unpack_mb_per_s),
            stage: if mode == ReadMode::Stage { fetch(case.context.store.as_ref(), case, copied) } else { 0 },
            weights: fetch(case.context.weights_store.as_ref(), case, start.weights),
            ready: start.ready.as_millis(),
            jit: if jit { start.jit.as_millis() } else { 0 },
            billed: 0,
        };
        let free = match times.billed_from {
            BilledFrom::Order => 0,
            BilledFrom::Machine => startup.provision,
            BilledFrom::Pull => startup.provision + startup.driver,
            BilledFrom::Container => {
                startup.provision + startup.driver.saturating_add(startup.pull).saturating_add(startup.unpack)
            }
        };
        startup.billed = startup.total().saturating_sub(free);
        startup
    }

    /// From the order to the first useful work.
    pub(crate) fn total(&self) -> u128 {
        let parts = [
            self.provision,
            self.driver,
            self.pull,
            self.unpack,
            self.stage,
            self.weights,
            self.ready,
            self.jit,
        ];
        parts.into_iter().fold(0, u128::saturating_add)
    }
}

/// How long fetching bytes from a storage takes.
fn fetch(store: Option<&DataStore>, case: &Case, bytes: u64) -> u128 {
    match store.and_then(|store| data::rate(case, store)) {
        Some(rate) => mul_div_ceil(u128::from(bytes), 1000, u128::from(rate)),
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::service::ServiceKind;
    use crate::testing::{SECOND, data, job, on};
    use crate::workload::{Access, DataNeeds, Workload};

    fn startup(workload: &Workload, service: ServiceKind, size: &str, mode: ReadMode) -> Startup {
        let bytes = workload.data.as_ref().map_or(0, |data| data.bytes);
        on(workload, service, size, |case| Startup::of(case, mode, bytes))
    }

    #[test]
    fn weights_come_from_blobs_by_default() {
        // 16 GB over 8 Gb/s, which is 1 GB/s.
        let mut workload = job(1);
        workload.start.weights = 16_000_000_000;
        let start = startup(&workload, ServiceKind::Vm, "Standard_NC4as_T4_v3", ReadMode::Stream);
        assert_eq!(start.weights, 16 * SECOND);
        assert_eq!(start.billed, (20 + 60 + 16 + 5) * SECOND);
        // A profile reads as the size with the same GPU and memory does.
        let start =
            startup(&workload, ServiceKind::ContainerApps, "Consumption-GPU-NC8as-T4", ReadMode::Stream);
        assert_eq!(start.weights, 16 * SECOND);
    }

    #[test]
    fn a_grid_driver_is_installed_first_and_billed() {
        let mut workload = job(1);
        workload.gpu.memory = 1;
        let start = startup(&workload, ServiceKind::Vm, "Standard_NV36ads_A10_v5", ReadMode::Stream);
        assert_eq!((start.driver, start.billed), (300 * SECOND, (300 + 20 + 60 + 5) * SECOND));
        let start = startup(&workload, ServiceKind::Aks, "Standard_NV36ads_A10_v5", ReadMode::Stream);
        assert_eq!(start.driver, 0, "a node comes with its driver");
    }

    #[test]
    fn jit_compilation_counts_without_a_verdict() {
        let mut workload = job(1);
        workload.start.jit = Duration::from_secs(30);
        let start = startup(&workload, ServiceKind::Vm, "Standard_NC4as_T4_v3", ReadMode::Stream);
        assert_eq!(start.jit, 30 * SECOND);
    }

    #[test]
    fn copying_takes_what_the_network_gives() {
        // 100 GB at 2.5 GB/s.
        let mut workload = job(1);
        workload.data = Some(DataNeeds { access: Access::Stage, ..data(100_000_000_000, "blob-hot") });
        let start = startup(&workload, ServiceKind::Vm, "Standard_NC24ads_A100_v4", ReadMode::Stage);
        assert_eq!(start.stage, 40 * SECOND);
    }
}
