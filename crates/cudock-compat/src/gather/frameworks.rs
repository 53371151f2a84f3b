//! Python environments and their frameworks as units.

use std::collections::BTreeSet;

use cudock_facts::Facts;
use cudock_host::frameworks::{Build, MissingLibraryEffect, Support, builds};
use cudock_host::host::PythonEnvironment;

use super::components::vendor_library;
use super::contents::Contents;
use super::linking::Search;
use super::packages;
use super::survey::Survey;
use crate::evidence::{Code, CodeFile, Effect, Missing, Role, Unit};

/// How whole the subject is: whether a library that is not in it is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wholeness {
    /// All that will be there is there.
    Whole,
    /// A part: others bring the rest.
    Part,
}

/// A file with GPU code, by its path.
pub(crate) struct CodeAt {
    pub(crate) path: String,
    pub(crate) code: super::kept::FileCode,
}

/// The units of a Python environment: its frameworks, and the extensions beside them. Takes the files it uses out of
/// the survey.
pub(crate) fn units(
    facts: &Facts,
    files: &dyn Contents,
    search: &Search<'_>,
    python: &PythonEnvironment,
    cpu_arch: &str,
    wholeness: Wholeness,
    survey: &mut Survey,
) -> Vec<Unit> {
    let wheel_folders: Vec<String> = python
        .site_packages
        .iter()
        .flat_map(|site| {
            let nvidia = format!("{site}/nvidia");
            files.names(&nvidia).into_iter().map(move |component| format!("{nvidia}/{component}/lib"))
        })
        .collect();
    let found = Found { files, search, python, wheel_folders: &wheel_folders, wholeness };
    let mut units: Vec<Unit> = builds(facts, python, cpu_arch)
        .into_iter()
        .map(|build| framework(&found, build, &mut survey.code))
        .collect();
    for unit in &mut units {
        unit.missing.extend(late(&found, unit));
        unit.beside_torch(python.torch.is_some());
    }
    units.extend(packages::extensions(facts, files, &python.site_packages, survey));
    units
}

/// A library in a wheel that the loader would not find by itself: the program has to load it first.
fn late(found: &Found<'_>, unit: &Unit) -> Option<Missing> {
    let build = unit.build.as_ref()?;
    let MissingLibraryEffect::UsesCpu { loads_first: true, .. } = build.without else { return None };
    let library = build.needs.iter().find(|soname| found.search.find(soname).is_none())?;
    if !unit.missing.is_empty() {
        return None;
    }
    let (library, needed_by) = (library.clone(), unit.path.clone());
    Some(Missing { library, needed_by, version: None, broken: None, effect: Effect::LoadedByProgram })
}

/// What all units of an environment share.
struct Found<'a> {
    files: &'a dyn Contents,
    search: &'a Search<'a>,
    python: &'a PythonEnvironment,
    wheel_folders: &'a [String],
    wholeness: Wholeness,
}

/// The folders of a framework in site-packages, and the files whose libraries are looked for.
fn places(name: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match name {
        "torch" => (
            &["torch"],
            &["torch/lib/libtorch_python.so", "torch/lib/libtorch_cuda.so", "torch/lib/libtorch.so"],
        ),
        "tensorflow" => (
            &["tensorflow"],
            &["tensorflow/libtensorflow_framework.so.2", "tensorflow/libtensorflow_cc.so.2"],
        ),
        "onnxruntime-gpu" => (&["onnxruntime"], &["onnxruntime/capi/libonnxruntime_providers_cuda.so"]),
        "jax" => (
            &["jax_plugins", "jax_cuda12_plugin", "jax_cuda13_plugin", "jaxlib"],
            &["jax_plugins/xla_cuda12/xla_cuda_plugin.so", "jax_plugins/xla_cuda13/xla_cuda_plugin.so"],
        ),
        _ => (&[], &[]),
    }
}

fn framework(found: &Found<'_>, build: Build, code: &mut Vec<CodeAt>) -> Unit {
    let (folders, heads) = places(&build.name);
    let mut own = Vec::new();
    for site in &found.python.site_packages {
        for folder in folders {
            own.extend(taken(code, &format!("{site}/{folder}/")));
        }
    }
    let heads: Vec<String> = found
        .python
        .site_packages
        .iter()
        .flat_map(|site| heads.iter().map(move |head| format!("{site}/{head}")))
        .filter(|head| found.files.elf(head).is_some())
        .collect();
    let missing = if build.support == Support::Cuda || matches!(build.support, Support::NotInTables { .. }) {
        missing(found, &build, &heads)
    } else {
        Vec::new()
    };
    let mut files: Vec<CodeFile> = own.into_iter().map(|at| code_file(at, Role::Framework)).collect();
    if !files.is_empty() {
        files.extend(vendor_files(found, &heads));
    }
    let path = build.path.clone().unwrap_or_else(|| found.python.prefix.clone());
    let code = (!files.is_empty()).then_some(Code::Files(files));
    Unit::of_build(build, path, code, missing)
}

/// NVIDIA's libraries that a framework loads, as far as they hold code.
fn vendor_files(found: &Found<'_>, heads: &[String]) -> Vec<CodeFile> {
    let loaded: BTreeSet<String> = heads
        .iter()
        .flat_map(|head| found.search.closure(head, found.wheel_folders).found.into_values())
        .collect();
    let code = |path: String| {
        vendor_library(&path)?;
        let code = found.files.elf(&path)?.code.clone()?;
        let path = found.files.real(&path).unwrap_or(path);
        Some(code_file(CodeAt { path, code }, Role::Vendor))
    };
    loaded.into_iter().filter_map(code).collect()
}

fn missing(found: &Found<'_>, build: &Build, heads: &[String]) -> Vec<Missing> {
    let falls_back = matches!(build.without, MissingLibraryEffect::UsesCpu { .. });
    let effect = match (found.wholeness, falls_back) {
        (Wholeness::Part, _) => Effect::NotHere,
        (Wholeness::Whole, true) => Effect::UsesCpu,
        (Wholeness::Whole, false) => Effect::Fails,
    };
    // Wheels' libraries are loaded by the framework itself where their own paths do not lead to them.
    let closures = heads.iter().map(|head| found.search.closure(head, found.wheel_folders));
    let mut missing: Vec<Missing> = closures.flat_map(|closure| closure.into_missing(effect)).collect();
    for soname in &build.needs {
        let there = found.search.find(soname).is_some()
            || found.python.wheel_libraries.contains(soname)
            || by_distribution(found.python, soname)
            || missing.iter().any(|known| known.library == *soname);
        if !there && found.wholeness == Wholeness::Whole {
            let needed_by = build.path.clone().unwrap_or_else(|| build.name.clone());
            missing.push(Missing { library: soname.clone(), needed_by, version: None, broken: None, effect });
        }
    }
    if heads.is_empty() && build.name == "torch" {
        missing.extend(pinned(found, effect));
    }
    missing.dedup();
    missing
}

/// What torch's metadata requires and no metadata provides: all there is to go by where its files are not here.
fn pinned(found: &Found<'_>, effect: Effect) -> Vec<Missing> {
    let Some(torch) = found.python.get("torch") else { return Vec::new() };
    let required = torch.requires.iter().filter(|requirement| requirement.name.starts_with("nvidia-"));
    let absent = required.filter(|requirement| found.python.get(&requirement.name).is_none());
    absent
        .map(|requirement| Missing {
            library: requirement.name.clone(),
            needed_by: torch.path.clone(),
            version: None,
            broken: None,
            effect,
        })
        .collect()
}

/// Whether an installed distribution brings a library whose file is not here.
fn by_distribution(python: &PythonEnvironment, soname: &str) -> bool {
    const BRINGS: [(&str, &str); 11] = [
        ("libcudart", "nvidia-cuda-runtime"),
        ("libcublas", "nvidia-cublas"),
        ("libcudnn", "nvidia-cudnn"),
        ("libcufft", "nvidia-cufft"),
        ("libcurand", "nvidia-curand"),
        ("libcusolver", "nvidia-cusolver"),
        ("libcusparse", "nvidia-cusparse"),
        ("libnccl", "nvidia-nccl"),
        ("libnvrtc", "nvidia-cuda-nvrtc"),
        ("libnvJitLink", "nvidia-nvjitlink"),
        ("libnvinfer", "tensorrt"),
    ];
    let Some((_, package)) = BRINGS.iter().find(|(library, _)| soname.starts_with(library)) else {
        return false;
    };
    let major = soname.rsplit_once(".so.").and_then(|(_, major)| major.split('.').next()).unwrap_or_default();
    python.distributions.iter().any(|found| {
        let Some(rest) = found.name.strip_prefix(package) else { return false };
        // The runtime's SONAME is CUDA's major; others have majors of their own, which their versions carry.
        let by_suffix = rest.strip_prefix("-cu").map(|cuda| cuda == major);
        let by_version = found.version.release().first().is_some_and(|first| first.to_string() == major);
        by_version || (*package == "nvidia-cuda-runtime" && by_suffix == Some(true))
    })
}

fn taken(code: &mut Vec<CodeAt>, prefix: &str) -> Vec<CodeAt> {
    let (own, rest) = code.drain(..).partition(|at| at.path.starts_with(prefix));
    *code = rest;
    own
}

/// A file's code in a role; NVIDIA's own libraries have theirs.
pub(crate) fn code_file(at: CodeAt, role: Role) -> CodeFile {
    let role = if vendor_library(&at.path).is_some() { Role::Vendor } else { role };
    CodeFile {
        path: at.path,
        role,
        patterns: at.code.patterns,
        device_linked: at.code.device_linked,
        loose: at.code.loose,
        toolkit: at.code.toolkit,
        embeds: if role == Role::Vendor { Vec::new() } else { at.code.embeds },
        needed: at.code.needed,
    }
}
