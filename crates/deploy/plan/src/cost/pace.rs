//! The speed of work on a machine: that of its GPU, limited by the data.

use crate::context::{Case, ReadMode};
use crate::cost::data;
use crate::ratio::Ratio;

/// Given speeds are in billionths.
const BILLION: u64 = 1_000_000_000;

/// The speed of an instance, relative to the one that was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pace {
    pub(crate) gpu: Ratio,
    /// The speed that the data allows; none if it never limits the work.
    pub(crate) data: Option<Ratio>,
    /// Milliseconds that reading the data of a job, an item or a trial takes: none is done sooner.
    reading: u128,
    /// Whether the GPU waits for data for more than a tenth of the time.
    pub(crate) is_data_bound: bool,
    pub(crate) known: SpeedSource,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpeedSource {
    /// The workload was measured on it.
    Measured,
    /// The workload gives it.
    Given,
    /// Derived from published throughput.
    Published,
    /// Unknown: assumed equal.
    Assumed,
}

impl Pace {
    pub(crate) fn of(case: &Case, mode: ReadMode) -> Self {
        let (speed, known) = gpu_speed(case);
        let (data, reading) = match mode {
            ReadMode::Stage => (None, 0),
            ReadMode::Stream => (data::bound(case), data::reading(case)),
        };
        let mut pace = Self { gpu: share_of(case, speed), data, reading, is_data_bound: false, known };
        // Without an end, any time will do.
        pace.is_data_bound = pace.waits(data::piece(case).map_or(3_600_000, |piece| piece.time));
        pace
    }

    pub(crate) fn speed(self) -> Ratio {
        self.data.map_or(self.gpu, |data| self.gpu.min(data))
    }

    /// How long a time of the workload takes on this machine.
    pub(crate) fn stretch(self, time: u128) -> Option<u128> {
        self.speed().stretch(time).map(|time| time.max(self.reading))
    }

    /// Whether more than a tenth of a time is waiting for data.
    fn waits(self, time: u128) -> bool {
        match (self.gpu.stretch(time), self.stretch(time)) {
            (Some(working), Some(takes)) => working.saturating_mul(10) < takes.saturating_mul(9),
            _ => false,
        }
    }
}

/// The speed of the GPU relative to the one that was measured.
fn gpu_speed(case: &Case) -> (Ratio, SpeedSource) {
    let needs = &case.workload().gpu;
    let Some(gpu) = case.machine.gpu.as_deref() else { return (Ratio::ONE, SpeedSource::Assumed) };
    if let Some(speed) = needs.speeds.get(gpu) {
        return (Ratio::new(*speed, BILLION), SpeedSource::Given);
    }
    match (needs.measured_on.as_deref(), case.context.measured_gflops, case.machine.gflops) {
        (Some(measured), _, _) if measured == gpu => (Ratio::ONE, SpeedSource::Measured),
        (Some(_), Some(there), Some(here)) if there > 0 && here > 0 => {
            (Ratio::new(here, there), SpeedSource::Published)
        }
        _ => (Ratio::ONE, SpeedSource::Assumed),
    }
}

/// A fraction of a GPU has the same fraction of its speed.
fn share_of(case: &Case, speed: Ratio) -> Ratio {
    match case.machine.gpus {
        Some(gpus) if gpus < 1000 => {
            Ratio::new(speed.num.saturating_mul(u64::from(gpus)), speed.den.saturating_mul(1000))
        }
        _ => speed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{HOUR, data, facts, job, on};
    use crate::workload::{DataNeeds, Workload};
    use cudock_facts::services::AzureOffering;

    const A100: &str = "Standard_NC24ads_A100_v4";

    fn reading(storage: &str, rate_per_gpu: u64) -> Workload {
        let mut workload = job(60);
        workload.gpu.measured_on = Some("A100-80".into());
        workload.data = Some(DataNeeds { rate_per_gpu: Some(rate_per_gpu), ..data(10_000_000_000, storage) });
        workload
    }

    fn pace(workload: &Workload, size: &str) -> Pace {
        on(workload, AzureOffering::Vm, size, |case| Pace::of(case, ReadMode::Stream))
    }

    #[test]
    fn work_takes_as_long_as_storage_and_machine_need_for_its_data() {
        for (storage, megabytes, instances, hours) in [
            // Standard files give 62 MB/s, the GPU uses 124: an hour takes two.
            ("files-standard-hot", 124, 1, 2),
            // Blobs are read as fast as the network of the size: 20 Gb/s are 2.5 GB/s.
            ("blob-hot", 2000, 1, 1),
            ("blob-hot", 5000, 1, 2),
            // Ten GB are a P4: 25 MB/s.
            ("managed-disk-premium", 25, 1, 1),
            ("managed-disk-premium", 50, 1, 2),
            // A share is read by all who work together: 62 MB/s for two instances are 31 for each, which uses 62.
            ("files-standard-hot", 62, 2, 2),
            // Blobs give each its network.
            ("blob-hot", 2000, 2, 1),
        ] {
            let mut workload = reading(storage, megabytes * 1_000_000);
            workload.gpu.instances = instances;
            let pace = pace(&workload, A100);
            assert_eq!(pace.stretch(HOUR), Some(hours * HOUR), "{storage} at {megabytes} MB/s");
        }
    }

    #[test]
    fn a_tenth_of_the_time_may_be_waiting() {
        for (storage, megabytes, is_bound) in [
            ("files-standard-hot", 124, true),
            ("blob-hot", 2000, false),
            // 2.5 GB/s of 2.75 GB/s: 9.1 % waiting; of 2.8 GB/s: 10.7 %.
            ("blob-hot", 2750, false),
            ("blob-hot", 2800, true),
        ] {
            let pace = pace(&reading(storage, megabytes * 1_000_000), A100);
            assert_eq!(pace.is_data_bound, is_bound, "{storage} at {megabytes} MB/s");
        }
    }

    #[test]
    fn work_takes_at_least_as_long_as_reading_all_of_its_data() {
        // 9 TB at 20 Gb/s, which are 2.5 GB/s, take an hour; how fast the GPU reads is not given.
        for (terabytes, passes, instances, hours) in
            [(9, 1, 1, 1), (18, 1, 1, 2), (9, 3, 1, 3), (36, 1, 2, 2), (1, 1, 1, 1)]
        {
            let mut workload = reading("blob-hot", 0);
            workload.gpu.instances = instances;
            let data = data(terabytes * 1_000_000_000_000, "blob-hot");
            workload.data = Some(DataNeeds { passes, ..data });
            let pace = pace(&workload, A100);
            assert_eq!(pace.stretch(HOUR), Some(hours * HOUR), "{terabytes} TB, {passes} passes");
            assert_eq!(pace.is_data_bound, hours > 1, "{terabytes} TB, {passes} passes");
        }
    }

    #[test]
    fn a_faster_gpu_does_not_outrun_its_data() {
        // Measured on a T4 at 62 MB/s, which is what the storage gives: no GPU is faster than that.
        let mut workload = reading("files-standard-hot", 62_000_000);
        workload.gpu.measured_on = Some("T4".into());
        assert_eq!(pace(&workload, A100).stretch(HOUR), Some(HOUR));
    }

    #[test]
    fn published_throughput_stands_in_for_a_measurement() {
        let mut workload = job(60);
        workload.gpu.measured_on = Some("A100-80".into());
        let pace = pace(&workload, "Standard_ND96isr_H100_v5");
        assert_eq!(pace.known, SpeedSource::Published);
        let tera = |id: &str| {
            let tflops = facts().gpus().find(id).one().unwrap().fp16_tflops;
            crate::catalog::machine::gflops(tflops.unwrap())
        };
        assert_eq!(pace.gpu, Ratio::new(tera("H100-SXM"), tera("A100-80")));
        workload.gpu.measured_on = None;
        let assumed = on(&workload, AzureOffering::Vm, A100, |case| Pace::of(case, ReadMode::Stream));
        assert_eq!((assumed.gpu, assumed.known), (Ratio::ONE, SpeedSource::Assumed));
    }

    #[test]
    fn data_that_was_copied_bounds_nothing() {
        let workload = reading("files-standard-hot", 124_000_000);
        let pace = on(&workload, AzureOffering::Vm, A100, |case| Pace::of(case, ReadMode::Stage));
        assert_eq!(pace.stretch(HOUR), Some(HOUR));
    }
}
