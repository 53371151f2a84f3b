//! Diagnoses directory trees that represent machines. A healthy one has no problems.

use cudock_facts::Facts;
use cudock_facts::version::Date;
use cudock_host::host::{NvmlGpu, NvmlReport, NvmlResult};
use cudock_host::{CheckStatus, Diagnosis, Host, Root, Verdict, checks, examine, probe};

use cudock_testkit::host_tree as tree;
use cudock_testkit::host_tree::{self as tree, Tree};

fn day() -> Date {
    "2026-11-15".parse().unwrap()
}

fn read(tree: &Tree) -> Host {
    probe::read(&Root::tree(tree.path()).unwrap(), &|_| panic!("a tree has no NVML"))
}

fn diagnose(tree: &Tree) -> Diagnosis {
    examine(&read(tree), &Facts::embedded(), day())
}

fn codes(diagnosis: &Diagnosis, status: CheckStatus) -> Vec<&'static str> {
    diagnosis.checks.iter().filter(|check| check.status == status).filter_map(|check| check.code).collect()
}

fn problems(tree: &Tree) -> Vec<&'static str> {
    codes(&diagnose(tree), CheckStatus::Problem)
}

fn warnings(tree: &Tree) -> Vec<&'static str> {
    codes(&diagnose(tree), CheckStatus::Warning)
}

fn message(tree: &Tree, code: &str) -> String {
    let diagnosis = diagnose(tree);
    diagnosis.checks.iter().find(|check| check.code == Some(code)).map(|check| check.message.clone()).unwrap()
}

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
    let shown: Vec<_> = diagnosis.checks.iter().map(|check| (check.status, &check.message)).collect();
    assert_eq!(diagnosis.worst(), CheckStatus::Ok, "{shown:#?}");
    assert_eq!(diagnosis.driver.unwrap().to_string(), "580.159.04");
    assert_eq!(diagnosis.cuda.unwrap().to_string(), "13.0");
    assert_eq!(diagnosis.gpus[0].capability.unwrap().to_string(), "9.0");
    assert_eq!(diagnosis.frameworks[0].verdict, Verdict::Works);
}

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
fn wsl2_with_the_windows_driver_is_healthy() {
    let diagnosis = diagnose(&tree::wsl2());
    assert_eq!(codes(&diagnosis, CheckStatus::Problem), Vec::<&str>::new());
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
fn a_container_without_the_gpu_is_reported() {
    assert_eq!(problems(&tree::container_without_toolkit()), ["CD0106"]);
}

#[test]
fn a_cpu_build_of_torch_beside_a_gpu_is_a_problem() {
    let diagnosis = diagnose(&tree::torch_cpu_build());
    assert_eq!(codes(&diagnosis, CheckStatus::Problem), ["CD0401"]);
    assert_eq!(diagnosis.frameworks[0].verdict, Verdict::Cpu);
}

#[test]
fn a_torch_without_code_for_the_card_fails_with_209() {
    let diagnosis = diagnose(&tree::torch_too_new_for_the_card());
    assert_eq!(codes(&diagnosis, CheckStatus::Problem), ["CD0501"]);
    assert_eq!((diagnosis.frameworks[0].verdict, diagnosis.frameworks[0].error), (Verdict::Fails, Some(209)));
    let check = diagnosis.checks.iter().find(|check| check.code == Some("CD0501")).unwrap();
    assert!(
        check.fix.as_ref().unwrap().contains("cu126"),
        "the fix names a build that has the code: {check:?}"
    );
}

#[test]
fn a_driver_too_old_for_torch_fails_with_35() {
    let tree = Tree::new()
        .pci("0000:01:00.0", "0x20b5", Some("nvidia"))
        .module("570.211.01", true, "NVIDIA A100 80GB PCIe")
        .libraries("570.211.01")
        .python()
        .torch("2.11.0+cu130", Some("13.0"));
    let diagnosis = diagnose(&tree);
    assert_eq!(codes(&diagnosis, CheckStatus::Problem), ["CD0402"]);
    assert_eq!(diagnosis.frameworks[0].error, Some(35));
}

#[test]
fn an_older_torch_runs_on_the_same_driver() {
    let tree = Tree::new()
        .pci("0000:01:00.0", "0x20b5", Some("nvidia"))
        .module("570.211.01", true, "NVIDIA A100 80GB PCIe")
        .libraries("570.211.01")
        .python()
        .torch("2.9.1+cu128", Some("12.8"));
    assert_eq!(diagnose(&tree).frameworks[0].verdict, Verdict::Works);
}

#[test]
fn a_machine_without_a_gpu_says_so_once() {
    let diagnosis = diagnose(&Tree::new());
    assert_eq!(codes(&diagnosis, CheckStatus::Problem), ["CD0101"]);
    assert_eq!(diagnosis.checks.len(), 1, "no GPU means nothing else to look at: {:#?}", diagnosis.checks);
}

#[test]
fn an_amd_gpu_alone_is_not_an_nvidia_gpu() {
    assert_eq!(
        problems(&Tree::new().pci_of("0000:03:00.0", "0x1002", "0x74a1", "0x120000", Some("amdgpu"))),
        ["CD0105"]
    );
}

#[test]
fn nouveau_on_the_card_is_named() {
    assert_eq!(
        problems(&Tree::new().pci("0000:01:00.0", "0x1eb8", Some("nouveau"))).first(),
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
        (diagnosis.worst(), codes(&diagnosis, CheckStatus::Note)),
        (CheckStatus::Note, vec!["CD0107"])
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
    let tree = Tree::new()
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
    assert_eq!(diagnose(&tree).worst(), CheckStatus::Ok);
}

#[test]
fn a_driver_the_loader_does_not_search_is_named() {
    let tree = Tree::new()
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
fn a_branch_past_its_end_is_a_warning() {
    let tree = Tree::new()
        .pci("0000:01:00.0", "0x1eb8", Some("nvidia"))
        .module("550.163.01", true, "Tesla T4")
        .libraries("550.163.01");
    assert_eq!(warnings(&tree), ["CD0208"]);
}

#[test]
fn a_card_the_branch_has_dropped_is_named() {
    let tree = Tree::new()
        .pci("0000:01:00.0", "0x1db6", Some("nvidia"))
        .module("595.91.07", false, "Tesla V100-SXM2-32GB")
        .libraries("595.91.07");
    assert_eq!(problems(&tree), ["CD0209"]);
}

/// The driver is installed, but its module has no GPU, because the branch does not support it.
fn left_by_the_module(device: &str, driver: &str) -> Tree {
    Tree::new()
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
        assert!(codes(&diagnosis, CheckStatus::Problem).contains(&"CD0209"), "{name} with {dropped}");
        assert_eq!(diagnosis.gpus[0].name, name);
        assert_eq!(diagnosis.gpus[0].capability.unwrap().to_string(), capability, "{name}");
        let diagnosis = diagnose(&left_by_the_module(device, last));
        assert!(!codes(&diagnosis, CheckStatus::Problem).contains(&"CD0209"), "{name} with {last}");
    }
}

#[test]
fn a_dropped_card_beside_one_that_works_is_named() {
    let tree = Tree::new()
        .pci("0000:01:00.0", "0x1eb8", Some("nvidia"))
        .pci("0000:02:00.0", "0x1db4", None)
        .module("595.91.07", true, "Tesla T4")
        .libraries("595.91.07");
    assert!(problems(&tree).contains(&"CD0209"));
    assert!(message(&tree, "CD0209").contains("V100"));
}

#[test]
fn a_model_missing_in_the_tables_is_known_by_its_pci_id() {
    let tree = Tree::new()
        .pci("0000:01:00.0", "0x1db6", Some("nvidia"))
        .module("595.91.07", false, "Graphics Device")
        .libraries("595.91.07");
    assert_eq!(diagnose(&tree).gpus[0].capability.unwrap().to_string(), "7.0");
    assert!(problems(&tree).contains(&"CD0209"));
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
                let tree = Tree::new()
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
fn blackwell_with_the_proprietary_module_is_named() {
    let tree = Tree::new()
        .pci("0000:01:00.0", "0x2901", Some("nvidia"))
        .module("580.159.04", false, "NVIDIA B200")
        .libraries("580.159.04");
    assert_eq!(problems(&tree), ["CD0210"]);
}

#[test]
fn docker_without_the_container_toolkit_is_a_warning() {
    let tree = Tree::new()
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
    let tree = Tree::new()
        .pci("0000:01:00.0", "0x2335", Some("nvidia"))
        .module("580.159.04", true, "NVIDIA H200")
        .libraries("580.159.04")
        .python()
        .distribution("tensorflow", "2.19.0", &[]);
    let diagnosis = diagnose(&tree);
    assert_eq!(codes(&diagnosis, CheckStatus::Problem), ["CD0403"]);
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
        let tree = Tree::new()
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
    assert_eq!(diagnosis.worst(), CheckStatus::Note);
    assert_eq!(codes(&diagnosis, CheckStatus::Note), ["CD0401"]);
}

#[test]
fn onnxruntime_gpu_without_code_for_b200_fails_with_209() {
    let mut tree = Tree::new()
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
fn jax_with_its_plugin_works_and_without_it_uses_the_cpu() {
    let with =
        tree::healthy().distribution("jax", "0.11.2", &[]).distribution("jax-cuda13-plugin", "0.11.2", &[]);
    assert_eq!(diagnose(&with).frameworks[1].verdict, Verdict::Works);
    let without = tree::healthy().distribution("jax", "0.11.2", &[]);
    assert_eq!(warnings(&without), ["CD0401"]);
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
fn missing_companions_of_libcuda_are_warnings() {
    let directory = "/usr/lib/x86_64-linux-gnu";
    assert_eq!(warnings(&tree::healthy().without(&format!("{directory}/libnvidia-ml.so.1"))), ["CD0204"]);
    assert_eq!(
        warnings(&tree::healthy().without(&format!("{directory}/libnvidia-ptxjitcompiler.so.1"))),
        ["CD0212"]
    );
}

#[test]
fn an_unloaded_uvm_module_is_reported() {
    let tree = tree::healthy().without("/dev/nvidia-uvm").file("/proc/modules", "nvidia 1 1 - Live 0x0\n");
    assert!(problems(&tree).contains(&"CD0214"));
}

#[test]
fn a_rocm_build_beside_an_nvidia_gpu_is_named() {
    let text = "__version__ = '2.11.0+rocm7.2'\ncuda = None\nhip = '7.2.1'\n";
    let tree = tree::healthy().file("/opt/venv/lib/python3.12/site-packages/torch/version.py", text);
    assert_eq!(problems(&tree), ["CD0409"]);
}

#[test]
fn ptx_newer_than_the_driver_fails_with_222() {
    let mut tree = Tree::new()
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
    assert_eq!(codes(&diagnosis, CheckStatus::Problem), ["CD0503"]);
    assert_eq!(diagnosis.frameworks[0].error, Some(222));
}

#[test]
fn a_torch_missing_in_the_tables_is_unknown_and_only_a_note() {
    let diagnosis = diagnose(&tree::healthy().torch("9.9.9+cu130", Some("13.0")));
    assert_eq!(diagnosis.frameworks[0].verdict, Verdict::Unknown);
    assert_eq!(diagnosis.worst(), CheckStatus::Note);
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

#[test]
fn a_conda_environment_is_read() {
    let tree = tree::healthy()
        .program("/opt/conda/envs/train/bin/python3")
        .environment(&[
            ("PATH", "/opt/conda/envs/train/bin:/usr/bin"),
            ("CONDA_PREFIX", "/opt/conda/envs/train"),
        ])
        .file(
            "/opt/conda/envs/train/conda-meta/pytorch-2.5.1-py3.12_cuda12.4_cudnn9.1.0_0.json",
            r#"{"version": "2.5.1"}"#,
        )
        .file(
            "/opt/conda/envs/train/lib/python3.12/site-packages/torch/version.py",
            "__version__ = '2.5.1'\ncuda = '12.4'\nhip = None\n",
        );
    let host = read(&tree);
    let python = host.python.as_ref().unwrap();
    assert_eq!((python.prefix.as_str(), python.found_by.as_str()), ("/opt/conda/envs/train", "CONDA_PREFIX"));
    assert_eq!(python.get("torch").unwrap().version.to_string(), "2.5.1");
    assert_eq!(diagnose(&tree).frameworks[0].verdict, Verdict::Works);
}

#[test]
fn an_environment_that_is_not_on_the_path_is_not_active() {
    let tree = tree::healthy()
        .program("/usr/bin/python3")
        .environment(&[("PATH", "/usr/bin"), ("VIRTUAL_ENV", "/opt/venv")]);
    assert_eq!(read(&tree).python.unwrap().prefix, "/usr");
}

#[test]
fn the_version_selected_by_pyenv_is_read() {
    let tree = Tree::new()
        .program("/root/.pyenv/shims/python3")
        .file("/root/.pyenv/version", "3.12.1\n")
        .program("/root/.pyenv/versions/3.12.1/bin/python3")
        .environment(&[("PATH", "/root/.pyenv/shims:/usr/bin")]);
    assert_eq!(read(&tree).python.unwrap().prefix, "/root/.pyenv/versions/3.12.1");
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

/// Adds NVML data, as on a live machine.
fn with_nvml(tree: &Tree, change: impl Fn(&mut NvmlGpu)) -> Diagnosis {
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
    assert_eq!(codes(&diagnosis, CheckStatus::Problem), ["CD0111"]);
    let diagnosis = with_nvml(&tree::healthy(), |gpu| (gpu.mig, gpu.mig_devices) = (Some(true), Some(2)));
    assert_eq!(diagnosis.worst(), CheckStatus::Ok);
}

#[test]
fn persistence_that_is_off_is_a_warning() {
    let diagnosis = with_nvml(&tree::healthy(), |gpu| gpu.persistence = Some(false));
    assert_eq!(codes(&diagnosis, CheckStatus::Warning), ["CD0112"]);
}

#[test]
fn a_prohibited_compute_mode_is_a_problem() {
    let diagnosis = with_nvml(&tree::healthy(), |gpu| gpu.compute_mode = Some("Prohibited".into()));
    assert_eq!(codes(&diagnosis, CheckStatus::Problem), ["CD0113"]);
}

#[test]
fn a_failing_nvml_is_reported() {
    let mut host = read(&tree::healthy());
    host.nvml = NvmlResult::Failed("an unknown error occurred".into());
    let diagnosis = examine(&host, &Facts::embedded(), day());
    assert_eq!(codes(&diagnosis, CheckStatus::Problem), ["CD0213"]);
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
