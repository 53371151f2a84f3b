//! Finds the frameworks of Python environments.

use std::collections::BTreeSet;

use cudock_facts::Facts;
use cudock_host::frameworks::{Build, MissingLibraryEffect, Support, builds};
use cudock_host::host::PythonEnvironment;

use super::components::vendor_library;
use super::contents::Contents;
use super::linking::Search;
use super::packages;
use super::survey::Survey;
use crate::evidence::{Artifact, Code, CodeFile, Effect, Missing, Role};

/// Whether a library that is not in the subject is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Completeness {
    /// Everything that will be there is in it.
    Complete,
    /// Other parts bring the rest.
    Partial,
}

/// A file with GPU code, by its path.
pub(crate) struct CodeAt {
    pub(crate) path: String,
    pub(crate) code: super::file_facts::FileCode,
}

/// The artifacts of a Python environment: its frameworks, and the extensions beside them. Takes the files it uses out of
/// the survey.
pub(crate) fn artifacts(
    facts: &Facts,
    files: &dyn Contents,
    search: &Search<'_>,
    python: &PythonEnvironment,
    cpu_arch: &str,
    completeness: Completeness,
    survey: &mut Survey,
) -> Vec<Artifact> {
    let wheel_directories: Vec<String> = python
        .site_packages
        .iter()
        .flat_map(|site| {
            let nvidia = format!("{site}/nvidia");
            files.names(&nvidia).into_iter().map(move |component| format!("{nvidia}/{component}/lib"))
        })
        .collect();
    let context =
        FrameworkContext { files, search, python, wheel_directories: &wheel_directories, completeness };
    let mut artifacts: Vec<Artifact> = builds(facts, python, cpu_arch)
        .into_iter()
        .map(|build| framework(&context, build, &mut survey.code))
        .collect();
    for artifact in &mut artifacts {
        artifact.missing.extend(loaded_by_program(&context, artifact));
        artifact.demote_beside_torch(python.torch.is_some());
    }
    artifacts.extend(packages::extensions(facts, files, &python.site_packages, survey));
    artifacts
}

/// A library in a wheel that the loader would not find by itself: the program has to load it first.
fn loaded_by_program(context: &FrameworkContext<'_>, artifact: &Artifact) -> Option<Missing> {
    let build = artifact.build.as_ref()?;
    let MissingLibraryEffect::UsesCpu { loads_first: true, .. } = build.without else { return None };
    let library = build.needs.iter().find(|soname| context.search.find(soname).is_none())?;
    if !artifact.missing.is_empty() {
        return None;
    }
    let (library, needed_by) = (library.clone(), artifact.path.clone());
    Some(Missing { library, needed_by, version: None, broken: None, effect: Effect::LoadedByProgram })
}

/// What all frameworks of an environment share.
struct FrameworkContext<'a> {
    files: &'a dyn Contents,
    search: &'a Search<'a>,
    python: &'a PythonEnvironment,
    wheel_directories: &'a [String],
    completeness: Completeness,
}

/// The directories of a framework in site-packages, and the libraries whose dependencies are resolved.
fn locations(name: &str) -> (&'static [&'static str], &'static [&'static str]) {
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

fn framework(context: &FrameworkContext<'_>, build: Build, code: &mut Vec<CodeAt>) -> Artifact {
    let (directories, heads) = locations(&build.name);
    let mut own = Vec::new();
    for site in &context.python.site_packages {
        for directory in directories {
            own.extend(take_below(code, &format!("{site}/{directory}/")));
        }
    }
    let heads: Vec<String> = context
        .python
        .site_packages
        .iter()
        .flat_map(|site| heads.iter().map(move |head| format!("{site}/{head}")))
        .filter(|head| context.files.elf(head).is_some())
        .collect();
    let missing = if build.support == Support::Cuda || matches!(build.support, Support::NotInTables { .. }) {
        missing(context, &build, &heads)
    } else {
        Vec::new()
    };
    let mut files: Vec<CodeFile> = own.into_iter().map(|at| code_file(at, Role::Framework)).collect();
    if !files.is_empty() {
        files.extend(vendor_files(context, &heads));
    }
    let path = build.path.clone().unwrap_or_else(|| context.python.prefix.clone());
    let code = (!files.is_empty()).then_some(Code::Files(files));
    Artifact::of_build(build, path, code, missing)
}

/// NVIDIA's libraries that a framework loads, as far as they hold code.
fn vendor_files(context: &FrameworkContext<'_>, heads: &[String]) -> Vec<CodeFile> {
    let loaded: BTreeSet<String> = heads
        .iter()
        .flat_map(|head| context.search.dependencies(head, context.wheel_directories).found.into_values())
        .collect();
    let code = |path: String| {
        vendor_library(&path)?;
        let code = context.files.elf(&path)?.code.clone()?;
        let path = context.files.real(&path).unwrap_or(path);
        Some(code_file(CodeAt { path, code }, Role::Vendor))
    };
    loaded.into_iter().filter_map(code).collect()
}

fn missing(context: &FrameworkContext<'_>, build: &Build, heads: &[String]) -> Vec<Missing> {
    let falls_back = matches!(build.without, MissingLibraryEffect::UsesCpu { .. });
    let effect = match (context.completeness, falls_back) {
        (Completeness::Partial, _) => Effect::NotHere,
        (Completeness::Complete, true) => Effect::UsesCpu,
        (Completeness::Complete, false) => Effect::Fails,
    };
    // Wheels' libraries are loaded by the framework itself where their own paths do not lead to them.
    let closures = heads.iter().map(|head| context.search.dependencies(head, context.wheel_directories));
    let mut missing: Vec<Missing> =
        closures.flat_map(|dependencies| dependencies.into_missing(effect)).collect();
    for soname in &build.needs {
        let there = context.search.find(soname).is_some()
            || context.python.wheel_libraries.contains(soname)
            || by_distribution(context.python, soname)
            || missing.iter().any(|known| known.library == *soname);
        if !there && context.completeness == Completeness::Complete {
            let needed_by = build.path.clone().unwrap_or_else(|| build.name.clone());
            missing.push(Missing { library: soname.clone(), needed_by, version: None, broken: None, effect });
        }
    }
    if heads.is_empty() && build.name == "torch" {
        missing.extend(pinned(context, effect));
    }
    missing.dedup();
    missing
}

/// What torch's metadata requires and no metadata provides: all there is to go by where its files are not here.
fn pinned(context: &FrameworkContext<'_>, effect: Effect) -> Vec<Missing> {
    let Some(torch) = context.python.get("torch") else { return Vec::new() };
    let required = torch.requires.iter().filter(|requirement| requirement.name.starts_with("nvidia-"));
    let absent = required.filter(|requirement| context.python.get(&requirement.name).is_none());
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

fn take_below(code: &mut Vec<CodeAt>, prefix: &str) -> Vec<CodeAt> {
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
