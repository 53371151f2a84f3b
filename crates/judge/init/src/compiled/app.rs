//! A CUDA program, as its Dockerfile is written from it.

use crate::{Choice, InitContext, ProjectKind};

/// The build targets of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BuildTargets {
    /// The name of the project.
    pub(super) project: Option<String>,
    /// Names of programs; for make, their paths.
    pub(crate) executables: Vec<String>,
    /// Names of shared libraries; for make, their paths.
    pub(crate) libraries: Vec<String>,
    /// Linked libraries and packages, in lower case.
    pub(super) links: Vec<String>,
    /// Whether `cmake --install` installs programs.
    pub(crate) installs: bool,
    /// Packages that have to be installed in the build stage.
    pub(super) packages: Vec<String>,
    pub(crate) openmp: bool,
}

/// A CUDA program in two stages.
pub(crate) struct CompiledApp<'a> {
    pub(crate) context: &'a InitContext<'a>,
    /// `CMake` or make.
    pub(crate) kind: ProjectKind,
    pub(crate) targets: &'a BuildTargets,
    pub(crate) architectures: &'a Architectures,
    pub(crate) cuda: &'a Choice,
    pub(crate) build: &'a Choice,
    pub(crate) base: &'a Choice,
    pub(crate) command: &'a [String],
}

/// The architectures a program is compiled for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Architectures {
    /// The build files list them.
    Own(String),
    /// `CMAKE_CUDA_ARCHITECTURES`.
    Cmake(u16),
    /// The environment variable that nvcc appends to its arguments.
    Nvcc(u16),
    /// An argument of make, such as `SM=75`.
    Make(String),
}
