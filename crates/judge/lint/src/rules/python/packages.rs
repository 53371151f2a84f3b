//! The packages that pip installs in a stage, and what the tables know of them.

use cudock_facts::tables::TorchRelease;
use cudock_manifests::{DeclaredPackage, Manager};
use pep440_rs::Version;

use crate::context::{Installed, LintContext};

/// The packages that pip or uv installs in a stage.
pub(super) fn by_pip<'a>(context: &LintContext<'a>, stage: usize) -> impl Iterator<Item = Installed<'a>> {
    context.installed(stage).iter().copied().filter(|installed| installed.package.manager == Manager::Pip)
}

/// A package and its version, as far as it is known.
pub(super) fn shown(package: &DeclaredPackage) -> String {
    package
        .exact
        .as_ref()
        .map_or_else(|| package.name.clone(), |version| format!("{} {version}", package.name))
}

/// The bytes of the wheel on PyPI, if that is the one that is installed.
pub(super) fn wheel_bytes(context: &LintContext<'_>, package: &DeclaredPackage) -> Option<u64> {
    let version = package.exact.as_ref().filter(|_| package.name == "torch")?;
    let release = context.facts.frameworks().torch(version)?;
    let is_it = package.tag.as_ref().is_none_or(|tag| *tag == release.tag);
    release.wheel_mib.filter(|_| is_it).map(|mib| u64::from(mib) << 20)
}

/// The newest torch on PyPI, of those with a wheel for the Python of a stage's distribution.
pub(super) fn newest_torch<'c>(context: &'c LintContext<'_>, stage: usize) -> Option<&'c TorchRelease> {
    let python = context.cuda_image(stage).and_then(|image| match image.os.as_str() {
        "ubuntu18.04" => Some("3.6"),
        "ubuntu20.04" => Some("3.8"),
        "ubuntu22.04" => Some("3.10"),
        "ubuntu24.04" => Some("3.12"),
        _ => None,
    });
    let has_wheel =
        |release: &&TorchRelease| python.is_none_or(|own| release.python.iter().any(|python| python == own));
    context.facts.frameworks().torch.iter().filter(has_wheel).max_by_key(|release| &release.version)
}

/// The newest torch of an index.
pub(super) fn newest_in_index<'c>(context: &'c LintContext<'_>, tag: &str) -> Option<&'c Version> {
    let builds = context.facts.frameworks().torch_build.iter().filter(|build| build.tag == tag);
    builds.flat_map(|build| &build.versions).max()
}
