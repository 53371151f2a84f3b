use std::time::Duration;

use cudock_base::{Arch, NamedArch};
use cudock_facts::tables::{ComputeFormat, DataAccess};

use super::{SERVICE_RULES, SIZE_RULES, judge};
use crate::context::{Case, PlanContext};
use crate::testing::{T4, catalog, data, facts, job, on, per_second, workload};
use crate::verdict::{SizeVerdict, Verdicts};
use crate::workload::{DataNeeds, DayLoad, Image, Work, Workload};
use cudock_facts::services::AzureOffering;
use cudock_facts::services::Management;

const H100: &str = "Standard_ND96isr_H100_v5";
const VM: AzureOffering = AzureOffering::Vm;

/// The code and the reason for which a size on a service is rejected.
fn rejection(workload: &Workload, service: AzureOffering, size: &str) -> Option<(&'static str, String)> {
    on(workload, service, size, |case| {
        let first = |rules: &'static [super::FitRule]| {
            judge(rules, case).map(|(index, _)| {
                let rule = &rules[usize::from(index)];
                (rule.code, (rule.describe)(case))
            })
        };
        first(&SERVICE_RULES).or_else(|| first(&SIZE_RULES))
    })
}

#[track_caller]
fn rejected(workload: &Workload, service: AzureOffering, size: &str, code: &str, text: &str) {
    let found = rejection(workload, service, size);
    let (found_code, found_text) = found.expect("is rejected");
    assert_eq!((found_code, found_text.as_str()), (code, text));
}

#[track_caller]
fn fits(workload: &Workload, service: AzureOffering, size: &str) {
    assert_eq!(rejection(workload, service, size), None);
}

fn with(change: impl FnOnce(&mut Workload)) -> Workload {
    let mut workload = job(60);
    change(&mut workload);
    workload
}

fn serving(millis: u64, replica: u64, target_percent: u8) -> Workload {
    let load = DayLoad { hours: [per_second(millis); 24] };
    workload(Work::Serve { load, replica_rate: per_second(replica), target_percent })
}

#[test]
fn sizes_that_no_job_fits_are_rejected_with_the_reason() {
    for (service, size, code, text) in [
        (
            AzureOffering::Aci,
            T4,
            "CD0803",
            "Container Instances has no GPUs since 2025-07-14; Container Apps serverless GPU replaces it",
        ),
        (VM, "Standard_NC6", "CD0801", "retired on 2023-09-06; use Standard_NC4as_T4_v3"),
        (VM, "Standard_NC128ds_xl_RTXPRO6000BSE_v6", "CD0801", "its preview has ended"),
        (VM, "Standard_NC16ads_A10_v4", "CD0812", "undocumented: only a price is known"),
        (VM, "Standard_ND96isr_MI300X_v5", "CD0814", "MI300X is an AMD GPU, which does not run CUDA"),
        (
            AzureOffering::Batch,
            "Standard_NV36ads_A10_v5",
            "CD0819",
            "requires a GRID driver; Batch provides another, which does not install there",
        ),
    ] {
        rejected(&job(60), service, size, code, text);
    }
    // V100 ends later in a few regions, which are not public: the reason is reported for each named region.
    let named = |region: &str| with(|workload| workload.constraints.regions = vec![region.into()]);
    let retired = "retired on 2025-09-30; use NC_A100_v4 or Standard_NC40ads_H100_v5 for large work, \
                   NCasT4_v3 for offline inference, NVadsA10_v5 for small work";
    rejected(&job(60), VM, "Standard_NC6s_v3", "CD0801", retired);
    rejected(&named("westeurope"), VM, "Standard_NC6s_v3", "CD0801", retired);
    fits(&named("jioindiawest"), VM, "Standard_NC6s_v3");
    fits(&job(60), VM, "Standard_NV36ads_A10_v5");
}

#[test]
fn services_run_jobs_or_serve_requests() {
    let endpoint = "Machine Learning endpoint serves requests and does not run jobs";
    rejected(&job(60), AzureOffering::MlEndpoint, T4, "CD0818", endpoint);
    let batch = "Batch runs jobs and does not serve requests";
    rejected(&serving(1000, 1000, 50), AzureOffering::Batch, T4, "CD0818", batch);
    fits(&serving(1000, 1000, 50), AzureOffering::MlEndpoint, T4);
}

#[test]
fn container_instances_run_jobs_and_serve_requests() {
    for workload in [job(60), serving(1000, 1000, 50)] {
        on(&workload, AzureOffering::Aci, T4, |case| {
            let rule = SERVICE_RULES.iter().find(|rule| rule.code == "CD0818").unwrap();
            assert_eq!((rule.gap)(case), None, "{}", (rule.describe)(case));
        });
    }
}

#[test]
fn a_service_that_is_not_allowed_is_rejected() {
    let batch = with(|workload| workload.constraints.services = vec!["batch".into()]);
    rejected(&batch, VM, T4, "CD0817", "service vm; allowed: batch");
    fits(&batch, AzureOffering::Batch, T4);
    // The name in the table stands for all kinds of the service.
    let ml = with(|workload| workload.constraints.services = vec!["ml".into()]);
    fits(&ml, AzureOffering::MlCluster, T4);
    let managed = with(|workload| workload.constraints.management = Management::Managed);
    let text = "Virtual Machine has user-managed machines; required: machines managed by the service";
    rejected(&managed, VM, T4, "CD0817", text);
    fits(&managed, AzureOffering::ContainerApps, "Consumption-GPU-NC8as-T4");
}

#[test]
fn impossible_workloads_are_rejected() {
    let none = with(|workload| workload.gpu.instances = 0);
    rejected(&none, VM, T4, "CD0815", "the workload needs 0 instances; ask for 1 or more");
    let text = "an instance that answers 0 requests per second cannot serve the load";
    rejected(&serving(1000, 0, 50), VM, T4, "CD0815", text);
    let text = "instances at 0 % utilization cannot serve the load; use a target of 1 to 100 %";
    rejected(&serving(1000, 1000, 0), VM, T4, "CD0815", text);
    fits(&serving(0, 0, 0), VM, T4);
    let each = Duration::from_secs(1);
    let sweep = workload(Work::Sweep { trials: 3, at_once: 0, each });
    rejected(&sweep, VM, T4, "CD0815", "0 trials at a time never finish; use 1 or more");
    let items = workload(Work::Items { items: 3, each, at_once: Some(0) });
    rejected(&items, VM, T4, "CD0815", "items on 0 instances never finish; use 1 or more");
}

#[test]
fn sizes_and_gpus_that_are_not_allowed_are_rejected() {
    let sizes = with(|workload| workload.constraints.sizes = vec!["nc8as_t4_V3".into()]);
    rejected(&sizes, VM, T4, "CD0817", "allowed sizes: nc8as_t4_V3");
    fits(&sizes, VM, "Standard_NC8as_T4_v3");
    let models = with(|workload| workload.gpu.models = vec!["H100-SXM".into(), "H200".into()]);
    rejected(&models, VM, T4, "CD0817", "GPU T4; allowed: H100-SXM, H200");
    fits(&models, VM, H100);
}

#[test]
fn a_service_supports_its_own_sizes_only() {
    let text = "Batch does not support its series (source of 2021-07-20): \
                 The table of 2021 says none; the page of 2025 has no table.";
    rejected(&job(60), AzureOffering::Batch, "Standard_ND40rs_v2", "CD0816", text);
    fits(&job(60), AzureOffering::Aks, "Standard_NCC40ads_H100_v5");
    let text = "Batch has x86_64 machines, this is arm64 (aarch64)";
    rejected(&job(60), AzureOffering::Batch, "Standard_ND128isr_NDR_GB200_v6", "CD0816", text);
    let nowhere = with(|workload| workload.constraints.regions = vec!["eastus2".into()]);
    let text = "not offered in the allowed regions";
    rejected(&nowhere, AzureOffering::ContainerApps, "Consumption-GPU-NC8as-T4", "CD0816", text);
}

#[test]
fn a_confidential_vm_is_not_supported_by_batch_or_machine_learning() {
    for (kind, name) in [
        (AzureOffering::Batch, "Batch"),
        (AzureOffering::MlCluster, "Machine Learning cluster"),
        (AzureOffering::MlServerless, "Machine Learning serverless"),
    ] {
        let text = format!("a confidential VM, which {name} is not documented to support");
        rejected(&job(60), kind, "Standard_NCC40ads_H100_v5", "CD0816", &text);
    }
    fits(&job(60), VM, "Standard_NCC40ads_H100_v5");
}

#[test]
fn a_number_format_needs_instructions_for_it() {
    use ComputeFormat::{Bf16, Fp4, Fp8, Fp16, Fp64, Int4};
    let calculating = |format| with(|workload| workload.gpu.precision = Some(format));
    for (format, size, text) in [
        (Bf16, T4, "T4 does not calculate in bf16"),
        (Fp8, "Standard_NV36ads_A10_v5", "A10 does not calculate in fp8"),
        (Fp8, "Standard_NC24ads_A100_v4", "A100-80 does not calculate in fp8"),
        (Fp4, H100, "H100-SXM does not calculate in fp4"),
    ] {
        rejected(&calculating(format), VM, size, "CD0836", text);
    }
    for (format, size) in [
        (Fp64, T4),
        (Fp16, T4),
        (Int4, T4),
        (Bf16, "Standard_NV36ads_A10_v5"),
        (Fp8, H100),
        (Fp4, "Standard_ND128isr_NDR_GB200_v6"),
    ] {
        fits(&calculating(format), VM, size);
    }
    // A GPU whose formats are unknown is rejected.
    on(&calculating(Fp16), VM, "Standard_ND40s_v2", |case| {
        let rule = SIZE_RULES.iter().find(|rule| rule.code == "CD0836").unwrap();
        assert!((rule.gap)(case).is_some());
        assert_eq!((rule.describe)(case), "whether GPU calculates in fp16 is unknown");
    });
}

#[test]
fn nvlink_connects_as_many_gpus_as_are_needed() {
    let linked = |gpus| with(|workload| (workload.gpu.nvlink, workload.gpu.per_instance) = (true, gpus));
    for (gpus, size) in [
        (2, "Standard_NC48ads_A100_v4"),
        (2, "Standard_NC80adis_H100_v5"),
        (2, "Standard_NC96ads_A100_v4"),
        (8, H100),
    ] {
        fits(&linked(gpus), VM, size);
    }
    let pairs = "NVLink bridges between pairs of GPUs, NVLink of 4 GPUs needed";
    rejected(&linked(4), VM, "Standard_NC96ads_A100_v4", "CD0807", pairs);
    let none = "no NVLink, NVLink of 4 GPUs needed";
    rejected(&linked(4), VM, "Standard_NC64as_T4_v3", "CD0807", none);
}

#[test]
fn an_image_for_another_processor_does_not_fit() {
    let x86_64 = Arch::X86_64.oci_name();
    let amd64 = with(|workload| workload.machine.architecture = Some(NamedArch::new(x86_64)));
    let text = "architecture arm64 (aarch64), the image is for amd64";
    rejected(&amd64, VM, "Standard_ND128isr_NDR_GB200_v6", "CD0809", text);
    fits(&amd64, VM, T4);
}

#[test]
fn code_for_one_generation_runs_on_that_one_only() {
    let v100 = with(|workload| {
        workload.gpu.least_capability = "7.0".parse().ok();
        workload.gpu.greatest_capability = "7.0".parse().ok();
    });
    rejected(&v100, VM, T4, "CD0805", "compute capability 7.5; the program runs on 7.0 only");
    fits(&v100, VM, "Standard_ND40rs_v2");
    let ampere = with(|workload| workload.gpu.least_capability = "8.0".parse().ok());
    rejected(&ampere, VM, T4, "CD0805", "compute capability 7.5; the program needs 8.0 or higher");
}

#[test]
fn needs_that_a_size_does_not_meet_are_rejected_with_both_figures() {
    let large = with(|workload| workload.gpu.memory = 200_000_000_000);
    let four = with(|workload| workload.gpu.per_instance = 4);
    let none = with(|workload| workload.gpu.per_instance = 0);
    let links = with(|workload| (workload.gpu.nvlink, workload.gpu.infiniband) = (true, true));
    let vcpu = with(|workload| workload.machine.vcpu = 8);
    let memory = with(|workload| workload.machine.memory = 64 << 30);
    for (workload, size, code, text) in [
        (&large, T4, "CD0804", "16 GB on 1 T4, 200 GB needed"),
        (&large, H100, "CD0804", "80 GB on each of 8 H100-SXM, 200 GB needed"),
        (&large, "Standard_NV6ads_A10_v5", "CD0804", "4 GB on 1/6 of an A10, 200 GB needed"),
        (&four, T4, "CD0806", "1 T4 per instance, 4 needed"),
        (&none, T4, "CD0806", "the workload needs 0 GPUs per instance; ask for 1 or more"),
        (&links, T4, "CD0807", "no NVLink, no InfiniBand, NVLink and InfiniBand needed"),
        (&vcpu, T4, "CD0808", "4 vCPU and 28 GiB of memory, 8 and 0 B needed"),
        (&memory, T4, "CD0808", "4 vCPU and 28 GiB of memory, 0 and 64 GiB needed"),
    ] {
        rejected(workload, VM, size, code, text);
    }
    // Just enough is enough, and a share counts as one GPU.
    fits(&with(|workload| workload.gpu.memory = 16_000_000_000), VM, T4);
    fits(&with(|workload| workload.gpu.memory = 4_000_000_000), VM, "Standard_NV6ads_A10_v5");
    fits(&four, VM, "Standard_NC64as_T4_v3");
    fits(&links, VM, H100);
}

#[test]
fn an_image_that_does_not_run_is_rejected_with_the_reason_of_the_verdict() {
    let mut verdicts = Verdicts::default();
    let reason = "no code for 7.5".to_owned();
    verdicts.insert(T4, SizeVerdict { runs: false, jit: false, reason, code: "CD0203" });
    let workload = job(60);
    let context = PlanContext::new(catalog(), facts(), &workload, &verdicts);
    let case = Case::new(&context, VM, catalog().size(T4).unwrap()).unwrap();
    let (index, _) = judge(&SIZE_RULES, &case).unwrap();
    let rule = &SIZE_RULES[usize::from(index)];
    assert_eq!(rule.code, "CD0810");
    assert_eq!((rule.describe)(&case), "the image does not run there: no code for 7.5 (CD0203)");
}

#[test]
fn limits_of_a_service_hold() {
    let two = with(|workload| workload.gpu.instances = 2);
    let text = "2 instances that work together, Container Apps serverless allows at most 1";
    rejected(&two, AzureOffering::ContainerApps, "Consumption-GPU-NC8as-T4", "CD0815", text);
    let each = Duration::from_secs(1);
    let sweep = workload(Work::Sweep { trials: 2000, at_once: 10, each });
    let text = "2000 trials, Machine Learning cluster allows at most 1000";
    rejected(&sweep, AzureOffering::MlCluster, T4, "CD0815", text);
    fits(&sweep, AzureOffering::Batch, T4);
    let image = with(|workload| {
        workload.start.image = Some(Image { compressed: u64::MAX, unpacked: u64::MAX, ..Image::default() });
    });
    fits(&image, VM, T4);
}

#[test]
fn data_in_an_unknown_storage_has_no_price() {
    let data = |storage: &str, access| DataNeeds { access, ..data(1 << 40, storage) };
    let unknown = with(|workload| workload.data = Some(data("tape", DataAccess::Stream)));
    rejected(&unknown, VM, T4, "CD0811", "storage `tape` is not in the tables");
    let staged = with(|workload| workload.data = Some(data("blob-hot", DataAccess::Stage)));
    rejected(&staged, VM, T4, "CD0808", "176 GiB of local disk, 1 TiB of data");
    let local = with(|workload| workload.data = Some(data("local-nvme", DataAccess::Stream)));
    rejected(&local, VM, T4, "CD0808", "176 GiB of local disk, 1 TiB of data");
    fits(&staged, VM, H100);
}

#[test]
fn the_fewer_needs_are_unmet_and_the_smaller_the_gap_the_nearer_it_is() {
    let large = with(|workload| workload.gpu.memory = 100_000_000_000);
    let far = |size: &str| on(&large, VM, size, |case| judge(&SIZE_RULES, case).unwrap().1);
    // 80 GB misses 100 by a quarter, 16 GB by 525 %; a retired K80 misses more than one need.
    assert!(far("Standard_NC24ads_A100_v4") < far(T4));
    assert!(far(T4) < far("Standard_NC6"));
}
