//! Builds images from locked packages, without a daemon and without running anything.
//!
//! [`build`] fetches the packages in `cudock.lock`, unpacks each once, decides which files an image
//! has ([`ImagePlan`]: pure data), removes GPU code for other GPUs, and writes layers whose bytes
//! depend on nothing else: not on time, umask, locale, the number of cores or the order of
//! downloads.

mod build;
mod check;
mod config;
mod dockerfile;
mod error;
mod files;
mod input;
mod layers;
mod plan;
mod report;
pub mod slim;
pub mod text;
pub mod unpack;

pub use build::{BuildRequest, Built, build, published_ports};
pub use dockerfile::{Builder, BuiltArchive, DockerfileRequest, build_dockerfile};
pub use error::BuildError;
pub use files::file::{FileOrigin, FileSource, ImageFile};
pub use files::rules::{RULES, Rule, RuleSet};
pub use input::{InputPackage, PlanInput};
pub use layers::{LayerJob, LayerPlan, WrittenLayer, group};
pub use plan::{ImagePlan, OmittedFile};
pub use report::{
    AttachedDocument, BuildReport, CheckedTarget, ImageReport, LayerReport, OmittedTotal, SizeNode,
};
