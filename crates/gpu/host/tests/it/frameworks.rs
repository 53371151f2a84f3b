//! Frameworks and the GPU code in them.

use cudock_facts::Facts;
use cudock_facts::finding::Severity;
use cudock_host::{Verdict, checks};
use cudock_testkit::host_tree::{self as tree, HostTree};

use crate::support::{codes, diagnose, problems, warnings};

#[test]
fn a_cpu_build_of_torch_beside_a_gpu_is_a_problem() {
    let diagnosis = diagnose(&tree::torch_cpu_build());
    assert_eq!(codes(&diagnosis, Severity::Error), ["CD0401"]);
    assert_eq!(diagnosis.frameworks[0].verdict, Verdict::Cpu);
}

#[test]
fn a_torch_without_code_for_the_card_fails_with_209() {
    let diagnosis = diagnose(&tree::torch_too_new_for_the_card());
    assert_eq!(codes(&diagnosis, Severity::Error), ["CD0501"]);
    assert_eq!((diagnosis.frameworks[0].verdict, diagnosis.frameworks[0].error), (Verdict::Fails, Some(209)));
    let check = diagnosis.checks.iter().find(|check| check.code == Some("CD0501")).unwrap();
    assert!(
        check.fix.as_ref().unwrap().contains("cu126"),
        "the fix names a build that has the code: {check:?}"
    );
}

#[test]
fn a_driver_too_old_for_torch_fails_with_35() {
    let tree = HostTree::new()
        .pci("0000:01:00.0", "0x20b5", Some("nvidia"))
        .module("570.211.01", true, "NVIDIA A100 80GB PCIe")
        .libraries("570.211.01")
        .python()
        .torch("2.11.0+cu130", Some("13.0"));
    let diagnosis = diagnose(&tree);
    assert_eq!(codes(&diagnosis, Severity::Error), ["CD0402"]);
    assert_eq!(diagnosis.frameworks[0].error, Some(35));
}

#[test]
fn an_older_torch_runs_on_the_same_driver() {
    let tree = HostTree::new()
        .pci("0000:01:00.0", "0x20b5", Some("nvidia"))
        .module("570.211.01", true, "NVIDIA A100 80GB PCIe")
        .libraries("570.211.01")
        .python()
        .torch("2.9.1+cu128", Some("12.8"));
    assert_eq!(diagnose(&tree).frameworks[0].verdict, Verdict::Works);
}

/// Every build in a fix must run on the driver, and have code for the GPU.
#[test]
fn no_fix_names_a_torch_build_that_fails() {
    let facts = Facts::embedded();
    let gpus = [
        ("0x102d", "Tesla K80", "3.7"),
        ("0x1db4", "Tesla V100-PCIE-16GB", "7.0"),
        ("0x2bb1", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "12.0"),
    ];
    let mut named = 0;
    for branch in &facts.drivers().branch {
        let driver =
            branch.latest_linux.map_or_else(|| format!("{}.31", branch.branch), |latest| latest.to_string());
        for (device, model, capability) in gpus {
            for (torch, cuda) in [("2.15.0+cu130", "13.0"), ("2.5.1+cu121", "12.1"), ("1.13.1+cu117", "11.7")]
            {
                let tree = HostTree::new()
                    .pci("0000:01:00.0", device, Some("nvidia"))
                    .module(&driver, true, model)
                    .libraries(&driver)
                    .python()
                    .torch(torch, Some(cuda));
                let diagnosis = diagnose(&tree);
                let about_torch =
                    |check: &&checks::Check| matches!(check.code, Some("CD0402" | "CD0501" | "CD0502"));
                for check in diagnosis.checks.iter().filter(about_torch) {
                    let fix = check.fix.clone().unwrap();
                    let tags = fix.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| {
                        word.len() == 5
                            && word.starts_with("cu")
                            && word[2..].bytes().all(|byte| byte.is_ascii_digit())
                    });
                    for tag in tags {
                        named += 1;
                        let cuda = cudock_facts::version::CudaVersion::from_tag(tag).unwrap();
                        let own = branch.cuda;
                        let floor = facts.drivers().minor_compat(cuda.major()).unwrap().min_linux;
                        let starts = cuda <= own
                            || driver.parse::<cudock_facts::version::DriverVersion>().unwrap() >= floor;
                        assert!(starts, "{fix:?} on driver {driver}");
                        if check.code == Some("CD0501") {
                            let card = capability.parse().unwrap();
                            let builds =
                                facts.frameworks().torch_build.iter().filter(|build| build.tag == tag);
                            assert!(
                                builds.clone().any(|build| build.has_code_for(&[card])),
                                "{fix:?} for {model}"
                            );
                        }
                    }
                }
            }
        }
    }
    assert!(named > 20, "{named} builds were named");
}

#[test]
fn a_missing_wheel_of_torch_is_reported() {
    let tree = tree::healthy().distribution(
        "torch",
        "2.11.0",
        &["nvidia-cudnn-cu13 (==9.19.0.56) ; platform_system == \"Linux\""],
    );
    assert_eq!(problems(&tree), ["CD0403"]);
    let installed = tree.distribution("nvidia-cudnn-cu13", "9.20.0.48", &[]);
    assert_eq!((problems(&installed), warnings(&installed)), (vec![], vec!["CD0404"]));
}

#[test]
fn torchvision_of_another_torch_is_a_warning() {
    let tree = tree::healthy().distribution("torchvision", "0.25.0", &["torch==2.10.0"]);
    assert_eq!(warnings(&tree), ["CD0407"]);
    let open = tree::healthy().distribution("torchvision", "0.29.1", &["torch>=2.11.0"]);
    assert_eq!(warnings(&open), Vec::<&str>::new());
}

#[test]
fn tensorflow_without_its_cuda_libraries_falls_back_to_the_cpu() {
    let tree = HostTree::new()
        .pci("0000:01:00.0", "0x2335", Some("nvidia"))
        .module("580.159.04", true, "NVIDIA H200")
        .libraries("580.159.04")
        .python()
        .distribution("tensorflow", "2.19.0", &[]);
    let diagnosis = diagnose(&tree);
    assert_eq!(codes(&diagnosis, Severity::Error), ["CD0403"]);
    assert_eq!(diagnosis.frameworks[0].verdict, Verdict::Cpu);
    let packages = "/opt/venv/lib/python3.12/site-packages/nvidia";
    let tree = tree
        .file(&format!("{packages}/cuda_runtime/lib/libcudart.so.12"), "x")
        .file(&format!("{packages}/cudnn/lib/libcudnn.so.9"), "x");
    // Most of its modules have only PTX for the newest target.
    assert_eq!(diagnose(&tree).frameworks[0].verdict, Verdict::Jit);
}

#[test]
fn tensorflow_reaches_blackwell_by_jit_where_its_ptx_is_not_for_hopper_alone() {
    let packages = "/opt/venv/lib/python3.12/site-packages/nvidia";
    for (version, verdict) in [("2.19.0", Verdict::Fails), ("2.21.0", Verdict::Jit)] {
        let tree = HostTree::new()
            .pci("0000:01:00.0", "0x2b85", Some("nvidia"))
            .module("580.159.04", true, "NVIDIA GeForce RTX 5090")
            .libraries("580.159.04")
            .python()
            .distribution("tensorflow", version, &[])
            .file(&format!("{packages}/cuda_runtime/lib/libcudart.so.12"), "x")
            .file(&format!("{packages}/cudnn/lib/libcudnn.so.9"), "x");
        assert_eq!(diagnose(&tree).frameworks[0].verdict, verdict, "{version}");
    }
}

#[test]
fn both_onnxruntime_packages_collide() {
    let tree = tree::healthy().distribution("onnxruntime", "1.31.1", &[]).distribution(
        "onnxruntime-gpu",
        "1.31.1",
        &[],
    );
    assert!(warnings(&tree).contains(&"CD0405"));
}

#[test]
fn onnxruntime_for_the_cpu_is_only_a_note() {
    let diagnosis = diagnose(&tree::healthy().distribution("onnxruntime", "1.30.0", &[]));
    assert_eq!(diagnosis.worst(), Some(Severity::Note));
    assert_eq!(codes(&diagnosis, Severity::Note), ["CD0401"]);
}

#[test]
fn onnxruntime_gpu_without_code_for_b200_fails_with_209() {
    let mut tree = HostTree::new()
        .pci("0000:01:00.0", "0x2901", Some("nvidia"))
        .module("580.159.04", true, "NVIDIA B200")
        .libraries("580.159.04")
        .python()
        .distribution("onnxruntime-gpu", "1.31.1", &[]);
    for name in ["libcublasLt.so.13", "libcublas.so.13", "libcurand.so.10", "libcudart.so.13"] {
        tree = tree.file(&format!("/opt/venv/lib/python3.12/site-packages/nvidia/cu13/lib/{name}"), "x");
    }
    assert_eq!(diagnose(&tree).frameworks[0].error, Some(209));
}

#[test]
fn jax_with_its_plugin_works_and_without_it_uses_the_cpu() {
    let with =
        tree::healthy().distribution("jax", "0.11.2", &[]).distribution("jax-cuda13-plugin", "0.11.2", &[]);
    assert_eq!(diagnose(&with).frameworks[1].verdict, Verdict::Works);
    let without = tree::healthy().distribution("jax", "0.11.2", &[]);
    assert_eq!(warnings(&without), ["CD0401"]);
}

#[test]
fn a_rocm_build_beside_an_nvidia_gpu_is_named() {
    let text = "__version__ = '2.11.0+rocm7.2'\ncuda = None\nhip = '7.2.1'\n";
    let tree = tree::healthy().file("/opt/venv/lib/python3.12/site-packages/torch/version.py", text);
    assert_eq!(problems(&tree), ["CD0409"]);
}

#[test]
fn ptx_newer_than_the_driver_fails_with_222() {
    let mut tree = HostTree::new()
        .pci("0000:01:00.0", "0x2901", Some("nvidia"))
        .module("565.57.01", true, "NVIDIA B200")
        .libraries("565.57.01")
        .python()
        .distribution("onnxruntime-gpu", "1.24.4", &[]);
    for name in [
        "libcublasLt.so.12",
        "libcublas.so.12",
        "libcurand.so.10",
        "libcufft.so.11",
        "libcudart.so.12",
        "libcudnn.so.9",
    ] {
        tree = tree.file(&format!("/opt/venv/lib/python3.12/site-packages/nvidia/x/lib/{name}"), "x");
    }
    let diagnosis = diagnose(&tree);
    assert_eq!(codes(&diagnosis, Severity::Error), ["CD0503"]);
    assert_eq!(diagnosis.frameworks[0].error, Some(222));
}

#[test]
fn a_torch_missing_in_the_tables_is_unknown_and_only_a_note() {
    let diagnosis = diagnose(&tree::healthy().torch("9.9.9+cu130", Some("13.0")));
    assert_eq!(diagnosis.frameworks[0].verdict, Verdict::Unknown);
    assert_eq!(diagnosis.worst(), Some(Severity::Note));
}
