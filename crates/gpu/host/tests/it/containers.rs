//! Container engines and the container toolkit.

use cudock_testkit::host_tree::{self as tree, HostTree};

use crate::support::{message, problems, warnings};

#[test]
fn a_container_without_the_gpu_is_reported() {
    assert_eq!(problems(&tree::container_without_toolkit()), ["CD0106"]);
}

#[test]
fn docker_without_the_container_toolkit_is_a_warning() {
    let tree = HostTree::new()
        .pci("0000:01:00.0", "0x2335", Some("nvidia"))
        .module("580.159.04", true, "NVIDIA H200")
        .libraries("580.159.04")
        .program("/usr/bin/dockerd");
    assert_eq!(warnings(&tree), ["CD0301"]);
}

#[test]
fn podman_without_a_cdi_specification_is_a_warning() {
    let tree = tree::healthy().without("/etc/cdi/nvidia.yaml").program("/usr/bin/podman");
    assert_eq!(warnings(&tree), ["CD0302"]);
}

#[test]
fn a_broken_daemon_json_is_named() {
    assert_eq!(problems(&tree::healthy().file("/etc/docker/daemon.json", "{\"runtimes\": ")), ["CD0303"]);
}

#[test]
fn a_cdi_specification_of_an_older_driver_is_stale() {
    let old = "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices: []\ncontainerEdits:\n  mounts:\n  - hostPath: \
               /usr/lib/x86_64-linux-gnu/libcuda.so.550.163.01\n";
    let tree = tree::healthy().file("/etc/cdi/nvidia.yaml", old);
    assert_eq!(problems(&tree), ["CD0304"]);
    assert!(message(&tree, "CD0304").contains("550.163.01"));
}

#[test]
fn a_cdi_specification_that_is_not_yaml_is_named() {
    assert_eq!(problems(&tree::healthy().file("/etc/cdi/nvidia.yaml", "devices: [\n")), ["CD0305"]);
}

#[test]
fn a_reload_that_would_take_gpus_is_a_warning() {
    let tree = tree::healthy()
        .without("/etc/cdi")
        .file("/run/systemd/system/x", "")
        .file("/sys/fs/cgroup/cgroup.controllers", "cpu memory\n")
        .file("/dev/char/1:3", "");
    assert_eq!(warnings(&tree), ["CD0306"]);
    let linked = tree.file("/dev/char/195:0", "");
    assert_eq!(warnings(&linked), Vec::<&str>::new());
}
