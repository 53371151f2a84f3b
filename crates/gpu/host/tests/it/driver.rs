//! The kernel module, its nodes, and the GPUs it supports.

use cudock_facts::finding::Severity;
use cudock_testkit::host_tree::{self as tree, HostTree};

use crate::support::{codes, diagnose, message, problems, warnings};

#[test]
fn a_gpu_without_a_driver_is_named() {
    assert_eq!(problems(&tree::no_driver()), ["CD0201", "CD0203"]);
}

#[test]
fn libraries_newer_than_the_module_are_a_mismatch() {
    let tree = tree::mismatch();
    assert_eq!(problems(&tree), ["CD0202"]);
    assert!(
        message(&tree, "CD0202").contains("535.161.08") && message(&tree, "CD0202").contains("535.183.01")
    );
}

#[test]
fn nouveau_on_the_card_is_named() {
    assert_eq!(
        problems(&HostTree::new().pci("0000:01:00.0", "0x1eb8", Some("nouveau"))).first(),
        Some(&"CD0102")
    );
}

#[test]
fn a_missing_node_is_named() {
    let tree = tree::healthy().without("/dev/nvidia-uvm");
    assert_eq!(problems(&tree), ["CD0107"]);
    assert!(message(&tree, "CD0107").contains("/dev/nvidia-uvm"));
}

#[test]
fn nodes_that_are_created_on_demand_are_a_note() {
    let tree = tree::healthy()
        .without("/dev/nvidia-uvm")
        .file("/proc/modules", "nvidia 1 1 - Live 0x0\n")
        .program("/usr/bin/nvidia-modprobe");
    let diagnosis = diagnose(&tree);
    assert_eq!(
        (diagnosis.worst(), codes(&diagnosis, Severity::Note)),
        (Some(Severity::Note), vec!["CD0107"])
    );
}

#[test]
fn an_empty_cuda_visible_devices_hides_the_gpu() {
    let tree =
        tree::healthy().environment(&[("PATH", "/opt/venv/bin:/usr/bin"), ("CUDA_VISIBLE_DEVICES", "")]);
    assert_eq!(problems(&tree), ["CD0109"]);
}

#[test]
fn a_void_nvidia_visible_devices_is_harmless_if_the_gpu_is_visible() {
    // CDI sets it in every container with a GPU.
    let tree = tree::healthy()
        .file("/.dockerenv", "")
        .environment(&[("PATH", "/opt/venv/bin:/usr/bin"), ("NVIDIA_VISIBLE_DEVICES", "void")]);
    assert_eq!(problems(&tree), Vec::<&str>::new());
}

#[test]
fn nvswitches_need_a_fabric_manager() {
    let tree = tree::healthy()
        .pci_of("0000:05:00.0", "0x10de", "0x22a3", "0x068000", None)
        .file("/proc/1/comm", "systemd\n");
    assert_eq!(problems(&tree), ["CD0110"]);
    let running = tree.file("/proc/99/comm", "nv-fabricmanage\n");
    assert_eq!(problems(&running), Vec::<&str>::new());
}

#[test]
fn a_branch_past_its_end_is_a_warning() {
    let tree = HostTree::new()
        .pci("0000:01:00.0", "0x1eb8", Some("nvidia"))
        .module("550.163.01", true, "Tesla T4")
        .libraries("550.163.01");
    assert_eq!(warnings(&tree), ["CD0208"]);
}

#[test]
fn a_card_the_branch_has_dropped_is_named() {
    let tree = HostTree::new()
        .pci("0000:01:00.0", "0x1db6", Some("nvidia"))
        .module("595.91.07", false, "Tesla V100-SXM2-32GB")
        .libraries("595.91.07");
    assert_eq!(problems(&tree), ["CD0209"]);
}

/// The driver is installed, but its module has no GPU, because the branch does not support it.
fn left_by_the_module(device: &str, driver: &str) -> HostTree {
    HostTree::new()
        .pci("0000:01:00.0", device, None)
        .module(driver, false, "NVIDIA H200")
        .without("/proc/driver/nvidia/gpus/0000:01:00.0/information")
        .without("/proc/driver/nvidia/gpus")
        .libraries(driver)
}

#[test]
fn old_data_center_gpus_are_known_by_pci_id_with_their_last_driver() {
    for (device, name, capability, last, dropped) in [
        ("0x102d", "K80", "3.7", "470.256.02", "580.159.04"),
        ("0x17fd", "M40", "5.2", "580.159.04", "595.91.07"),
        ("0x13f2", "M60", "5.2", "580.159.04", "595.91.07"),
        ("0x1bb3", "P4", "6.1", "580.159.04", "595.91.07"),
        ("0x1b38", "P40", "6.1", "580.159.04", "595.91.07"),
        ("0x15f8", "P100", "6.0", "580.159.04", "595.91.07"),
        ("0x1db1", "V100", "7.0", "580.159.04", "595.91.07"),
        ("0x1db4", "V100", "7.0", "580.159.04", "610.57.04"),
        ("0x1b80", "GTX-1080", "6.1", "580.159.04", "595.91.07"),
        ("0x118a", "GRID-K520", "3.0", "470.256.02", "535.161.08"),
    ] {
        let diagnosis = diagnose(&left_by_the_module(device, dropped));
        assert!(codes(&diagnosis, Severity::Error).contains(&"CD0209"), "{name} with {dropped}");
        assert_eq!(diagnosis.gpus[0].name, name);
        assert_eq!(diagnosis.gpus[0].capability.unwrap().to_string(), capability, "{name}");
        let diagnosis = diagnose(&left_by_the_module(device, last));
        assert!(!codes(&diagnosis, Severity::Error).contains(&"CD0209"), "{name} with {last}");
    }
}

#[test]
fn a_dropped_card_beside_one_that_works_is_named() {
    let tree = HostTree::new()
        .pci("0000:01:00.0", "0x1eb8", Some("nvidia"))
        .pci("0000:02:00.0", "0x1db4", None)
        .module("595.91.07", true, "Tesla T4")
        .libraries("595.91.07");
    assert!(problems(&tree).contains(&"CD0209"));
    assert!(message(&tree, "CD0209").contains("V100"));
}

#[test]
fn a_model_missing_in_the_tables_is_known_by_its_pci_id() {
    let tree = HostTree::new()
        .pci("0000:01:00.0", "0x1db6", Some("nvidia"))
        .module("595.91.07", false, "Graphics Device")
        .libraries("595.91.07");
    assert_eq!(diagnose(&tree).gpus[0].capability.unwrap().to_string(), "7.0");
    assert!(problems(&tree).contains(&"CD0209"));
}

#[test]
fn blackwell_with_the_proprietary_module_is_named() {
    let tree = HostTree::new()
        .pci("0000:01:00.0", "0x2901", Some("nvidia"))
        .module("580.159.04", false, "NVIDIA B200")
        .libraries("580.159.04");
    assert_eq!(problems(&tree), ["CD0210"]);
}

#[test]
fn a_node_without_permission_is_reported() {
    use std::os::unix::fs::PermissionsExt;
    let tree = tree::healthy().file(
        "/proc/self/status",
        "Name:\tx\nUid:\t4242\t4242\t4242\t4242\nGid:\t4242\t4242\t4242\t4242\nGroups:\t\n",
    );
    for node in ["nvidiactl", "nvidia-uvm", "nvidia0"] {
        let mode = if node == "nvidia0" { 0o660 } else { 0o666 };
        std::fs::set_permissions(tree.path().join("dev").join(node), std::fs::Permissions::from_mode(mode))
            .unwrap();
    }
    assert_eq!(problems(&tree), ["CD0108"]);
}

#[test]
fn an_unloaded_uvm_module_is_reported() {
    let tree = tree::healthy().without("/dev/nvidia-uvm").file("/proc/modules", "nvidia 1 1 - Live 0x0\n");
    assert!(problems(&tree).contains(&"CD0214"));
}
