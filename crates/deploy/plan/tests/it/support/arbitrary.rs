//! Workloads out of thin air: sensible ones, ones with every field at its worst, and sensible ones with a few
//! parts at their worst, which get further. Strategies are boxed: what they hold would not fit on the stack
//! of a test.

use cudock_facts::services::Management;
use std::collections::BTreeMap;
use std::time::Duration;

use cudock_base::{NamedArch, Rate, Usd};
use cudock_facts::tables::{ComputeFormat, DataAccess};
use cudock_facts::version::{Capability, Date};
use cudock_plan::{
    Constraints, DataNeeds, DayLoad, GpuNeeds, Image, MachineNeeds, Priority, Spot, Start, Work, Workload,
};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::workloads::{self, GB, per_hour, per_second};

/// Small numbers, all lengths of numbers, and both ends.
fn number() -> BoxedStrategy<u64> {
    prop_oneof![
        4 => 0_u64..100,
        4 => (any::<u64>(), 0_u32..64).prop_map(|(number, shift)| number >> shift),
        1 => Just(0),
        1 => Just(u64::MAX),
    ]
    .boxed()
}

fn small_number() -> BoxedStrategy<u32> {
    number().prop_map(|number| u32::try_from(number).unwrap_or(u32::MAX)).boxed()
}

fn time() -> BoxedStrategy<Duration> {
    prop_oneof![
        6 => (0_u64..2_000_000_000).prop_map(Duration::from_millis),
        2 => (number(), 0_u32..1_000_000_000).prop_map(|(seconds, nanos)| Duration::new(seconds, nanos)),
        1 => Just(Duration::ZERO),
        1 => Just(Duration::MAX),
    ]
    .boxed()
}

fn rate() -> BoxedStrategy<Rate> {
    let millis = prop_oneof![3 => 0_u64..20_000, 1 => Just(0), 1 => number()];
    millis.prop_map(per_second).boxed()
}

fn load() -> BoxedStrategy<DayLoad> {
    prop_oneof![
        rate().prop_map(|rate| [rate; 24]),
        (rate(), 0_usize..24).prop_map(|(rate, from)| {
            std::array::from_fn(|hour| if hour < from { Rate::ZERO } else { rate })
        }),
        prop::array::uniform24(rate()),
    ]
    .prop_map(|hours| DayLoad { hours })
    .boxed()
}

fn work() -> BoxedStrategy<Work> {
    prop_oneof![
        time().prop_map(|duration| Work::Job { duration }),
        (number(), time(), option::of(small_number())).prop_map(|(items, each, at_once)| Work::Items {
            items,
            each,
            at_once
        }),
        (small_number(), small_number(), time()).prop_map(|(trials, at_once, each)| Work::Sweep {
            trials,
            at_once,
            each
        }),
        (load(), rate(), any::<u8>()).prop_map(|(load, replica_rate, target_percent)| {
            Work::Serve { load, replica_rate, target_percent }
        }),
    ]
    .boxed()
}

fn capability() -> BoxedStrategy<Option<Capability>> {
    option::of(select(vec!["3.7", "5.2", "7.0", "7.5", "8.0", "9.0", "10.0", "12.0"]))
        .prop_map(|text| text.map(|text| text.parse().expect("a capability")))
        .boxed()
}

fn names(known: &[&str]) -> BoxedStrategy<Vec<String>> {
    let known: Vec<String> = known.iter().map(|name| (*name).to_owned()).collect();
    let most = known.len();
    prop_oneof![3 => Just(Vec::new()), 2 => subsequence(known, 0..=most)].boxed()
}

const GPUS: [&str; 7] = ["T4", "V100", "A10", "A100-80", "H100-NVL", "H100-SXM", "no-such-gpu"];

fn precision() -> BoxedStrategy<Option<ComputeFormat>> {
    use ComputeFormat::{Bf16, Fp4, Fp8, Fp16, Fp32, Fp64, Int4, Int8, Tf32};
    let formats = vec![Fp64, Fp32, Tf32, Bf16, Fp16, Fp8, Fp4, Int8, Int4];
    option::weighted(0.2, select(formats)).boxed()
}

fn gpu() -> BoxedStrategy<GpuNeeds> {
    let memory = prop_oneof![4 => (0_u64..200).prop_map(|gb| gb * GB), 1 => number()];
    let few = || prop_oneof![6 => 0_u32..9, 1 => small_number()];
    let name = || select(GPUS.to_vec()).prop_map(str::to_owned);
    let speeds = prop::collection::btree_map(name(), number(), 0..4);
    let amounts = (memory, few(), few(), capability(), capability(), precision());
    let kinds = (names(&GPUS), any::<bool>(), any::<bool>(), option::of(name()), speeds);
    (amounts, kinds)
        .prop_map(|(amounts, kinds): (_, (_, _, _, _, BTreeMap<String, u64>))| GpuNeeds {
            memory: amounts.0,
            per_instance: amounts.1,
            instances: amounts.2,
            least_capability: amounts.3,
            greatest_capability: amounts.4,
            precision: amounts.5,
            models: kinds.0,
            nvlink: kinds.1,
            infiniband: kinds.2,
            measured_on: kinds.3,
            speeds: kinds.4,
        })
        .boxed()
}

fn machine() -> BoxedStrategy<MachineNeeds> {
    (small_number(), number(), option::of(select(vec!["x86_64", "aarch64", "riscv64"])))
        .prop_map(|(vcpu, memory, architecture)| MachineNeeds {
            vcpu,
            memory,
            architecture: architecture.map(NamedArch::new),
        })
        .boxed()
}

fn data() -> BoxedStrategy<Option<DataNeeds>> {
    let access = select(vec![DataAccess::Stream, DataAccess::Stage, DataAccess::Either]);
    let access = (access, small_number());
    let storages = vec![
        "blob-hot",
        "blob-cool",
        "managed-disk-premium",
        "files-premium",
        "local-nvme",
        "no-such-storage",
    ];
    let region = option::of(select(vec!["eastus", "westeurope", "atlantis"]).prop_map(str::to_owned));
    let bytes = || prop_oneof![3 => (0_u64..20_000).prop_map(|gb| gb * GB), 1 => number()];
    let data = (bytes(), select(storages), region, access, option::of(number()), number(), bytes()).prop_map(
        |(bytes, storage, region, (access, passes), rate_per_gpu, read_size, leaves)| {
            let storage = storage.to_owned();
            DataNeeds { bytes, storage, region, access, passes, rate_per_gpu, read_size, leaves }
        },
    );
    option::of(data).boxed()
}

fn start() -> BoxedStrategy<Start> {
    let image = (number(), number()).prop_map(|(compressed, unpacked)| Image {
        compressed,
        unpacked,
        ..Image::default()
    });
    (option::of(image), number(), time(), time())
        .prop_map(|(image, weights, ready, jit)| Start { image, weights, ready, jit })
        .boxed()
}

fn spot() -> BoxedStrategy<Option<Spot>> {
    let spot =
        (number(), option::of(time()), time()).prop_map(|(evictions, checkpoint_every, checkpoint_takes)| {
            Spot { evictions: per_hour(evictions), checkpoint_every, checkpoint_takes }
        });
    option::of(spot).boxed()
}

fn constraints() -> BoxedStrategy<Constraints> {
    let management = select(vec![Management::Own, Management::Managed, Management::Serverless]);
    let priority = option::weighted(0.3, select(vec![Priority::Regular, Priority::Spot]));
    (
        names(&["eastus", "swedencentral", "westeurope", "westus3", "atlantis"]),
        names(&["vm", "batch", "aks", "ml-cluster", "ml-serverless", "ml-endpoint", "container-apps", "aci"]),
        names(&["Standard_NC4as_T4_v3", "Standard_ND96isr_H100_v5", "Standard_NC6s_v3", "Standard_None"]),
        priority,
        management,
        option::weighted(0.3, number().prop_map(|nanos| Usd::from_nanos(u128::from(nanos)))),
        option::weighted(0.3, time()),
        any::<bool>(),
    )
        .prop_map(
            |(regions, services, sizes, priority, management, budget, deadline, cold_starts_allowed)| {
                Constraints {
                    regions,
                    services,
                    sizes,
                    priority,
                    management,
                    budget,
                    deadline,
                    cold_starts_allowed,
                }
            },
        )
        .boxed()
}

fn begins() -> BoxedStrategy<Date> {
    let any_day = (1_i32..=9999, 1_i32..=12, 1_i32..=28)
        .prop_map(|(year, month, day)| Date::new(year, month, day).expect("the 28th is in every month"));
    prop_oneof![5 => Just(workloads::begins()), 1 => any_day].boxed()
}

/// Any workload at all.
pub(crate) fn workload() -> BoxedStrategy<Workload> {
    (work(), gpu(), machine(), data(), start(), spot(), constraints(), begins())
        .prop_map(|(work, gpu, machine, data, start, spot, constraints, begins)| Workload {
            work,
            gpu,
            machine,
            data,
            start,
            spot,
            constraints,
            begins,
            assumptions: Vec::new(),
        })
        .boxed()
}

/// A sensible workload with some parts replaced by any at all: most of these are priced, with figures nobody
/// has.
pub(crate) fn disturbed_workload() -> BoxedStrategy<Workload> {
    (sensible_workload(), workload(), prop::array::uniform8(prop::bool::weighted(0.25)))
        .prop_map(|(mut sensible, any, replaced)| {
            let [work, gpu, machine, data, start, spot, constraints, begins] = replaced;
            let put = |replace: bool, part: &mut dyn FnMut()| {
                if replace {
                    part();
                }
            };
            put(work, &mut || sensible.work = any.work.clone());
            put(gpu, &mut || sensible.gpu.clone_from(&any.gpu));
            put(machine, &mut || sensible.machine = any.machine.clone());
            put(data, &mut || sensible.data.clone_from(&any.data));
            put(start, &mut || sensible.start = any.start.clone());
            put(spot, &mut || sensible.spot.clone_from(&any.spot));
            put(constraints, &mut || sensible.constraints = any.constraints.clone());
            put(begins, &mut || sensible.begins = any.begins);
            sensible
        })
        .boxed()
}

fn sensible_work() -> BoxedStrategy<Work> {
    let time = || (1_u64..400_000).prop_map(Duration::from_secs);
    prop_oneof![
        3 => time().prop_map(|duration| Work::Job { duration }),
        1 => (1_u64..50_000, 100_u64..100_000, option::of(1_u32..20)).prop_map(|(items, millis, at_once)| {
            Work::Items { items, each: Duration::from_millis(millis), at_once }
        }),
        1 => (1_u32..100, 1_u32..12, time())
            .prop_map(|(trials, at_once, each)| Work::Sweep { trials, at_once, each }),
        2 => (prop::array::uniform24(0_u64..30_000), 100_u64..20_000, 10_u8..=100).prop_map(
            |(hours, millis, target_percent)| Work::Serve {
                load: DayLoad { hours: hours.map(per_second) },
                replica_rate: per_second(millis),
                target_percent,
            }),
    ]
    .boxed()
}

/// A workload that fits somewhere more often than not: the needs of the scenarios, with work and memory at
/// will.
pub(crate) fn sensible_workload() -> BoxedStrategy<Workload> {
    let known: Vec<Workload> = workloads::all().into_iter().map(|(_, workload)| workload).collect();
    let spot = (1_u64..300, option::of(60_u64..7200), 0_u64..120).prop_map(|(rate, every, takes)| Spot {
        evictions: per_hour(rate),
        checkpoint_every: every.map(Duration::from_secs),
        checkpoint_takes: Duration::from_secs(takes),
    });
    (select(known), sensible_work(), 1_u64..100, option::of(spot), any::<bool>(), any::<bool>())
        .prop_map(|(mut workload, work, gpu_gb, spot, any_model, cold_starts_allowed)| {
            workload.work = work;
            workload.gpu.memory = gpu_gb * GB;
            workload.spot = spot;
            workload.constraints.deadline = None;
            workload.constraints.cold_starts_allowed = cold_starts_allowed;
            if any_model {
                workload.gpu.models.clear();
                workload.gpu.measured_on = None;
            }
            workload
        })
        .boxed()
}
