//! Generates `cudock.toml`, a Dockerfile and a `.dockerignore` for a project.
//!
//! Which versions run on a target is decided by `cudock-compat` alone: candidates are rendered, newest first, and the
//! first Dockerfile that will use the GPU is kept. So a generated file and `cudock check` never disagree. Projects are read
//! through [`Files`] only; [`Scaffold::write`] is the one place that writes.

mod candidates;
mod command;
mod compiled;
mod detect;
mod packages;
mod python;
mod render;
mod write;

use cudock_base::{Arch, UsageError};
use cudock_compat::Target;
use cudock_facts::Facts;
use cudock_facts::version::CudaVersion;
use cudock_manifests::Files;
use schemars::JsonSchema;
use serde::Serialize;

pub use detect::{Detected, Installer, ProjectKind, detect};

/// Facts about a project before anything is chosen.
pub struct InitContext<'a> {
    pub facts: &'a Facts,
    pub files: &'a dyn Files,
    /// The name of the project.
    pub name: &'a str,
    /// The target; none for machines without a GPU.
    pub target: Option<&'a Target>,
}

impl InitContext<'_> {
    fn arch(&self) -> Arch {
        self.target.and_then(|target| target.traits.cpu).unwrap_or_default()
    }

    /// The target as comments name it: `T4 (7.5), driver 580.178.04`.
    fn target_name(&self) -> String {
        self.target.map_or_else(|| "machines without a GPU".to_owned(), ToString::to_string)
    }

    /// Why the driver is assumed, if the user named none.
    fn driver_note(&self) -> Option<String> {
        self.target?.traits.driver_assumed.clone()
    }

    /// The GPU alone: `T4 (7.5)`.
    fn gpu_name(&self) -> String {
        let name = self.target_name();
        name.split_once(", driver").map(|(gpu, _)| gpu.to_owned()).unwrap_or(name)
    }
}

/// Choices that the user made.
#[derive(Debug, Clone, Default)]
pub struct InitOptions {
    /// The Python version: `3.13`.
    pub python: Option<String>,
    pub cuda: Option<CudaVersion>,
    /// The command that the container runs.
    pub command: Option<String>,
}

/// The generated files, and how they came about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scaffold {
    pub choices: Vec<Choice>,
    /// Notes about things that the user should know or do.
    pub notes: Vec<String>,
    pub files: Vec<GeneratedFile>,
}

/// A version or an image that was chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Choice {
    /// `torch`, `Python`, `CUDA`, `base image`, …
    pub name: String,
    pub value: String,
    pub reason: String,
}

impl Choice {
    fn new(name: &str, value: &impl ToString, reason: impl Into<String>) -> Self {
        Self { name: name.to_owned(), value: value.to_string(), reason: reason.into() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedFile {
    /// Relative to the project's directory.
    pub path: &'static str,
    pub text: String,
}

/// An error for an option that would have no effect.
fn refuse_unused(detected: &Detected, options: &InitOptions) -> Result<(), UsageError> {
    let Detected { kind, installer, file } = detected;
    let is_compiled = matches!(kind, ProjectKind::Cmake | ProjectKind::Make);
    let (option, reason, hint) = if options.python.is_some() && is_compiled {
        ("--python", format!("{file} builds no Python program"), "omit it")
    } else if options.python.is_some() && *installer == Some(Installer::Conda) {
        ("--python", format!("{file} determines the Python version"), "change it there")
    } else if options.cuda.is_some() && *installer == Some(Installer::Uv) {
        (
            "--cuda",
            format!("{file} determines the builds"),
            "change the index in pyproject.toml, and run `uv lock`",
        )
    } else if options.cuda.is_some() && *kind == ProjectKind::CudaPython && *installer == Some(Installer::Pip)
    {
        ("--cuda", format!("{file} determines the builds"), "change the packages there, such as cupy-cuda12x")
    } else {
        return Ok(());
    };
    Err(UsageError::new(format!("{option} has no effect: {reason}")).hint(hint))
}

/// Generates the files of a project of the detected kind.
pub fn generate(
    context: &InitContext<'_>,
    detected: &Detected,
    options: &InitOptions,
) -> Result<Scaffold, UsageError> {
    refuse_unused(detected, options)?;
    let draft = match detected.kind {
        ProjectKind::Cmake | ProjectKind::Make => compiled::draft(context, detected, options)?,
        ProjectKind::Onnx => python::onnx(context, detected, options)?,
        ProjectKind::Torch | ProjectKind::Tensorflow | ProjectKind::Jax | ProjectKind::CudaPython => {
            python::draft(context, detected, options)?
        }
    };
    let file = |path, text| GeneratedFile { path, text };
    Ok(Scaffold {
        choices: draft.choices,
        notes: context.driver_note().into_iter().chain(draft.notes).collect(),
        files: vec![
            file("cudock.toml", render::manifest(context, detected)),
            file("Dockerfile", draft.dockerfile),
            file(".dockerignore", render::ignore_file(detected)),
        ],
    })
}
