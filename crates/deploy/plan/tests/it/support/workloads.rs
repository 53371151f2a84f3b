//! The workloads of the named scenarios. The benchmark ranks the whole catalog for each of them.

use std::collections::BTreeMap;
use std::time::Duration;

use cudock_base::{Arch, Rate};
use cudock_facts::tables::DataAccess;
use cudock_facts::version::{Capability, Date};
use cudock_plan::{
    Constraints, DataNeeds, DayLoad, GpuNeeds, Image, MachineNeeds, Spot, Start, Work, Workload,
};

pub(crate) const GB: u64 = 1_000_000_000;

/// The day all of them begin on.
pub(crate) fn begins() -> Date {
    Date::new(2026, 11, 16).expect("a Monday")
}

pub(crate) const fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(minutes * 60)
}

pub(crate) const fn hours(hours: u64) -> Duration {
    Duration::from_secs(hours * 3600)
}

/// A rate in thousandths per second.
pub(crate) fn per_second(thousandths: u64) -> Rate {
    Rate::from_nanos_per_day(u128::from(thousandths) * 86_400_000_000)
}

/// A rate in thousandths per hour.
pub(crate) fn per_hour(thousandths: u64) -> Rate {
    Rate::from_nanos_per_day(u128::from(thousandths) * 24_000_000)
}

/// A job on one GPU with 10 GB, an image of 4 GB (10 GB unpacked) and half a minute to get ready; no data, no
/// constraints.
pub(crate) fn job(duration: Duration) -> Workload {
    Workload {
        work: Work::Job { duration },
        gpu: GpuNeeds {
            memory: 10 * GB,
            per_instance: 1,
            instances: 1,
            least_capability: None,
            greatest_capability: None,
            models: Vec::new(),
            precision: None,
            nvlink: false,
            infiniband: false,
            measured_on: None,
            speeds: BTreeMap::new(),
        },
        machine: MachineNeeds { vcpu: 0, memory: 0, architecture: Some(Arch::X86_64.into()) },
        data: None,
        start: Start {
            image: Some(Image { compressed: 4 * GB, unpacked: 10 * GB, ..Image::default() }),
            weights: 0,
            ready: Duration::from_secs(30),
            jit: Duration::ZERO,
        },
        spot: None,
        constraints: Constraints { cold_starts_allowed: true, ..Constraints::default() },
        begins: begins(),
        assumptions: Vec::new(),
    }
}

/// Three days on two machines of eight H100, joined by `InfiniBand`.
pub(crate) fn llm_training() -> Workload {
    let mut workload = job(hours(72));
    workload.gpu.memory = 70 * GB;
    workload.gpu.per_instance = 8;
    workload.gpu.instances = 2;
    workload.gpu.nvlink = true;
    workload.gpu.infiniband = true;
    workload.gpu.models = vec!["H100-SXM".to_owned()];
    workload.gpu.measured_on = Some("H100-SXM".to_owned());
    workload
}

/// 10,000 images of six seconds each on a T4, done two hours after the order.
pub(crate) fn nightly_rendering() -> Workload {
    let mut workload = job(Duration::ZERO);
    workload.work = Work::Items { items: 10_000, each: Duration::from_secs(6), at_once: None };
    workload.gpu.models = vec!["T4".to_owned()];
    workload.gpu.measured_on = Some("T4".to_owned());
    workload.constraints.deadline = Some(hours(2));
    workload
}

/// So many thousandths of a request a second from 8 to 20 o'clock, none by night, on a T4 that answers ten a
/// second.
pub(crate) fn daytime_inference(millis: u64) -> Workload {
    let mut load = [Rate::ZERO; 24];
    load[8..20].fill(per_second(millis));
    let mut workload = job(Duration::ZERO);
    workload.work =
        Work::Serve { load: DayLoad { hours: load }, replica_rate: per_second(10_000), target_percent: 70 };
    workload.gpu.models = vec!["T4".to_owned()];
    workload.gpu.measured_on = Some("T4".to_owned());
    workload
}

/// 27 trials of 20 minutes, three at a time.
pub(crate) fn sweep() -> Workload {
    let mut workload = job(Duration::ZERO);
    workload.work = Work::Sweep { trials: 27, at_once: 3, each: minutes(20) };
    workload
}

/// A CUDA program that computes 40 minutes on a T4.
pub(crate) fn batch_job() -> Workload {
    let mut workload = job(minutes(40));
    workload.gpu.models = vec!["T4".to_owned()];
    workload.gpu.measured_on = Some("T4".to_owned());
    workload
}

/// How often ten hours at five GB a second go over 800 GB: 36,000 s x 5 GB/s = 180,000 GB.
const PASSES: u32 = 225;

/// Ten hours over 800 GB in Blob Storage by a loop that takes in five GB a second on either GPU.
pub(crate) fn data_bound_training(access: DataAccess) -> Workload {
    let mut workload = job(hours(10));
    workload.gpu.memory = 60 * GB;
    workload.gpu.models = vec!["A100-80".to_owned(), "H100-NVL".to_owned()];
    workload.gpu.measured_on = Some("A100-80".to_owned());
    workload.gpu.speeds = BTreeMap::from([("H100-NVL".to_owned(), 1_000_000_000)]);
    workload.data = Some(DataNeeds {
        bytes: 800 * GB,
        storage: "blob-hot".to_owned(),
        region: None,
        access,
        passes: PASSES,
        rate_per_gpu: Some(5 * GB),
        read_size: 8_000_000,
        leaves: 0,
    });
    workload
}

/// A day on an A100 that can be evicted twice in a hundred hours and saves its state every half hour.
pub(crate) fn spot_training() -> Workload {
    let mut workload = job(hours(24));
    workload.gpu.memory = 60 * GB;
    workload.gpu.models = vec!["A100-80".to_owned()];
    workload.gpu.measured_on = Some("A100-80".to_owned());
    workload.spot = Some(Spot {
        evictions: per_hour(20),
        checkpoint_every: Some(minutes(30)),
        checkpoint_takes: Duration::from_secs(30),
    });
    workload
}

/// Six hours of a program whose only machine code is for compute capability 7.0, with no PTX beside it.
pub(crate) fn volta_binary() -> Workload {
    let volta: Capability = "7.0".parse().expect("a capability");
    let mut workload = job(hours(6));
    workload.gpu.least_capability = Some(volta);
    workload.gpu.greatest_capability = Some(volta);
    workload
}

/// All of them with their names.
pub(crate) fn all() -> Vec<(&'static str, Workload)> {
    vec![
        ("LLM training, 2 x 8 H100, 3 days", llm_training()),
        ("10,000 images in 2 hours", nightly_rendering()),
        ("5 requests/s by day", daytime_inference(5000)),
        ("27 trials, 3 at a time", sweep()),
        ("CUDA batch job, 40 minutes", batch_job()),
        ("data-bound training", data_bound_training(DataAccess::Either)),
        ("spot, checkpoint every 30 minutes", spot_training()),
        ("V100-only binary", volta_binary()),
    ]
}
