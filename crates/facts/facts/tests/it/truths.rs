//! Known truths, pinned: a table edited by mistake fails here.

use cudock_base::Arch;
use cudock_facts::Facts;
use cudock_facts::lookup::{ImageTag, Runs, TagVerdict, TorchWheel};
use cudock_facts::tables::{
    BranchKind, ComputeFormat, ForwardCompatClass, KernelModule, Lifecycle, ServiceGpu, SizeDriver,
    TagStatus, Vendor,
};
use cudock_facts::version::{CudaVersion, DriverVersion};
use pep440_rs::Version;

fn driver(text: &str) -> DriverVersion {
    text.parse().unwrap()
}

fn cuda(text: &str) -> CudaVersion {
    text.parse().unwrap()
}

fn version(text: &str) -> Version {
    text.parse().unwrap()
}

#[test]
fn cards_have_their_compute_capability() {
    let facts = Facts::embedded();
    for (name, capability, architecture) in [
        ("K80", "3.7", "Kepler"),
        ("M60", "5.2", "Maxwell"),
        ("P100", "6.0", "Pascal"),
        ("P40", "6.1", "Pascal"),
        ("V100", "7.0", "Volta"),
        ("T4", "7.5", "Turing"),
        ("A100-80", "8.0", "Ampere"),
        ("A10", "8.6", "Ampere"),
        ("Jetson AGX Orin", "8.7", "Ampere"),
        ("L4", "8.9", "Ada"),
        ("RTX 4090", "8.9", "Ada"),
        ("H100-NVL", "9.0", "Hopper"),
        ("H200", "9.0", "Hopper"),
        ("B200", "10.0", "Blackwell"),
        ("B300", "10.3", "Blackwell Ultra"),
        ("RTX 5090", "12.0", "Blackwell"),
        ("GB10", "12.1", "Blackwell"),
    ] {
        let gpu = facts.gpus().find(name).one().unwrap_or_else(|| panic!("{name}"));
        assert_eq!(gpu.capability.unwrap().to_string(), capability, "{name}");
        assert_eq!(gpu.architecture.as_deref(), Some(architecture), "{name}");
    }
}

#[test]
fn cards_have_their_memory_module_and_compat_class() {
    let facts = Facts::embedded();
    let gpu = |name: &str| facts.gpus().find(name).one().unwrap();
    assert_eq!(gpu("H200").memory_gb, [141]);
    assert_eq!(gpu("V100").memory_gb, [16, 32]);
    assert_eq!(gpu("H200").mig_instances, Some(7));
    assert_eq!(gpu("V100").kernel_module, Some(KernelModule::ProprietaryOnly));
    assert_eq!(gpu("B200").kernel_module, Some(KernelModule::OpenOnly));
    assert_eq!(gpu("T4").forward_compat, ForwardCompatClass::Yes);
    assert_eq!(gpu("RTX-4090").forward_compat, ForwardCompatClass::No);
    assert_eq!(gpu("MI300X").vendor, Vendor::Amd);
    assert_eq!(facts.gpus().by_pci_id(0x2335)[0].id, "H200");
    assert_eq!(facts.gpus().by_product_name("NVIDIA A100-SXM4-80GB").unwrap().id, "A100-80");
    assert!(facts.gpus().by_product_name("NVIDIA A1000").is_none());
}

#[test]
fn drivers_carry_their_cuda_and_ptx() {
    let facts = Facts::embedded();
    for (text, cuda, ptx) in [
        ("450.80.02", "11.0", "7.0"),
        ("470.256.02", "11.4", "7.4"),
        ("520.61.05", "11.8", "7.8"),
        ("525.60.13", "12.0", "8.0"),
        ("535.161.08", "12.2", "8.2"),
        ("550.54.15", "12.4", "8.4"),
        ("560.35.03", "12.6", "8.5"),
        ("565.57.01", "12.7", "8.6"),
        ("570.211.01", "12.8", "8.7"),
        ("580.159.04", "13.0", "9.0"),
        ("595.91.07", "13.2", "9.2"),
        ("615.31", "13.4", "9.4"),
        // Windows numbers run on between Linux branches.
        ("552.22", "12.4", "8.4"),
    ] {
        let branch = facts.drivers().branch_of(driver(text)).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(
            (branch.cuda.to_string().as_str(), branch.ptx_isa.to_string().as_str()),
            (cuda, ptx),
            "{text}"
        );
    }
    assert!(facts.drivers().branch_of(driver("418.39")).is_none());
    assert!(facts.drivers().branch_of(driver("700.01")).is_none());
}

#[test]
fn branches_have_their_kind_and_end() {
    let facts = Facts::embedded();
    let branch = |number: u16| facts.drivers().branch.iter().find(|row| row.branch == number).unwrap();
    assert_eq!(branch(535).kind, Some(BranchKind::Lts));
    assert_eq!(branch(580).kind, Some(BranchKind::Lts));
    assert_eq!(branch(590).kind, Some(BranchKind::NewFeature));
    assert_eq!(branch(550).end_of_life.unwrap().to_string(), "2025-04-17");
    assert_eq!(branch(580).oldest_architecture, "Maxwell");
    assert_eq!(branch(590).oldest_architecture, "Turing");
}

#[test]
fn drivers_run_what_they_run() {
    let facts = Facts::embedded();
    let runs = |text: &str| facts.drivers().runs(driver(text));
    assert_eq!(
        runs("535.161.08"),
        [(11, Runs::All), (12, Runs::AllButPtxAfter(cuda("12.2"))), (13, Runs::None(driver("580")))]
    );
    // Shipped with CUDA 11.0, and below the floor from which all of CUDA 11 runs.
    assert_eq!(runs("450.51.06")[0], (11, Runs::UpTo(cuda("11.0"), driver("450.80.02"))));
    assert!(runs("700.01").is_empty());
}

#[test]
fn majors_have_their_lowest_driver() {
    let facts = Facts::embedded();
    for (major, linux, windows) in
        [(11, "450.80.02", Some("452.39")), (12, "525.60.13", Some("528.33")), (13, "580", None)]
    {
        let row = facts.drivers().minor_compat(major).unwrap();
        assert_eq!(row.min_linux, driver(linux));
        assert_eq!(row.min_windows, windows.map(driver));
    }
}

#[test]
fn generations_end_where_they_end() {
    let facts = Facts::embedded();
    let of = |capability: &str| facts.drivers().architecture_of(capability.parse().unwrap()).unwrap();
    assert_eq!((of("3.7").last_toolkit, of("3.7").last_driver_branch), (Some(cuda("11.8")), Some(470)));
    assert_eq!((of("7.0").last_toolkit, of("7.0").last_driver_branch), (Some(cuda("12.9")), Some(580)));
    assert_eq!((of("7.5").last_toolkit, of("7.5").last_driver_branch), (None, None));
    assert_eq!(of("8.6").first_toolkit_of[&"8.6".parse().unwrap()], cuda("11.1"));
}

#[test]
fn toolkits_assemble_for_their_targets() {
    let facts = Facts::embedded();
    let has = |version: &str, target: &str| {
        facts.toolkits().toolkit(cuda(version)).unwrap().sass.contains(&target.parse().unwrap())
    };
    for (version, target, expected) in [
        ("11.7", "sm_89", false),
        ("11.8", "sm_89", true),
        ("11.8", "sm_35", true),
        ("12.0", "sm_35", false),
        ("12.0", "sm_90a", true),
        ("12.6", "sm_100", false),
        ("12.8", "sm_100", true),
        ("12.8", "sm_103", false),
        ("12.9", "sm_103", true),
        ("12.9", "sm_100f", true),
        ("12.9", "sm_70", true),
        ("13.0", "sm_70", false),
        ("13.0", "sm_75", true),
        ("13.0", "sm_101", false),
        ("13.0", "sm_110", true),
        ("13.4", "sm_107", true),
    ] {
        assert_eq!(has(version, target), expected, "CUDA {version} and {target}");
    }
    let toolkit = |version: &str| facts.toolkits().toolkit(cuda(version)).unwrap();
    assert_eq!(toolkit("12.4").ptx_isa.to_string(), "8.4");
    assert_eq!((toolkit("12.4").gcc_max, toolkit("13.0").gcc_max), (Some(13), Some(15)));
    assert!(facts.toolkits().toolkit(cuda("12.7")).is_none(), "12.7 was never released");
}

#[test]
fn releases_and_libraries_belong_together() {
    let facts = Facts::embedded();
    let release =
        |text: &str| facts.toolkits().release.iter().find(|row| row.cuda.to_string() == text).unwrap();
    assert_eq!(release("12.4.1").min_linux, Some(driver("550.54.15")));
    assert_eq!(release("13.0.2").min_linux, Some(driver("580.95.05")));
    assert_eq!(release("12.8.0").runfile_driver, Some(driver("570.86.10")));
    let with_cublas = facts.components().components.iter();
    let with_cublas = with_cublas.filter(|row| row.cublas.as_deref() == Some("12.4.5.8"));
    let releases: Vec<String> = with_cublas.map(|row| row.cuda.to_string()).collect();
    assert_eq!(releases, ["12.4.1"]);
    let soname = |library: &str| facts.toolkits().soname.iter().find(|row| row.library == library).unwrap();
    assert_eq!(soname("cufft").cuda12, ["libcufft.so.11"]);
    assert_eq!(soname("cufft").cuda13, ["libcufft.so.12"]);
    assert_eq!(soname("cudart").cuda11, ["libcudart.so.11.0"]);
}

#[test]
fn compat_packages_run_on_their_branches() {
    let facts = Facts::embedded();
    let packages = |branch: u16| -> Vec<String> {
        facts.forward_compat().packages_for(branch).map(|package| package.cuda.to_string()).collect()
    };
    assert!(packages(535).contains(&"12.4".to_owned()));
    assert!(packages(570).contains(&"13.0".to_owned()));
    assert!(!packages(580).contains(&"12.9".to_owned()), "a package older than the driver never runs");
    assert!(packages(565).is_empty(), "565 is not a base branch any more");
}

#[test]
fn image_tags_exist_or_not() {
    let facts = Facts::embedded();
    let tag = |text: &str| facts.images().tag(&ImageTag::parse(text).unwrap());
    for exists in [
        "12.4.1-cudnn-runtime-ubuntu22.04",
        "12.3.2-cudnn9-devel-ubuntu22.04",
        "12.2.2-cudnn8-runtime-ubuntu20.04",
        "13.0.2-base-ubuntu24.04",
        "12.8.1-devel-rockylinux9",
    ] {
        assert!(matches!(tag(exists), TagVerdict::Exists(_)), "{exists}");
    }
    for missing in [
        "12.4.1-cudnn8-runtime-ubuntu22.04",
        "12.4.0-cudnn-runtime-ubuntu22.04",
        "12.4.1-base-ubuntu24.04",
        "12.4-base-ubuntu22.04",
        "11.7.0-base-ubuntu20.04",
    ] {
        assert!(matches!(tag(missing), TagVerdict::Missing { .. }), "{missing}");
    }
    assert!(matches!(tag("13.4.1-base-ubuntu24.04"), TagVerdict::NotSeen(_)));
    let status = |text: &str| match tag(text) {
        TagVerdict::Exists(tags) => tags.status,
        other => panic!("{other:?}"),
    };
    assert_eq!(status("12.4.1-base-ubuntu22.04"), TagStatus::Supported);
    assert_eq!(status("12.4.0-base-ubuntu22.04"), TagStatus::Unsupported);
}

#[test]
fn images_demand_what_they_demand() {
    let facts = Facts::embedded();
    let require = |text: &str| facts.images().requirement(text.parse().unwrap()).unwrap();
    assert_eq!(require("12.4.1").with_geforce, [470, 525, 535]);
    assert_eq!(require("12.6.3").datacenter, [470, 535, 550]);
    assert!(require("12.6.3").with_geforce.is_empty(), "no GeForce since 12.5");
    let path = |text: &str| facts.images().library_path(text.parse().unwrap()).unwrap().value.clone();
    assert_eq!(path("12.9.1"), "/usr/local/cuda/lib64");
    assert_eq!(path("12.4.1"), "/usr/local/nvidia/lib:/usr/local/nvidia/lib64");
}

#[test]
fn flavors_cost_what_their_parts_do() {
    let facts = Facts::embedded();
    let mib = |cuda: &str, from: &str, to: &str| {
        facts.images().flavor_saving(cuda.parse().unwrap(), from, to).map(|bytes| bytes >> 20)
    };
    let cases = [
        ("12.4.1", "devel", "runtime", Some(2576)),
        ("12.4.1", "devel", "base", Some(2576 + 1958)),
        ("12.4.1", "cudnn-runtime", "runtime", Some(975)),
        ("12.4.1", "cudnn-devel", "cudnn-runtime", Some(2576)),
        ("11.8.0", "cudnn8-runtime", "base", Some(2307 + 1062)),
        ("12.4.1", "base", "runtime", None),
        ("12.4.1", "runtime", "runtime", None),
        ("12.4.1", "tensorrt-runtime", "runtime", None),
        ("12.4.0", "cudnn-runtime", "runtime", None),
        ("11.3.1", "devel", "runtime", None),
    ];
    for (cuda, from, to, expected) in cases {
        assert_eq!(mib(cuda, from, to), expected, "{cuda} {from} to {to}");
    }
}

#[test]
fn images_are_built_on_their_distribution() {
    let facts = Facts::embedded();
    let cases = [
        ("nvidia/cuda", "12.4.1-base-ubuntu22.04", Some("ubuntu22.04")),
        ("ubuntu", "22.04", Some("ubuntu22.04")),
        ("ubuntu", "jammy-20240227", Some("ubuntu22.04")),
        ("debian", "12-slim", Some("debian12")),
        ("python", "3.12-slim-bookworm", Some("debian12")),
        ("python", "3.12", None),
        ("python", "3.12-alpine", None),
        ("python", "12", None),
        ("somebody/python", "3.12-bookworm", None),
    ];
    for (repository, tag, expected) in cases {
        let system = facts.images().system(repository, tag);
        assert_eq!(system.map(|system| system.os.as_str()), expected, "{repository}:{tag}");
    }
}

#[test]
fn torch_builds_have_their_cuda_and_code() {
    let facts = Facts::embedded();
    let frameworks = facts.frameworks();
    for (text, cuda, min_driver) in [
        ("1.13.1", "11.7", "450.80.02"),
        ("2.1.0", "12.1", "525.60.13"),
        ("2.5.1", "12.4", "525.60.13"),
        ("2.8.0", "12.8", "525.60.13"),
        ("2.11.0", "13.0", "580"),
        ("2.15.0", "13.2", "580"),
    ] {
        let release = frameworks.torch(&version(text)).unwrap();
        assert_eq!(
            (release.cuda.to_string().as_str(), release.min_driver),
            (cuda, driver(min_driver)),
            "{text}"
        );
    }
    let runs = |text: &str, wheel, card: &str| {
        let build = frameworks.torch_build(&version(text), wheel).unwrap();
        build.sass.as_ref().unwrap().iter().any(|code| code.runs_on(card.parse().unwrap()))
    };
    assert!(!runs("2.0.1", TorchWheel::Pypi, "9.0"), "torch 2.0 from PyPI has no Hopper code");
    assert!(runs("2.0.1", TorchWheel::Tag("cu118"), "9.0"));
    assert!(!runs("2.6.0", TorchWheel::Pypi, "12.0"));
    assert!(runs("2.8.0", TorchWheel::Pypi, "12.0"));
    assert!(!runs("2.11.0", TorchWheel::Pypi, "7.0"), "PyPI lost Volta with CUDA 13");
    assert!(runs("2.11.0", TorchWheel::Tag("cu126"), "7.0"));
    assert_eq!(frameworks.torch(&version("2.5.1")).unwrap().torchvision, Some(version("0.20.1")));
    assert_eq!(
        frameworks.torch(&version("2.10.0")).unwrap().aarch64_cuda,
        None,
        "the arm wheel was for the CPU"
    );
}

#[test]
fn other_frameworks_have_their_cuda_and_code() {
    let facts = Facts::embedded();
    let frameworks = facts.frameworks();
    assert_eq!(frameworks.tensorflow(&version("2.15.0")).unwrap().cuda, Some(cuda("12.2")));
    assert_eq!(frameworks.tensorflow(&version("2.18.0")).unwrap().cudnn_major, Some(9));
    assert_eq!(frameworks.onnxruntime_gpu(&version("1.18.1")).unwrap().cuda_major, 11);
    assert_eq!(frameworks.onnxruntime_gpu(&version("1.19.2")).unwrap().cuda_major, 12);
    assert_eq!(frameworks.onnxruntime_gpu(&version("1.27.0")).unwrap().cuda_major, 13);
    let newest = frameworks.onnxruntime_gpu(&version("1.31.1")).unwrap();
    let runs = |card: &str| newest.sass.iter().any(|code| code.runs_on(card.parse().unwrap()));
    assert!(runs("9.0") && runs("12.0") && !runs("10.0") && !runs("12.1"));
    assert!(newest.ptx.is_empty());
    assert_eq!(
        frameworks.jax_plugin("jax-cuda13-plugin", &version("0.11.2")).unwrap().min_driver,
        driver("580")
    );
    assert!(frameworks.jax_plugin("jax-cuda13-plugin", &version("0.6.0")).is_none());
}

#[test]
fn cuda_errors_have_their_names() {
    let facts = Facts::embedded();
    for (code, name) in [
        (34, "cudaErrorStubLibrary"),
        (35, "cudaErrorInsufficientDriver"),
        (100, "cudaErrorNoDevice"),
        (209, "cudaErrorNoKernelImageForDevice"),
        (222, "cudaErrorUnsupportedPtxVersion"),
        (802, "cudaErrorSystemNotReady"),
        (803, "cudaErrorSystemDriverMismatch"),
        (804, "cudaErrorCompatNotSupportedOnDevice"),
    ] {
        assert_eq!(facts.messages().cuda_error(&code.to_string()).unwrap().name, name);
        assert_eq!(facts.messages().cuda_error(name).unwrap().code, code);
    }
}

/// NVIDIA's own statements, which were not read for the table: TensorRT-RTX 1.5's matrix of hardware and precision, and for
/// the capabilities it lacks, the overview of tensor cores in CUTLASS.
const FORMATS: [(&str, &[ComputeFormat], &[ComputeFormat]); 8] = {
    use ComputeFormat::{Bf16, Fp4, Fp8, Fp16, Fp32, Int8, Tf32};
    [
        ("7.0", &[Fp32, Fp16], &[Bf16, Tf32, Fp8, Fp4]),
        ("7.5", &[Fp32, Fp16, Int8], &[Bf16, Tf32, Fp8, Fp4]),
        ("8.0", &[Fp32, Fp16, Bf16, Tf32, Int8], &[Fp8, Fp4]),
        ("8.6", &[Fp32, Fp16, Bf16, Int8], &[Fp8, Fp4]),
        ("8.9", &[Fp32, Fp16, Bf16, Int8, Fp8], &[Fp4]),
        ("9.0", &[Fp32, Fp16, Bf16, Tf32, Int8, Fp8], &[Fp4]),
        ("12.0", &[Fp32, Fp16, Bf16, Int8, Fp8, Fp4], &[]),
        ("12.1", &[Fp32, Fp16, Bf16, Int8, Fp8, Fp4], &[]),
    ]
};

#[test]
fn gpus_calculate_in_the_formats_that_nvidia_states() {
    let facts = Facts::embedded();
    for (capability, has, lacks) in FORMATS {
        let native = facts.gpus().native_formats(capability.parse().unwrap()).unwrap();
        for format in has {
            assert!(native.contains(format), "{capability} has {format}");
        }
        for format in lacks {
            assert!(!native.contains(format), "{capability} lacks {format}");
        }
    }
    let native = |gpu: &str| {
        let gpu = facts.gpus().find(gpu).one().unwrap();
        facts.gpus().native_formats(gpu.capability.unwrap()).unwrap()
    };
    // Azure's page says "1.4 Exa-FLOPS of FP4 Tensor Core throughput" of the rack.
    assert!(native("GB200").contains(&ComputeFormat::Fp4));
    assert!(!native("T4").contains(&ComputeFormat::Bf16) && !native("A10").contains(&ComputeFormat::Fp8));
}

#[test]
fn the_formats_of_every_gpu_are_known() {
    let facts = Facts::embedded();
    for gpu in facts.gpus().gpu.iter().filter_map(|gpu| Some((&gpu.id, gpu.capability?))) {
        assert!(facts.gpus().native_formats(gpu.1).is_some(), "{}: {}", gpu.0, gpu.1);
    }
    assert_eq!(facts.gpus().native_formats("99.0".parse().unwrap()), None, "unknown stays unknown");
}

#[test]
fn azure_sizes_are_what_they_are() {
    let facts = Facts::embedded();
    let size = |name: &str| facts.sizes().find(name).one().unwrap_or_else(|| panic!("{name}"));
    let t4 = size("Standard_NC4as_T4_v3");
    assert_eq!((t4.gpu.as_deref(), t4.gpu_count, t4.vcpu), (Some("T4"), Some(1.0), Some(4)));
    assert_eq!(size("Standard_ND96isr_H100_v5").gpu_count, Some(8.0));
    assert_eq!(size("Standard_NV6ads_A10_v5").driver, Some(SizeDriver::Grid));
    assert_eq!(size("Standard_NC6s_v3").lifecycle, Lifecycle::Retired);
    assert_eq!(size("Standard_NC6s_v3").retired_on.unwrap().to_string(), "2025-09-30");
    assert_eq!(size("Standard_NC6").retired_on.unwrap().to_string(), "2023-09-06");
    assert_eq!(size("Standard_ND128isr_NDR_GB200_v6").cpu_arch, Arch::Aarch64);
    assert!(size("nc24ads_a100_v4").is_on_sale("2026-11-15".parse().unwrap()));
    assert!(facts.sizes().find("Standard_NC6_v3").one().is_none(), "a size tutorials made up");
}

#[test]
fn azure_prices_are_what_they_were() {
    let facts = Facts::embedded();
    let price =
        |size: &str, region: &str| facts.prices().of_size(size).find(|row| row.region == region).unwrap();
    assert_eq!(price("Standard_NC4as_T4_v3", "eastus").price.unwrap().to_string(), "0.526");
    assert_eq!(price("Standard_NC24ads_A100_v4", "westeurope").price.unwrap().to_string(), "4.775");
    assert_eq!(price("Standard_NC4as_T4_v3", "westus2").spot.unwrap().to_string(), "0.15254");
    assert!(facts.prices().rows().count() > 1400);
    assert!(facts.prices().regions().count() > 50);
}

#[test]
fn azure_services_are_what_they_are() {
    let facts = Facts::embedded();
    let service = |id: &str| facts.services().service.iter().find(|service| service.id == id).unwrap();
    assert_eq!(service("aci").gpu, ServiceGpu::Retired);
    assert_eq!(service("aci").gpu_retired_on.unwrap().to_string(), "2025-07-14");
    assert_eq!(service("container-apps").gpu, ServiceGpu::Available);
    assert!(service("container-apps").scale_to_zero);
    let ids: Vec<&str> = facts.services().service.iter().map(|service| service.id.as_str()).collect();
    assert_eq!(ids.len(), 6, "{ids:?}");
    assert!(facts.services().profile.iter().any(|profile| profile.name == "Consumption-GPU-NC8as-T4"));
    let ultra = facts.storage().storage.iter().find(|row| row.id == "managed-disk-ultra").unwrap();
    assert_eq!(ultra.max_iops, Some(400_000));
}

#[test]
fn every_code_of_the_planner_has_a_page() {
    let facts = Facts::embedded();
    let azure = (801..=824).map(|number| format!("CD{number:04}"));
    let cost = (901..=907).map(|number| format!("CD{number:04}"));
    for code in azure.chain(cost) {
        let page = facts.findings().finding.iter().find(|page| page.code == code);
        assert!(page.is_some_and(|page| !page.fix.is_empty() && page.why.len() > 100), "{code}");
    }
}
