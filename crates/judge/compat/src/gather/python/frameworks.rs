//! Finds the frameworks of Python environments.

use std::collections::BTreeSet;

use cudock_host::frameworks::{Build, MissingLibraryEffect, Support, builds};
use cudock_host::host::PythonEnvironment;

use crate::evidence::{Artifact, Code, CodeFile, Effect, Missing, Role};
use crate::gather::binary::components::vendor_library;
use crate::gather::binary::linking::Dependencies;
use crate::gather::code_file::{CodeAt, Completeness, code_file};
use crate::gather::survey::{ArtifactFinder, Survey};

impl ArtifactFinder<'_> {
    /// The artifacts of a Python environment: its frameworks, and the extensions installed with
    /// them. Takes the files it uses out of the survey.
    pub(crate) fn frameworks(&self, python: &PythonEnvironment, survey: &mut Survey) -> Vec<Artifact> {
        let libraries_of = |site: &String| {
            let nvidia = format!("{site}/nvidia");
            let components = self.files.names(&nvidia).into_iter();
            components.map(move |component| format!("{nvidia}/{component}/lib"))
        };
        let wheel_directories = python.site_packages.iter().flat_map(libraries_of).collect();
        let context = FrameworkContext { finder: self, python, wheel_directories };
        let builds = builds(self.facts, python, self.cpu_arch).into_iter();
        let mut artifacts: Vec<Artifact> =
            builds.map(|build| context.framework(build, &mut survey.code)).collect();
        for artifact in &mut artifacts {
            artifact.missing.extend(context.loaded_by_program(artifact));
            artifact.demote_beside_torch(python.torch.is_some());
        }
        artifacts.extend(self.extensions(&python.site_packages, survey));
        artifacts
    }
}

/// Data shared by all frameworks of an environment.
struct FrameworkContext<'a> {
    finder: &'a ArtifactFinder<'a>,
    python: &'a PythonEnvironment,
    wheel_directories: Vec<String>,
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

impl FrameworkContext<'_> {
    fn framework(&self, build: Build, code: &mut Vec<CodeAt>) -> Artifact {
        let (directories, heads) = locations(&build.name);
        let sites = &self.python.site_packages;
        let in_sites = |names: &'static [&'static str]| {
            sites.iter().flat_map(move |site| names.iter().map(move |name| format!("{site}/{name}")))
        };
        let mut files: Vec<CodeFile> = Vec::new();
        for prefix in in_sites(directories).map(|directory| directory + "/") {
            let own = code.extract_if(.., |at| at.path.starts_with(&prefix));
            files.extend(own.map(|at| code_file(at, Role::Framework)));
        }
        let heads: Vec<String> =
            in_sites(heads).filter(|head| self.finder.files.elf(head).is_some()).collect();
        let missing = match build.support {
            Support::Cuda | Support::NotInTables { .. } => self.missing(&build, &heads),
            Support::Cpu { .. } | Support::OtherVendor { .. } => Vec::new(),
        };
        if !files.is_empty() {
            files.extend(self.vendor_files(&heads));
        }
        let path = build.path.clone().unwrap_or_else(|| self.python.prefix.clone());
        let code = (!files.is_empty()).then_some(Code::Files(files));
        Artifact::of_build(build, path, code, missing)
    }

    /// NVIDIA's libraries that a framework loads, as far as they hold code.
    fn vendor_files(&self, heads: &[String]) -> Vec<CodeFile> {
        let loaded = heads.iter().flat_map(|head| self.dependencies(head).found.into_values());
        let loaded: BTreeSet<String> = loaded.collect();
        let code = |path: String| {
            vendor_library(&path)?;
            let code = self.finder.files.elf(&path)?.code.clone()?;
            let path = self.finder.files.real(&path).unwrap_or(path);
            Some(code_file(CodeAt { path, code }, Role::Vendor))
        };
        loaded.into_iter().filter_map(code).collect()
    }

    /// Wheels' libraries are loaded by the framework itself where their own paths do not lead to them.
    fn dependencies(&self, head: &str) -> Dependencies {
        self.finder.search.dependencies(head, &self.wheel_directories)
    }

    fn missing(&self, build: &Build, heads: &[String]) -> Vec<Missing> {
        let completeness = self.finder.completeness;
        let falls_back = matches!(build.without, MissingLibraryEffect::UsesCpu { .. });
        let effect = match (completeness, falls_back) {
            (Completeness::Partial, _) => Effect::NotHere,
            (Completeness::Complete, true) => Effect::UsesCpu,
            (Completeness::Complete, false) => Effect::Fails,
        };
        let closures = heads.iter().map(|head| self.dependencies(head));
        let mut missing: Vec<Missing> =
            closures.flat_map(|dependencies| dependencies.into_missing(effect)).collect();
        for soname in &build.needs {
            let there = self.finder.search.find(soname).is_some()
                || self.python.wheel_libraries.contains(soname)
                || by_distribution(self.python, soname)
                || missing.iter().any(|known| known.library == *soname);
            if !there && completeness == Completeness::Complete {
                let needed_by = build.path.clone().unwrap_or_else(|| build.name.clone());
                missing.push(Missing::new(soname.clone(), needed_by, effect));
            }
        }
        if heads.is_empty() && build.name == "torch" {
            missing.extend(self.pinned(effect));
        }
        missing.dedup();
        missing
    }

    /// Packages that torch's metadata requires but no metadata provides: the only evidence if its
    /// files are not here.
    fn pinned(&self, effect: Effect) -> Vec<Missing> {
        let Some(torch) = self.python.get("torch") else { return Vec::new() };
        let required = torch.requires.iter().filter(|requirement| requirement.name.starts_with("nvidia-"));
        let absent = required.filter(|requirement| self.python.get(&requirement.name).is_none());
        absent.map(|absent| Missing::new(absent.name.clone(), torch.path.clone(), effect)).collect()
    }

    /// A library in a wheel that the loader would not find by itself: the program has to load it first.
    fn loaded_by_program(&self, artifact: &Artifact) -> Option<Missing> {
        let build = artifact.build.as_ref().filter(|_| artifact.missing.is_empty())?;
        let MissingLibraryEffect::UsesCpu { loads_first: true, .. } = build.without else { return None };
        let library = build.needs.iter().find(|soname| self.finder.search.find(soname).is_none())?;
        Some(Missing::new(library.clone(), artifact.path.clone(), Effect::LoadedByProgram))
    }
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
