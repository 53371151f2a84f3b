//! Whole machines: healthy ones, ones without a GPU, WSL2, and ones with unreadable files.

use cudock_facts::Facts;
use cudock_facts::finding::Severity;
use cudock_host::{Verdict, checks};
use cudock_testkit::host_tree::{self as tree, HostTree};

use crate::support::{codes, diagnose, problems};

#[test]
fn every_code_is_explained() {
    let facts = Facts::embedded();
    for code in checks::codes::ALL {
        assert!(facts.findings().get(code).is_some(), "{code} has no page");
    }
}

#[test]
fn a_healthy_host_has_no_findings() {
    let diagnosis = diagnose(&tree::healthy());
    let shown: Vec<_> = diagnosis.checks.iter().map(|check| (check.severity, &check.message)).collect();
    assert_eq!(diagnosis.worst(), None, "{shown:#?}");
    assert_eq!(diagnosis.driver.unwrap().to_string(), "580.159.04");
    assert_eq!(diagnosis.cuda.unwrap().to_string(), "13.0");
    assert_eq!(diagnosis.gpus[0].capability.unwrap().to_string(), "9.0");
    assert_eq!(diagnosis.frameworks[0].verdict, Verdict::Works);
}

#[test]
fn wsl2_with_the_windows_driver_is_healthy() {
    let diagnosis = diagnose(&tree::wsl2());
    assert_eq!(codes(&diagnosis, Severity::Error), Vec::<&str>::new());
}

#[test]
fn wsl2_without_a_windows_driver_is_named() {
    let tree = tree::wsl2().without("/usr/lib/wsl/lib");
    assert!(problems(&tree).contains(&"CD0103"));
}

#[test]
fn a_linux_driver_inside_wsl2_is_named() {
    assert!(problems(&tree::wsl2().libraries("535.161.08")).contains(&"CD0104"));
}

#[test]
fn a_machine_without_a_gpu_says_so_once() {
    let diagnosis = diagnose(&HostTree::new());
    assert_eq!(codes(&diagnosis, Severity::Error), ["CD0101"]);
    assert_eq!(diagnosis.checks.len(), 1, "no GPU means nothing else to look at: {:#?}", diagnosis.checks);
}

#[test]
fn an_amd_gpu_alone_is_not_an_nvidia_gpu() {
    assert_eq!(
        problems(&HostTree::new().pci_of("0000:03:00.0", "0x1002", "0x74a1", "0x120000", Some("amdgpu"))),
        ["CD0105"]
    );
}

#[test]
fn garbage_in_any_file_is_tolerated() {
    let garbage: String = (0..4000_u32).map(|n| char::from_u32(n * 7919 % 0xd7ff).unwrap_or('x')).collect();
    let mut tree = tree::healthy();
    for path in [
        "/etc/os-release",
        "/proc/driver/nvidia/version",
        "/sys/module/nvidia/version",
        "/proc/driver/nvidia/gpus/0000:01:00.0/information",
        "/sys/bus/pci/devices/0000:01:00.0/vendor",
        "/etc/ld.so.conf",
        "/etc/ld.so.cache",
        "/etc/docker/daemon.json",
        "/etc/cdi/nvidia.yaml",
        "/opt/venv/pyvenv.cfg",
        "/opt/venv/lib/python3.12/site-packages/torch/version.py",
        "/opt/venv/lib/python3.12/site-packages/torch-2.11.0.dist-info/METADATA",
        "/proc/self/status",
        "/proc/modules",
    ] {
        tree = tree.file(path, &garbage);
        diagnose(&tree);
    }
}
