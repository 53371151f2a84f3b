//! Which libcuda and which CUDA libraries the loader finds.

use cudock_testkit::host_tree::{self as tree, HostTree};

use crate::support::{diagnose, message, problems, warnings};

#[test]
fn a_stub_in_the_library_path_is_named() {
    let tree = tree::healthy()
        .file("/usr/local/cuda-12.4/lib64/stubs/libcuda.so", "\x7fELF stub")
        .link("/usr/local/cuda-12.4/lib64/stubs/libcuda.so.1", "libcuda.so")
        .environment(&[
            ("PATH", "/opt/venv/bin:/usr/bin"),
            ("LD_LIBRARY_PATH", "/usr/local/cuda-12.4/lib64/stubs"),
        ]);
    assert_eq!(problems(&tree), ["CD0205"]);
}

#[test]
fn an_empty_libcuda_that_comes_first_is_named() {
    let tree = tree::healthy()
        .file("/opt/lib/libcuda.so.1", "")
        .environment(&[("PATH", "/opt/venv/bin:/usr/bin"), ("LD_LIBRARY_PATH", "/opt/lib")]);
    assert_eq!(problems(&tree), ["CD0206"]);
}

#[test]
fn an_older_compat_libcuda_that_comes_first_is_803() {
    let tree = tree::healthy()
        .file("/usr/local/cuda-12.4/compat/libcuda.so.550.54.15", "\x7fELF")
        .link("/usr/local/cuda-12.4/compat/libcuda.so.1", "libcuda.so.550.54.15")
        .environment(&[
            ("PATH", "/opt/venv/bin:/usr/bin"),
            ("LD_LIBRARY_PATH", "/usr/local/cuda-12.4/compat"),
        ]);
    assert_eq!(problems(&tree), ["CD0207"]);
    assert!(message(&tree, "CD0207").contains("803"));
}

#[test]
fn a_compat_libcuda_on_a_geforce_is_804() {
    let tree = HostTree::new()
        .pci("0000:01:00.0", "0x2684", Some("nvidia"))
        .module("535.309.01", true, "NVIDIA GeForce RTX 4090")
        .libraries("535.309.01")
        .file("/usr/local/cuda-12.4/compat/libcuda.so.550.54.15", "\x7fELF")
        .link("/usr/local/cuda-12.4/compat/libcuda.so.1", "libcuda.so.550.54.15")
        .environment(&[("LD_LIBRARY_PATH", "/usr/local/cuda-12.4/compat")]);
    assert_eq!(problems(&tree), ["CD0215"]);
}

#[test]
fn a_compat_libcuda_that_is_not_on_the_path_is_ignored() {
    // Every nvidia/cuda image has one.
    let tree = tree::healthy()
        .file("/usr/local/cuda-13.0/compat/libcuda.so.580.95.05", "\x7fELF")
        .link("/usr/local/cuda-13.0/compat/libcuda.so.1", "libcuda.so.580.95.05");
    assert_eq!(diagnose(&tree).worst(), None);
}

#[test]
fn a_driver_the_loader_does_not_search_is_named() {
    let tree = HostTree::new()
        .pci("0000:01:00.0", "0x2335", Some("nvidia"))
        .module("580.159.04", true, "NVIDIA H200")
        .file("/usr/local/nvidia/lib64/libcuda.so.580.159.04", "\x7fELF")
        .link("/usr/local/nvidia/lib64/libcuda.so.1", "libcuda.so.580.159.04")
        .file("/usr/local/nvidia/lib64/libnvidia-ml.so.1", "\x7fELF")
        .file("/usr/local/nvidia/lib64/libnvidia-ptxjitcompiler.so.1", "\x7fELF");
    assert_eq!(problems(&tree), ["CD0203"]);
    assert!(message(&tree, "CD0203").contains("/usr/local/nvidia/lib64"));
}

#[test]
fn another_cuda_in_the_library_path_is_a_warning() {
    let tree = tree::healthy()
        .file("/usr/local/cuda-12.4/lib64/libnvJitLink.so.13", "x")
        .file("/opt/venv/lib/python3.12/site-packages/nvidia/cu13/lib/libnvJitLink.so.13", "x")
        .environment(&[
            ("PATH", "/opt/venv/bin:/usr/bin"),
            ("VIRTUAL_ENV", "/opt/venv"),
            ("LD_LIBRARY_PATH", "/usr/local/cuda-12.4/lib64"),
        ]);
    assert_eq!(warnings(&tree), ["CD0406"]);
}

#[test]
fn missing_companions_of_libcuda_are_warnings() {
    let directory = "/usr/lib/x86_64-linux-gnu";
    assert_eq!(warnings(&tree::healthy().without(&format!("{directory}/libnvidia-ml.so.1"))), ["CD0204"]);
    assert_eq!(
        warnings(&tree::healthy().without(&format!("{directory}/libnvidia-ptxjitcompiler.so.1"))),
        ["CD0212"]
    );
}

#[test]
fn toolkits_are_listed_with_their_version() {
    let tree = tree::healthy()
        .program("/usr/local/cuda-13.0/bin/nvcc")
        .file("/usr/local/cuda-13.0/version.json", r#"{"cuda": {"version": "13.0.2"}}"#)
        .file("/usr/local/cuda-13.0/compat/libcuda.so.580.95.05", "x")
        .link("/usr/local/cuda", "/etc/alternatives/cuda")
        .link("/etc/alternatives/cuda", "/usr/local/cuda-13.0");
    let diagnosis = diagnose(&tree);
    let lines: Vec<&String> =
        diagnosis.checks.iter().map(|check| &check.message).filter(|text| text.contains("toolkit")).collect();
    assert_eq!(
        lines,
        [
            "CUDA toolkit 13.0 in /usr/local/cuda-13.0, with nvcc, cuda-compat 580.95.05 present but not in use"
        ]
    );
}
