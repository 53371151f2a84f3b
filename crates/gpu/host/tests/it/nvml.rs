//! What NVML reports on a live machine.

use cudock_facts::Facts;
use cudock_facts::finding::Severity;
use cudock_host::host::{NvmlGpu, NvmlReport, NvmlResult};
use cudock_host::{Diagnosis, examine};
use cudock_testkit::host_tree::{self as tree, HostTree};

use crate::support::{codes, day, read};

/// Adds NVML data, as on a live machine.
fn with_nvml(tree: &HostTree, change: impl Fn(&mut NvmlGpu)) -> Diagnosis {
    let mut host = read(tree);
    let mut gpu = NvmlGpu {
        name: "NVIDIA H200".into(),
        capability: Some("9.0".parse().unwrap()),
        uuid: None,
        memory_total: Some(150_754_820_096),
        memory_used: Some(0),
        persistence: Some(true),
        mig: Some(false),
        mig_devices: None,
        compute_mode: Some("Default".into()),
    };
    change(&mut gpu);
    let driver = "580.159.04".parse().unwrap();
    host.nvml =
        NvmlResult::Report(NvmlReport { driver, cuda: Some("13.0".parse().unwrap()), gpus: vec![gpu] });
    examine(&host, &Facts::embedded(), day())
}

#[test]
fn mig_without_an_instance_is_named() {
    let diagnosis = with_nvml(&tree::healthy(), |gpu| (gpu.mig, gpu.mig_devices) = (Some(true), Some(0)));
    assert_eq!(codes(&diagnosis, Severity::Error), ["CD0111"]);
    let diagnosis = with_nvml(&tree::healthy(), |gpu| (gpu.mig, gpu.mig_devices) = (Some(true), Some(2)));
    assert_eq!(diagnosis.worst(), None);
}

#[test]
fn persistence_that_is_off_is_a_warning() {
    let diagnosis = with_nvml(&tree::healthy(), |gpu| gpu.persistence = Some(false));
    assert_eq!(codes(&diagnosis, Severity::Warning), ["CD0112"]);
}

#[test]
fn a_prohibited_compute_mode_is_a_problem() {
    let diagnosis = with_nvml(&tree::healthy(), |gpu| gpu.compute_mode = Some("Prohibited".into()));
    assert_eq!(codes(&diagnosis, Severity::Error), ["CD0113"]);
}

#[test]
fn a_failing_nvml_is_reported() {
    let mut host = read(&tree::healthy());
    host.nvml = NvmlResult::Failed("an unknown error occurred".into());
    let diagnosis = examine(&host, &Facts::embedded(), day());
    assert_eq!(codes(&diagnosis, Severity::Error), ["CD0213"]);
}

#[test]
fn a_query_that_crashes_is_a_failure() {
    let NvmlResult::Failed(error) = cudock_host::nvml::query_in_child("/bin/false".as_ref(), &[]) else {
        panic!("/bin/false has no NVML")
    };
    assert!(error.contains("without a result"), "{error}");
    let missing = cudock_host::nvml::query_in_child("/nowhere/cudock".as_ref(), &[]);
    assert!(matches!(missing, NvmlResult::Failed(_)));
}
