//! Detects what kind of project a directory holds.

use std::collections::BTreeSet;
use std::fmt;

use cudock_base::{Arch, UsageError};
use cudock_facts::Facts;
use cudock_facts::lookup::PackageUse;
use cudock_facts::tables::GpuUse;
use cudock_manifests::{Declared, FileKind, Files, read_sources, read_with_files};
use schemars::JsonSchema;
use serde::Serialize;

use crate::command::is_python;

/// What a project is built with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[allow(clippy::doc_markdown, reason = "shown as help")]
pub enum ProjectKind {
    /// CUDA program, built by CMake
    Cmake,
    /// CUDA program, built by make
    Make,
    /// PyTorch
    Torch,
    /// TensorFlow
    Tensorflow,
    /// JAX
    Jax,
    /// Other Python packages that use CUDA: cupy, numba, cuda-python
    CudaPython,
    /// ONNX model, served by cudock
    Onnx,
}

impl ProjectKind {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cmake => "cmake",
            Self::Make => "make",
            Self::Torch => "torch",
            Self::Tensorflow => "tensorflow",
            Self::Jax => "jax",
            Self::CudaPython => "cuda-python",
            Self::Onnx => "onnx",
        }
    }
}

/// What installs the Python packages of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Installer {
    /// pip, from requirements.txt or pyproject.toml
    Pip,
    /// uv, from uv.lock
    Uv,
    /// conda, mamba or micromamba, from environment.yml
    Conda,
}

impl Installer {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pip => "pip",
            Self::Uv => "uv",
            Self::Conda => "conda",
        }
    }
}

/// A kind of project that a directory holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detected {
    pub kind: ProjectKind,
    /// The installer of Python packages, if the project has any.
    pub installer: Option<Installer>,
    /// The file by which it was detected.
    pub file: String,
}

impl fmt::Display for Detected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = self.installer.map_or_else(String::new, |installer| format!(" by {}", installer.name()));
        write!(f, "{}{by} ({})", self.kind.name(), self.file)
    }
}

/// All kinds of project that a directory holds, compiled programs first.
pub fn detect(facts: &Facts, files: &dyn Files) -> Result<Vec<Detected>, UsageError> {
    let compiled = read_sources(files).compiled.into_iter().filter_map(|compiled| {
        let file = compiled.file?;
        let kind = match file.as_str() {
            "CMakeLists.txt" => ProjectKind::Cmake,
            "Makefile" | "makefile" | "GNUmakefile" => ProjectKind::Make,
            _ => return None,
        };
        Some(Detected { kind, installer: None, file })
    });
    let mut detected: Vec<Detected> = compiled.collect();
    // CMake writes makefiles, and many projects have one that calls it.
    if detected.iter().any(|detected| detected.kind == ProjectKind::Cmake) {
        detected.retain(|detected| detected.kind != ProjectKind::Make);
    }
    for manifest in PythonManifest::all(files, Arch::default())? {
        let kinds = kinds(facts, files, &manifest.declared);
        let (installer, file) = (Some(manifest.installer), manifest.file);
        detected.extend(kinds.into_iter().map(|kind| Detected { kind, installer, file: file.clone() }));
    }
    detected.extend(model(files).map(|file| Detected { kind: ProjectKind::Onnx, installer: None, file }));
    Ok(detected)
}

/// A file that declares the Python packages of a project.
#[derive(Debug)]
pub(crate) struct PythonManifest {
    pub(crate) installer: Installer,
    pub(crate) file: String,
    pub(crate) declared: Declared,
}

impl PythonManifest {
    /// The manifests in a project, at most one per installer.
    fn all(files: &dyn Files, arch: Arch) -> Result<Vec<Self>, UsageError> {
        [Installer::Uv, Installer::Pip, Installer::Conda]
            .into_iter()
            .filter_map(|installer| Self::read(files, installer, arch).transpose())
            .collect()
    }

    /// The file that an installer reads, for a processor of the kind `arch`.
    pub(crate) fn read(
        files: &dyn Files,
        installer: Installer,
        arch: Arch,
    ) -> Result<Option<Self>, UsageError> {
        let find =
            |names: &[&str]| names.iter().find_map(|name| Some(((*name).to_owned(), files.text(name)?)));
        let uses_uv = files.text("uv.lock").is_some()
            || files.text("pyproject.toml").is_some_and(|text| text.contains("[tool.uv"));
        let (file, kind) = match installer {
            Installer::Uv if !uses_uv => return Ok(None),
            Installer::Uv => match find(&["uv.lock"]) {
                Some(file) => (Some(file), FileKind::UvLock),
                None => (find(&["pyproject.toml"]), FileKind::Pyproject),
            },
            Installer::Pip => match find(&["requirements.txt"]) {
                Some(file) => (Some(file), FileKind::Requirements),
                None if uses_uv => return Ok(None),
                None => (find(&["pyproject.toml"]), FileKind::Pyproject),
            },
            Installer::Conda => {
                let names = ["environment.yml", "environment.yaml", "conda.yml", "conda.yaml"];
                (find(&names), FileKind::CondaEnvironment)
            }
        };
        let Some((file, text)) = file else { return Ok(None) };
        let mut declared = read_with_files(kind, &file, &text, arch, &file, files)
            .map_err(|error| UsageError::new(error.to_string()))?;
        if kind == FileKind::Pyproject {
            declared.keep_default_groups();
        }
        Ok(Some(Self { installer, file, declared }))
    }
}

/// The kinds of project that packages stand for.
fn kinds(facts: &Facts, files: &dyn Files, declared: &Declared) -> Vec<ProjectKind> {
    let names: BTreeSet<&str> = declared.packages.iter().map(|package| package.name.as_str()).collect();
    let has = |wanted: &[&str]| wanted.iter().any(|name| names.contains(name));
    let frameworks = [
        (ProjectKind::Torch, has(&["torch", "pytorch", "pytorch-gpu"])),
        (ProjectKind::Tensorflow, has(&["tensorflow", "tensorflow-cpu", "tensorflow-gpu"])),
        (ProjectKind::Jax, has(&["jax", "jaxlib"])),
    ];
    let found: Vec<ProjectKind> =
        frameworks.into_iter().filter_map(|(kind, is_declared)| is_declared.then_some(kind)).collect();
    let uses_cuda = |name: &str| match facts.packages().find(name) {
        // Most programs use numba for the CPU only.
        _ if name == "numba" => imports_numba_cuda(files),
        PackageUse::Gpu(row, _) => matches!(row.uses, GpuUse::Compiler | GpuUse::Code),
        PackageUse::NoGpu | PackageUse::Unknown => false,
    };
    if found.is_empty() && names.into_iter().any(uses_cuda) { vec![ProjectKind::CudaPython] } else { found }
}

/// Whether a path can be written into a Dockerfile as it is.
pub(crate) fn is_plain_path(path: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+/".contains(&byte);
    !path.is_empty() && !path.starts_with(['-', '/']) && path.bytes().all(is_plain)
}

fn imports_numba_cuda(files: &dyn Files) -> bool {
    let sources = files.below("").into_iter().filter(|path| is_python(path));
    sources
        .filter_map(|path| files.text(&path))
        .any(|text| text.contains("numba.cuda") || text.contains("from numba import cuda"))
}

/// The model to serve: `model.onnx`, or the first by name.
fn model(files: &dyn Files) -> Option<String> {
    let is_model = |path: &String| path.to_ascii_lowercase().ends_with(".onnx") && is_plain_path(path);
    let models = files.below("").into_iter().filter(is_model);
    models.min_by_key(|path| (path != "model.onnx", path.matches('/').count(), path.clone()))
}
