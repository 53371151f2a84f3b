use cudock_facts::services::AzureOffering;
use std::time::Duration;

use cudock_base::Arch;
use cudock_plan::{DayLoad, Placement, Spot, Work, Workload};

use super::Case;
use crate::support::workloads::{GB, hours, job, minutes, per_hour, per_second};

const RESTRICTED: [&str; 9] = [
    "australiacentral2",
    "brazilsoutheast",
    "francesouth",
    "germanynorth",
    "norwaywest",
    "southafricawest",
    "swedensouth",
    "switzerlandwest",
    "uaecentral",
];
const RTX: [&str; 2] = ["southeastasia", "westus2"];
const JOBS: &[AzureOffering] = &[AzureOffering::Vm, AzureOffering::Batch, AzureOffering::MlCluster];

/// What no answer may have among its first three, whatever the question: a region that is not open to all.
fn closed(one: &Placement) -> bool {
    RESTRICTED.contains(&one.region.as_str()) || one.region.starts_with("jio")
}

fn on(mut workload: Workload, change: impl FnOnce(&mut Workload)) -> Workload {
    change(&mut workload);
    workload
}

fn with_gpu(duration: Duration, gpus: &[&str], memory: u64) -> Workload {
    on(job(duration), |work| {
        work.gpu.models = gpus.iter().map(|gpu| (*gpu).to_owned()).collect();
        work.gpu.memory = memory * GB;
        work.gpu.measured_on = gpus.first().map(|gpu| (*gpu).to_owned());
    })
}

fn serving(millis: u64, cold: bool, gpu: &str) -> Workload {
    on(with_gpu(Duration::ZERO, &[gpu], 10), |work| {
        let load = DayLoad { hours: [per_second(millis); 24] };
        work.work = Work::Serve { load, replica_rate: per_second(10_000), target_percent: 70 };
        work.constraints.cold_starts_allowed = cold;
    })
}

fn in_regions(workload: Workload, regions: &[&str]) -> Workload {
    on(workload, |work| work.constraints.regions = regions.iter().map(|name| (*name).to_owned()).collect())
}

fn on_services(workload: Workload, services: &[&str]) -> Workload {
    on(workload, |work| work.constraints.services = services.iter().map(|name| (*name).to_owned()).collect())
}

#[allow(clippy::too_many_lines, reason = "a table")]
pub(super) fn all() -> Vec<Case> {
    use AzureOffering::{Aks, Batch, ContainerApps, MlCluster, MlEndpoint, MlServerless, Vm};
    vec![
        Case {
            name: "a T4 for 40 minutes",
            workload: with_gpu(minutes(40), &["T4"], 14),
            first: &["Standard_NC4as_T4_v3"],
            services: &[Batch, MlCluster],
            regions: &[],
            forbidden: closed,
            why: "NC4as_T4_v3 is the smallest T4 size; Batch and Machine Learning clusters are documented to take it",
        },
        Case {
            name: "the example of plan --help",
            workload: on(job(hours(3)), |work| work.gpu.memory = 40 * GB),
            first: &[
                "Standard_NC24ads_A100_v4",
                "Standard_NC72lds_xl_RTXPRO6000BSE_v6",
                "Standard_NC72ds_xl_RTXPRO6000BSE_v6",
            ],
            services: &[],
            regions: &[],
            forbidden: |one| {
                closed(one) || (one.size.contains("RTXPRO") && !RTX.contains(&one.region.as_str()))
            },
            why: "no restricted region and no RTX PRO 6000 outside of its two regions in an answer for everybody",
        },
        Case {
            name: "an A100 with 80 GB for ten hours",
            workload: with_gpu(hours(10), &["A100-80"], 70),
            first: &["Standard_NC24ads_A100_v4"],
            services: &[Vm],
            regions: &[],
            forbidden: |one| closed(one) || one.service == Batch,
            why: "Batch lists no NC_A100_v4; Machine Learning is known to run it, a virtual machine is documented",
        },
        Case {
            name: "one H100 for a day",
            workload: with_gpu(hours(24), &["H100-NVL"], 80),
            first: &["Standard_NC40ads_H100_v5", "Standard_NCC40ads_H100_v5"],
            services: &[Vm, Aks],
            regions: &[],
            forbidden: |one| closed(one) || (one.size.contains("NCC") && !matches!(one.service, Vm | Aks)),
            why: "NCC40ads_H100_v5 is a confidential VM, which Batch and Machine Learning do not make",
        },
        Case {
            name: "one H100 on Machine Learning",
            workload: on_services(with_gpu(hours(24), &["H100-NVL"], 80), &["ml"]),
            first: &["Standard_NC40ads_H100_v5"],
            services: &[MlCluster, MlServerless],
            regions: &[],
            forbidden: |one| closed(one) || one.size.contains("NCC"),
            why: "a cluster of NC40ads_H100_v5 is known to have run (2026-02); confidential VMs are not made there",
        },
        Case {
            name: "a whole RTX PRO 6000",
            workload: with_gpu(hours(8), &["RTX-PRO-6000-SE"], 90),
            first: &["Standard_NC144lds_xl_RTXPRO6000BSE_v6", "Standard_NC144ds_xl_RTXPRO6000BSE_v6"],
            services: &[Vm, Aks],
            regions: &RTX,
            forbidden: |one| !RTX.contains(&one.region.as_str()) || !matches!(one.service, Vm | Aks),
            why: "generally available in westus2 and southeastasia only; Batch was planned, Machine Learning does not list it",
        },
        Case {
            name: "an RTX PRO 6000 in eastus",
            workload: in_regions(with_gpu(hours(8), &["RTX-PRO-6000-SE"], 90), &["eastus"]),
            first: &[],
            services: &[],
            regions: &[],
            forbidden: |_| true,
            why: "a price meter exists in eastus, the size does not",
        },
        Case {
            name: "a V100 of either memory",
            workload: with_gpu(hours(2), &["V100"], 16),
            first: &["Standard_ND40rs_v2"],
            services: &[MlCluster, Vm],
            regions: &[],
            forbidden: |one| closed(one) || one.size.contains("s_v3") || one.service == Batch,
            why: "NCv3 is retired but in regions that are not public; Batch does not take NDv2",
        },
        Case {
            name: "two machines of eight H100 with InfiniBand",
            workload: on(with_gpu(hours(72), &["H100-SXM"], 70), |work| {
                (work.gpu.per_instance, work.gpu.instances, work.gpu.infiniband) = (8, 2, true);
            }),
            first: &["Standard_ND96isr_H100_v5"],
            services: &[MlCluster, Vm],
            regions: &[],
            forbidden: |one| closed(one) || one.service == Batch,
            why: "Batch has ND H100 in select regions that no list names",
        },
        Case {
            name: "eight H200",
            workload: on(with_gpu(hours(24), &["H200"], 130), |work| work.gpu.per_instance = 8),
            first: &["Standard_ND96isr_H200_v5"],
            services: &[MlCluster, Vm],
            regions: &[],
            forbidden: |one| closed(one) || one.service == Batch,
            why: "Machine Learning's table of 2025-11 names ND-H200-v5; no page of Batch does",
        },
        Case {
            name: "eight A100 with 80 GB on Machine Learning",
            workload: on_services(
                on(with_gpu(hours(24), &["A100-80"], 70), |work| work.gpu.per_instance = 8),
                &["ml"],
            ),
            first: &[],
            services: &[],
            regions: &[],
            forbidden: |_| true,
            why: "the table of 2025-11 names NDasrA100_v4 (40 GB) and not NDm_A100_v4",
        },
        Case {
            name: "eight A100 with 40 GB on Batch",
            workload: on_services(
                on(with_gpu(hours(24), &["A100-40"], 38), |work| work.gpu.per_instance = 8),
                &["batch"],
            ),
            first: &["Standard_ND96asr_v4"],
            services: &[Batch],
            regions: &[],
            forbidden: closed,
            why: "Batch's last table has NDv4 with all sizes",
        },
        Case {
            name: "an A10 for serving",
            workload: serving(5000, false, "A10"),
            first: &["Standard_NV18ads_A10_v5", "Standard_NV36ads_A10_v5"],
            services: &[Vm, MlEndpoint, Aks],
            regions: &[],
            forbidden: closed,
            why: "managed online endpoints list the A10 sizes; half a card has 12 GB for the 10 GB needed",
        },
        Case {
            name: "four requests an hour",
            workload: serving(1, true, "T4"),
            first: &["Consumption-GPU-NC8as-T4"],
            services: &[ContainerApps],
            regions: &[],
            forbidden: closed,
            why: "Container Apps bill by the second and scale to zero; a machine is paid for all month",
        },
        Case {
            name: "five requests a second, always up",
            workload: serving(5000, false, "T4"),
            first: &["Standard_NC4as_T4_v3"],
            services: &[Vm, MlEndpoint],
            regions: &[],
            forbidden: |one| closed(one) || one.service == ContainerApps,
            why: "a T4 that is busy all day is cheapest as a virtual machine",
        },
        Case {
            name: "a T4 on Container Apps in eastus2",
            workload: on_services(in_regions(serving(1, true, "T4"), &["eastus2"]), &["container-apps"]),
            first: &[],
            services: &[],
            regions: &[],
            forbidden: |_| true,
            why: "eastus2 is not among the regions of the GPU profiles",
        },
        Case {
            name: "an A100 that can be evicted",
            workload: on(with_gpu(hours(24), &["A100-80"], 60), |work| {
                work.spot = Some(Spot {
                    evictions: per_hour(20),
                    checkpoint_every: Some(minutes(30)),
                    checkpoint_takes: Duration::from_secs(30),
                });
            }),
            first: &["Standard_NC24ads_A100_v4"],
            services: &[Vm],
            regions: &[],
            forbidden: |one| closed(one) || one.service == Batch,
            why: "Spot of NC24ads_A100_v4 costs a fraction, and checkpoints bound what an eviction takes",
        },
        Case {
            name: "27 trials on T4s",
            workload: on(with_gpu(Duration::ZERO, &["T4"], 14), |work| {
                work.work = Work::Sweep { trials: 27, at_once: 3, each: minutes(20) };
            }),
            first: &["Standard_NC4as_T4_v3"],
            services: JOBS,
            regions: &[],
            forbidden: closed,
            why: "three small T4 machines; documented on Batch, Machine Learning clusters and virtual machines",
        },
        Case {
            name: "an A10 on Machine Learning jobs",
            workload: on_services(with_gpu(hours(4), &["A10"], 20), &["ml"]),
            first: &[],
            services: &[],
            regions: &[],
            forbidden: |_| true,
            why: "NVadsA10_v5 is not in Machine Learning's table of 2025-11",
        },
        Case {
            name: "V100s on Batch",
            workload: on_services(with_gpu(hours(4), &["V100"], 16), &["batch"]),
            first: &[],
            services: &[],
            regions: &[],
            forbidden: |_| true,
            why: "Batch's last table says none of NDv2, and NCv3 is retired",
        },
        Case {
            name: "6,000 T4 machines that work together",
            workload: on(with_gpu(hours(4), &["T4"], 14), |work| work.gpu.instances = 6000),
            first: &["Standard_NC4as_T4_v3"],
            services: &[Vm],
            regions: &[],
            forbidden: |one| closed(one) || matches!(one.service, Aks | Batch | MlCluster | MlServerless),
            why: "an AKS cluster has 5,000 nodes at most; Batch and Machine Learning join 100",
        },
        Case {
            name: "an arm64 image with a GB200",
            workload: on(with_gpu(hours(4), &["GB200"], 180), |work| {
                work.machine.architecture = Some(Arch::Aarch64.into());
            }),
            first: &["Standard_ND128isr_NDR_GB200_v6"],
            services: &[Vm],
            regions: &[],
            forbidden: |one| closed(one) || one.service != Vm,
            why: "no page of AKS names GB200, and GPU pools of Batch are x86_64",
        },
        Case {
            name: "a K80",
            workload: with_gpu(hours(1), &["K80"], 12),
            first: &[],
            services: &[],
            regions: &[],
            forbidden: |_| true,
            why: "the K80 series was retired on 2023-09-06",
        },
        Case {
            name: "eight A100 in Germany North, which is named",
            workload: in_regions(
                on(with_gpu(hours(24), &["A100-80"], 70), |work| work.gpu.per_instance = 8),
                &["germanynorth", "westeurope"],
            ),
            first: &["Standard_ND96amsr_A100_v4"],
            services: &[Vm, Aks],
            regions: &["westeurope"],
            forbidden: |one| {
                one.region == "germanynorth" && !one.warnings.iter().any(|found| found.code == "CD0826")
            },
            why: "Germany North gives access on request: named, it comes last and says so",
        },
        Case {
            name: "small work that any GPU can do",
            workload: job(hours(1)),
            first: &["Standard_NC4as_T4_v3"],
            services: JOBS,
            regions: &[],
            forbidden: closed,
            why: "the T4 is the cheapest NVIDIA GPU with 10 GB",
        },
        Case {
            name: "a managed service for an A100 job in westeurope",
            workload: on(in_regions(with_gpu(hours(10), &["A100-80"], 70), &["westeurope"]), |work| {
                work.constraints.management = cudock_facts::services::Management::Managed;
            }),
            first: &["Standard_NC24ads_A100_v4"],
            services: &[MlCluster, MlServerless],
            regions: &["westeurope"],
            forbidden: |one| one.service == Batch,
            why: "Machine Learning is known to run NC_A100_v4; Batch does not list it",
        },
    ]
}
