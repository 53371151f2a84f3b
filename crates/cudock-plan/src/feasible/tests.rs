use std::time::Duration;

use super::{SERVICE_RULES, SIZE_RULES, judge};
use crate::question::{Case, Question};
use crate::service::ServiceKind;
use crate::testing::{catalog, facts, job, on, workload};
use crate::verdict::{Verdict, Verdicts};
use crate::workload::{Access, Data, DayLoad, Image, Management, PerSecond, Work, Workload};

const T4: &str = "Standard_NC4as_T4_v3";
const H100: &str = "Standard_ND96isr_H100_v5";
const VM: ServiceKind = ServiceKind::Vm;

/// The code and the reason a size on a service is rejected for.
fn rejection(workload: &Workload, service: ServiceKind, size: &str) -> Option<(&'static str, String)> {
    on(workload, service, size, |case| {
        let first = |rules: &'static [super::Rule]| {
            judge(rules, case).map(|(place, _)| {
                let rule = &rules[usize::from(place)];
                (rule.code, (rule.words)(case))
            })
        };
        first(&SERVICE_RULES).or_else(|| first(&SIZE_RULES))
    })
}

#[track_caller]
fn out(workload: &Workload, service: ServiceKind, size: &str, code: &str, words: &str) {
    let found = rejection(workload, service, size);
    let (found_code, found_words) = found.expect("is rejected");
    assert_eq!((found_code, found_words.as_str()), (code, words));
}

#[track_caller]
fn fits(workload: &Workload, service: ServiceKind, size: &str) {
    assert_eq!(rejection(workload, service, size), None);
}

fn with(change: impl FnOnce(&mut Workload)) -> Workload {
    let mut workload = job(60);
    change(&mut workload);
    workload
}

fn serving(millis: u64, replica: u64, target_percent: u8) -> Workload {
    let load = DayLoad { hours: [PerSecond { millis }; 24] };
    workload(Work::Serve { load, replica_rate: PerSecond { millis: replica }, target_percent })
}

#[test]
fn container_instances_have_no_gpus_and_name_what_replaces_them() {
    let words =
        "Container Instances has no GPUs since 2025-07-14; Container Apps serverless GPU takes its place";
    out(&job(60), ServiceKind::Aci, T4, "CD0803", words);
}

#[test]
fn services_are_for_work_that_ends_or_for_requests() {
    let endpoint = "Machine Learning endpoint answers requests and runs no work that ends";
    out(&job(60), ServiceKind::MlEndpoint, T4, "CD0818", endpoint);
    let batch = "Batch runs work that ends and answers no requests";
    out(&serving(1000, 1000, 50), ServiceKind::Batch, T4, "CD0818", batch);
    fits(&serving(1000, 1000, 50), ServiceKind::MlEndpoint, T4);
}

#[test]
fn container_instances_run_work_that_ends_and_answer_requests() {
    for workload in [job(60), serving(1000, 1000, 50)] {
        on(&workload, ServiceKind::Aci, T4, |case| {
            let rule = SERVICE_RULES.iter().find(|rule| rule.code == "CD0818").unwrap();
            assert_eq!((rule.gap)(case), None, "{}", (rule.words)(case));
        });
    }
}

#[test]
fn a_service_that_is_not_wanted_is_out() {
    let batch = with(|workload| workload.wishes.services = vec!["batch".into()]);
    out(&batch, VM, T4, "CD0817", "wanted are batch; this is vm");
    fits(&batch, ServiceKind::Batch, T4);
    // The table's name stands for all kinds of the service.
    let ml = with(|workload| workload.wishes.services = vec!["ml".into()]);
    fits(&ml, ServiceKind::MlCluster, T4);
    let managed = with(|workload| workload.wishes.management = Management::Managed);
    let words = "Virtual Machine means machines of one's own; machines that the service manages are wanted";
    out(&managed, VM, T4, "CD0817", words);
    fits(&managed, ServiceKind::ContainerApps, "Consumption-GPU-NC8as-T4");
}

#[test]
fn what_nobody_can_do_is_told_once() {
    let none = with(|workload| workload.gpu.instances = 0);
    out(&none, VM, T4, "CD0815", "the work asks for 0 instances; ask for 1 or more");
    let words = "an instance that answers 0 requests a second never meets the load";
    out(&serving(1000, 0, 50), VM, T4, "CD0815", words);
    let words = "instances kept 0 % full never meet the load; a target is between 1 and 100 %";
    out(&serving(1000, 1000, 0), VM, T4, "CD0815", words);
    fits(&serving(0, 0, 0), VM, T4);
    let each = Duration::from_secs(1);
    let sweep = workload(Work::Sweep { trials: 3, at_once: 0, each });
    out(&sweep, VM, T4, "CD0815", "0 trials at a time never end; ask for 1 or more");
    let items = workload(Work::Items { items: 3, each, at_once: Some(0) });
    out(&items, VM, T4, "CD0815", "items on 0 instances never end; ask for 1 or more");
}

#[test]
fn sizes_and_gpus_that_are_not_wanted_are_out() {
    let sizes = with(|workload| workload.wishes.sizes = vec!["nc8as_t4_V3".into()]);
    out(&sizes, VM, T4, "CD0817", "wanted sizes: nc8as_t4_V3");
    fits(&sizes, VM, "Standard_NC8as_T4_v3");
    let models = with(|workload| workload.gpu.models = vec!["H100-SXM".into(), "H200".into()]);
    out(&models, VM, T4, "CD0817", "GPU T4; wanted: H100-SXM, H200");
    fits(&models, VM, H100);
}

#[test]
fn a_retired_size_names_the_day_and_what_replaces_it() {
    out(&job(60), VM, "Standard_NC6", "CD0801", "retired on 2023-09-06; instead: Standard_NC4as_T4_v3");
    out(&job(60), VM, "Standard_NC128ds_xl_RTXPRO6000BSE_v6", "CD0801", "its preview has ended");
    // V100 ends later in a few regions: the size is judged region by region.
    fits(&job(60), VM, "Standard_NC6s_v3");
}

#[test]
fn a_size_of_which_only_a_price_is_known_is_out() {
    let words = "no page describes it: only a price was seen";
    out(&job(60), VM, "Standard_NC16ads_A10_v4", "CD0812", words);
}

#[test]
fn a_gpu_of_another_maker_runs_no_cuda() {
    let words = "MI300X is not made by NVIDIA and runs no CUDA";
    out(&job(60), VM, "Standard_ND96isr_MI300X_v5", "CD0814", words);
}

#[test]
fn a_service_takes_its_own_sizes_only() {
    let words = "Batch does not take its series (source of 2021-07-20): \
                 The table of 2021 says none; the page of 2025 has no table.";
    out(&job(60), ServiceKind::Batch, "Standard_ND40rs_v2", "CD0816", words);
    fits(&job(60), ServiceKind::Aks, "Standard_NCC40ads_H100_v5");
    let words = "Batch has x86_64 machines, this is aarch64";
    out(&job(60), ServiceKind::Batch, "Standard_ND128isr_NDR_GB200_v6", "CD0816", words);
    let nowhere = with(|workload| workload.wishes.regions = vec!["eastus2".into()]);
    let words = "not offered in the regions allowed";
    out(&nowhere, ServiceKind::ContainerApps, "Consumption-GPU-NC8as-T4", "CD0816", words);
}

#[test]
fn a_confidential_vm_is_not_made_by_batch_or_machine_learning() {
    for (kind, name) in [
        (ServiceKind::Batch, "Batch"),
        (ServiceKind::MlCluster, "Machine Learning cluster"),
        (ServiceKind::MlServerless, "Machine Learning serverless"),
    ] {
        let words = format!("a confidential VM, which {name} is not documented to make");
        out(&job(60), kind, "Standard_NCC40ads_H100_v5", "CD0816", &words);
    }
    fits(&job(60), VM, "Standard_NCC40ads_H100_v5");
}

#[test]
fn an_image_for_another_processor_does_not_fit() {
    let amd64 = with(|workload| workload.machine.architecture = Some("amd64".into()));
    let words = "processor aarch64, the image is for amd64";
    out(&amd64, VM, "Standard_ND128isr_NDR_GB200_v6", "CD0809", words);
    fits(&amd64, VM, T4);
}

#[test]
fn code_for_one_generation_runs_on_it_alone() {
    let v100 = with(|workload| {
        workload.gpu.least_capability = "7.0".parse().ok();
        workload.gpu.greatest_capability = "7.0".parse().ok();
    });
    out(&v100, VM, T4, "CD0805", "compute capability 7.5; the program runs on 7.0 alone");
    fits(&v100, VM, "Standard_ND40rs_v2");
    let ampere = with(|workload| workload.gpu.least_capability = "8.0".parse().ok());
    out(&ampere, VM, T4, "CD0805", "compute capability 7.5; the program needs 8.0 or above");
}

#[test]
fn two_hundred_gigabytes_do_not_fit_on_a_t4() {
    let large = with(|workload| workload.gpu.memory = 200_000_000_000);
    out(&large, VM, T4, "CD0804", "16 GB on 1 T4, 200 GB needed");
    out(&large, VM, H100, "CD0804", "80 GB on each of 8 H100-SXM, 200 GB needed");
    out(&large, VM, "Standard_NV6ads_A10_v5", "CD0804", "4 GB on 1/6 of an A10, 200 GB needed");
    // Just enough is enough.
    fits(&with(|workload| workload.gpu.memory = 16_000_000_000), VM, T4);
}

#[test]
fn an_instance_must_have_all_gpus_and_a_share_is_one_at_most() {
    let four = with(|workload| workload.gpu.per_instance = 4);
    out(&four, VM, T4, "CD0806", "1 T4 in an instance, 4 needed");
    fits(&four, VM, "Standard_NC64as_T4_v3");
    let share = with(|workload| workload.gpu.memory = 4_000_000_000);
    fits(&share, VM, "Standard_NV6ads_A10_v5");
    let none = with(|workload| workload.gpu.per_instance = 0);
    out(&none, VM, T4, "CD0806", "the work asks for 0 GPUs in an instance; ask for 1 or more");
}

#[test]
fn links_that_are_needed_must_be_there() {
    let both = with(|workload| (workload.gpu.nvlink, workload.gpu.infiniband) = (true, true));
    out(&both, VM, T4, "CD0807", "no NVLink, no InfiniBand, NVLink and InfiniBand needed");
    fits(&both, VM, H100);
}

#[test]
fn processors_and_memory_must_suffice() {
    let vcpu = with(|workload| workload.machine.vcpu = 8);
    out(&vcpu, VM, T4, "CD0808", "4 vCPU and 28 GiB of memory, 8 and 0 B needed");
    let memory = with(|workload| workload.machine.memory = 64 << 30);
    out(&memory, VM, T4, "CD0808", "4 vCPU and 28 GiB of memory, 0 and 64 GiB needed");
}

#[test]
fn a_kind_of_driver_that_the_service_does_not_bring_bars_a_size() {
    let words = "takes a GRID driver; Batch's images bring another kind, which does not install there";
    out(&job(60), ServiceKind::Batch, "Standard_NV36ads_A10_v5", "CD0819", words);
    fits(&job(60), VM, "Standard_NV36ads_A10_v5");
}

#[test]
fn an_image_that_does_not_run_is_out_with_the_reason_of_the_verdict() {
    let mut verdicts = Verdicts::default();
    let reason = "no code for 7.5".to_owned();
    verdicts.insert(T4, Verdict { runs: false, jit: false, reason, code: "CD0203" });
    let workload = job(60);
    let question = Question::new(catalog(), facts(), &workload, &verdicts);
    let case = Case::new(&question, VM, catalog().size(T4).unwrap()).unwrap();
    let (place, _) = judge(&SIZE_RULES, &case).unwrap();
    let rule = &SIZE_RULES[usize::from(place)];
    assert_eq!(rule.code, "CD0810");
    assert_eq!((rule.words)(&case), "the image does not run there: no code for 7.5 (CD0203)");
}

#[test]
fn limits_of_a_service_hold() {
    let two = with(|workload| workload.gpu.instances = 2);
    let words = "2 instances that work together, Container Apps serverless takes 1 at most";
    out(&two, ServiceKind::ContainerApps, "Consumption-GPU-NC8as-T4", "CD0815", words);
    let each = Duration::from_secs(1);
    let sweep = workload(Work::Sweep { trials: 2000, at_once: 10, each });
    let words = "2000 trials, Machine Learning cluster takes 1000 at most";
    out(&sweep, ServiceKind::MlCluster, T4, "CD0815", words);
    fits(&sweep, ServiceKind::Batch, T4);
    let image = with(|workload| {
        workload.start.image = Some(Image { compressed: u64::MAX, unpacked: u64::MAX });
    });
    fits(&image, VM, T4);
}

#[test]
fn data_that_lies_nowhere_has_no_price() {
    let data = |storage: &str, access| Data {
        bytes: 1 << 40,
        storage: storage.into(),
        region: None,
        access,
        rate_per_gpu: None,
        read_size: 4 << 20,
        leaves: 0,
    };
    let unknown = with(|workload| workload.data = Some(data("tape", Access::Stream { passes: 1 })));
    out(&unknown, VM, T4, "CD0811", "no storage `tape` is in the tables");
    let staged = with(|workload| workload.data = Some(data("blob-hot", Access::Stage)));
    out(&staged, VM, T4, "CD0808", "176 GiB of local disk, 1 TiB of data");
    let local = with(|workload| workload.data = Some(data("local-nvme", Access::Stream { passes: 1 })));
    out(&local, VM, T4, "CD0808", "176 GiB of local disk, 1 TiB of data");
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
