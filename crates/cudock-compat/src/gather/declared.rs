//! Evidence from files that say what will be installed.

use cudock_facts::Facts;
use cudock_facts::lookup::{ImageTag, TorchWheel, without_local};
use cudock_facts::tables::Requirement;
use cudock_facts::version::{CudaRelease, CudaVersion, DriverVersion};
use cudock_host::frameworks::{Build, Support, Without, builds};
use cudock_host::host::{Distribution, PythonEnvironment, TorchBuildInfo};
use pep440_rs::Version;

use crate::declared::{Declared, DeclaredPackage};
use crate::evidence::{
    Code, CopyKind, DriverCopy, Effect, Evidence, Missing, Reach, SubjectKind, Unit, UnitKind, Unread,
};

/// Frameworks whose version must be known.
const FRAMEWORKS: [&str; 8] = [
    "torch",
    "pytorch",
    "tensorflow",
    "tensorflow-gpu",
    "tensorflow-cpu",
    "onnxruntime-gpu",
    "onnxruntime",
    "jax",
];

/// What a file says about GPUs, with the tables' help.
pub(crate) fn evidence(facts: &Facts, name: &str, declared: &Declared, cpu_arch: &str) -> Evidence {
    let mut evidence = Evidence {
        subject: name.to_owned(),
        kind: SubjectKind::Environment,
        cpu: declared.platform.as_deref().and_then(|platform| platform.split('/').nth(1)).map(str::to_owned),
        environment: declared.environment.clone(),
        ..Evidence::default()
    };
    let base = declared.base_image.as_ref();
    let base_cuda = base.and_then(|base| base_image(facts, &base.reference, base.line, name, &mut evidence));
    let python = environment(facts, declared, cpu_arch);
    for build in builds(facts, &python, cpu_arch) {
        let missing = missing(declared, &build, base_cuda.as_ref());
        evidence.units.push(unit(declared, name, build, missing));
    }
    for package in declared.packages.iter().filter(|package| FRAMEWORKS.contains(&package.name.as_str())) {
        if package.exact.is_none() {
            evidence.units.push(unpinned(name, package));
        }
    }
    for package in declared.packages.iter().filter(|package| is_gpu_package(&package.name)) {
        evidence.units.push(not_in_tables(name, package));
    }
    let fix = "build the image and check it: `cudock check docker-daemon:NAME`";
    evidence.unread.extend(declared.notes.iter().map(|note| Unread {
        what: note.text.clone(),
        at: format!("{name}:{}", note.line),
        why: String::new(),
        fix: fix.to_owned(),
    }));
    if let Some(base) = base.filter(|_| base_cuda.is_none()) {
        evidence.unread.push(Unread {
            what: format!("the base image {}", base.reference),
            at: format!("{name}:{}", base.line),
            why: "was not read".to_owned(),
            fix: format!("check the base image by its own name: `cudock check {}`", base.reference),
        });
    }
    evidence
}

/// Packages that bring GPU code of their own, which the tables do not have.
fn is_gpu_package(name: &str) -> bool {
    const NAMES: [&str; 12] = [
        "apex",
        "bitsandbytes",
        "causal-conv1d",
        "cudf",
        "cuml",
        "cupy",
        "deepspeed",
        "flash-attn",
        "mamba-ssm",
        "tensorrt-llm",
        "vllm",
        "xformers",
    ];
    NAMES.contains(&name)
        || ["cupy-cuda", "cudf-cu", "cuml-cu", "numba-cuda", "auto-gptq"]
            .iter()
            .any(|start| name.starts_with(start))
}

fn not_in_tables(file: &str, package: &DeclaredPackage) -> Unit {
    let why = format!("{} brings GPU code of its own, and the tables do not have it", package.name);
    let fix = "check the wheel or the built image, where the code can be read".to_owned();
    open_question(file, package, UnitKind::Extension, why, fix)
}

/// The flavour of an nvidia/cuda base image.
struct BaseImage {
    cuda: CudaRelease,
    libraries: bool,
    cudnn: bool,
}

/// What the tag of an nvidia/cuda image tells: its requirements, its cuda-compat, its libraries.
fn base_image(
    facts: &Facts,
    reference: &str,
    line: usize,
    file: &str,
    evidence: &mut Evidence,
) -> Option<BaseImage> {
    let (repository, _) = reference.rsplit_once(':')?;
    if !repository.ends_with("nvidia/cuda") {
        return None;
    }
    let tag = ImageTag::parse(reference)?;
    let cuda: CudaRelease = tag.cuda.parse().ok()?;
    let environment = &mut evidence.environment;
    let mut set = |name: &str, value: String| {
        environment.entry(name.to_owned()).or_insert(value);
    };
    set("CUDA_VERSION", tag.cuda.clone());
    set("NVIDIA_VISIBLE_DEVICES", "all".to_owned());
    set("NVIDIA_DRIVER_CAPABILITIES", "compute,utility".to_owned());
    if let Some(row) = facts.images().requirement(cuda) {
        set("NVIDIA_REQUIRE_CUDA", requirement(facts, row));
    }
    // Every one of these images holds the cuda-compat of its CUDA.
    if let Some(branch) = facts.drivers().branch_with(cuda.version()) {
        evidence.driver_copies.push(DriverCopy {
            path: format!("{file}:{line}: {reference}"),
            kind: CopyKind::Compat { driver: Some(DriverVersion::of_branch(branch.branch)), note: None },
            reach: Reach::CompatPlace,
        });
    }
    let flavour = tag.flavour.as_str();
    Some(BaseImage {
        cuda,
        libraries: flavour.contains("runtime") || flavour.contains("devel"),
        cudnn: flavour.contains("cudnn"),
    })
}

/// The variable's value, put together from the parts the tables have.
fn requirement(facts: &Facts, row: &Requirement) -> String {
    let brands = |name: &str| -> Vec<&str> {
        let set = facts.images().brand_set.iter().find(|set| set.name == name);
        set.map(|set| set.brands.iter().map(String::as_str).collect()).unwrap_or_default()
    };
    let mut alternatives = vec![format!("cuda>={}", row.minimum)];
    for (name, branches) in
        [("tesla", &row.tesla), ("with_geforce", &row.with_geforce), ("datacenter", &row.datacenter)]
    {
        for branch in branches {
            for brand in brands(name) {
                alternatives.push(format!("brand={brand},driver>={branch},driver<{}", branch + 1));
            }
        }
    }
    alternatives.extend(row.any_brand.iter().cloned());
    alternatives.join(" ")
}

/// The environment the file describes, as if it were installed.
fn environment(facts: &Facts, declared: &Declared, cpu_arch: &str) -> PythonEnvironment {
    let pinned = declared.packages.iter().filter_map(|package| {
        let version = package.exact.clone()?;
        let name = if package.name == "pytorch" { "torch".to_owned() } else { package.name.clone() };
        Some(Distribution { name, version, path: format!("line {}", package.line), requires: Vec::new() })
    });
    // JAX's extras bring a plugin of its own version.
    let plugins = declared.packages.iter().filter(|package| package.name == "jax").flat_map(|jax| {
        let majors =
            jax.extras.iter().filter_map(|extra| extra.strip_prefix("cuda")?.get(..2).map(str::to_owned));
        majors.filter_map(|major| {
            let (name, version) = (format!("jax-cuda{major}-plugin"), jax.exact.clone()?);
            Some(Distribution { name, version, path: format!("line {}", jax.line), requires: Vec::new() })
        })
    });
    let pinned = pinned.chain(plugins);
    let torch = declared.packages.iter().find(|package| matches!(package.name.as_str(), "torch" | "pytorch"));
    PythonEnvironment {
        prefix: String::new(),
        found_by: "file".to_owned(),
        site_packages: Vec::new(),
        distributions: pinned.collect(),
        wheel_libraries: Vec::new(),
        torch: torch.and_then(|torch| torch_build(facts, declared, torch, cpu_arch)),
    }
}

/// Which build of torch a line means: its tag, or the one the index has.
fn torch_build(
    facts: &Facts,
    declared: &Declared,
    package: &DeclaredPackage,
    cpu_arch: &str,
) -> Option<TorchBuildInfo> {
    let version = package.exact.clone()?;
    let local = version.local().iter().map(ToString::to_string).collect::<Vec<_>>().join(".");
    let conda_cuda =
        declared.cuda_packages.iter().find(|found| found.name == "pytorch-cuda").and_then(|found| found.cuda);
    let tag = package.tag.clone().or_else(|| Some(local).filter(|local| !local.is_empty()));
    let frameworks = facts.frameworks();
    let (cuda, hip) = match tag.as_deref() {
        Some("cpu") => (None, None),
        Some(rocm) if rocm.starts_with("rocm") => (None, Some(rocm.trim_start_matches("rocm").to_owned())),
        Some(tag) => (CudaVersion::from_tag(tag), None),
        None if conda_cuda.is_some() => (conda_cuda, None),
        // On arm, wheels of the public index had no CUDA for long.
        None if cpu_arch == "aarch64" => {
            (frameworks.torch(&version).and_then(|release| release.aarch64_cuda), None)
        }
        None => {
            let row = frameworks.torch_build(&version, TorchWheel::Pypi).map(|build| build.cuda);
            (row.or_else(|| frameworks.torch(&version).map(|release| release.cuda)), None)
        }
    };
    // A version the tables do not know is not a CPU build.
    let known = tag.is_some() || conda_cuda.is_some() || frameworks.torch(&version).is_some();
    known.then(|| TorchBuildInfo { version: with_tag(&version, tag.as_deref()), cuda, hip })
}

fn with_tag(version: &Version, tag: Option<&str>) -> Version {
    let plain = without_local(version);
    tag.and_then(|tag| format!("{plain}+{tag}").parse().ok()).unwrap_or(plain)
}

/// Libraries that nothing in the file brings.
fn missing(declared: &Declared, build: &Build, base: Option<&BaseImage>) -> Vec<Missing> {
    let Without::UsesCpu { .. } = build.without else { return Vec::new() };
    let package = declared
        .packages
        .iter()
        .find(|package| package.name == build.name || (build.name == "jax" && package.name == "jax"));
    let extras = package.map(|package| package.extras.as_slice()).unwrap_or_default();
    let brings_all = extras.iter().any(|extra| {
        matches!(extra.as_str(), "and-cuda" | "cuda" | "cuda12" | "cuda13" | "cuda11-pip" | "cuda12-pip")
    });
    let torch = declared.packages.iter().any(|package| matches!(package.name.as_str(), "torch" | "pytorch"));
    let conda =
        declared.cuda_packages.iter().any(|found| found.cuda.is_some() || found.name.contains("cudatoolkit"));
    if brings_all || torch || conda {
        return Vec::new();
    }
    let by_base = |soname: &str| {
        base.is_some_and(|base| {
            let right = build.cuda_major.is_none_or(|major| base.cuda.version().major() == major);
            right && base.libraries && (base.cudnn || !soname.starts_with("libcudnn"))
        })
    };
    let by_wheel = |soname: &str| {
        let stem =
            soname.trim_start_matches("lib").split(".so").next().unwrap_or_default().to_ascii_lowercase();
        let stem = if stem == "cudart" { "cuda-runtime".to_owned() } else { stem.replace("lt", "") };
        declared.packages.iter().any(|package| package.name.starts_with(&format!("nvidia-{stem}")))
    };
    let absent = build.needs.iter().filter(|soname| !by_base(soname) && !by_wheel(soname));
    absent
        .map(|soname| Missing {
            library: soname.clone(),
            needed_by: build.path.clone().unwrap_or_default(),
            version: None,
            broken: None,
            effect: Effect::UsesCpu,
        })
        .collect()
}

fn unit(declared: &Declared, file: &str, build: Build, missing: Vec<Missing>) -> Unit {
    let wanted =
        if build.name == "torch" { ["torch", "pytorch"] } else { [build.name.as_str(), build.name.as_str()] };
    let line = declared
        .packages
        .iter()
        .find(|package| wanted.contains(&package.name.as_str()))
        .map_or(1, |package| package.line);
    Unit::of_build(build, format!("{file}:{line}"), None, missing)
}

/// A framework whose version is left open: what is installed is decided on the day.
fn unpinned(file: &str, package: &DeclaredPackage) -> Unit {
    let range = package.range.as_ref().map_or_else(String::new, |range| format!(" ({range})"));
    let name = &package.name;
    let why =
        format!("the version of {name} is not pinned{range}: which build is installed is decided on the day");
    open_question(
        file,
        package,
        UnitKind::Framework,
        why,
        format!("pin it: {name}==VERSION, or check the lock file or the built image"),
    )
}

/// A package of which the text does not tell what it will do.
fn open_question(file: &str, package: &DeclaredPackage, kind: UnitKind, why: String, fix: String) -> Unit {
    Unit {
        name: package.name.clone(),
        kind,
        path: format!("{file}:{}", package.line),
        support: Support::NotInTables { fix },
        runtime: None,
        links_driver: false,
        own_floor: None,
        code: Code::Unknown(why),
        missing: Vec::new(),
        barred: None,
        build: None,
    }
}
