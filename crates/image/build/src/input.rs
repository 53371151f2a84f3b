//! The inputs of an image plan, and the directories of its libraries.

use std::collections::BTreeSet;
use std::sync::Arc;

use cudock_base::Arch;
use cudock_facts::Facts;

use crate::files::file::{FileOrigin, ImageFile};
use crate::files::rules::RuleSet;
use crate::unpack::{PackageKind, UnpackedPackage};

/// Where CUDA's libraries are in an image without Python, as in NVIDIA's own.
pub(crate) const CUDA: &str = "usr/local/cuda/lib64";
pub(crate) const RUNTIME: &str = "usr/local/lib/onnxruntime";

/// A package to put into an image.
#[derive(Debug)]
pub struct InputPackage {
    pub kind: PackageKind,
    pub origin: Arc<FileOrigin>,
    pub unpacked: UnpackedPackage,
    /// The only members to take, of a wheel in an image without Python; empty for all shared libraries.
    pub members: Vec<String>,
}

/// The inputs of an image plan.
#[derive(Debug)]
pub struct PlanInput<'a> {
    pub facts: &'a Facts,
    pub arch: Arch,
    /// `3.11`
    pub python: Option<&'a str>,
    pub packages: &'a [InputPackage],
    /// Files of the project, and cudock itself.
    pub own: Vec<ImageFile>,
    pub rules: &'a RuleSet,
    /// The operators of the model, if serving it is all that the image does.
    pub operators: Option<&'a BTreeSet<String>>,
    pub user: (u32, u32),
}
