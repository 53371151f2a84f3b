//! Debian packages: from the signed archive to the locked closure.

pub mod closure;
pub mod control;
mod release;
pub mod sources;
pub mod version;

use cudock_base::text::suggest;
use cudock_base::{Arch, Environment, Timestamp};

use crate::file::{DebianRelease, LayerGroup, LockedDeb};
use crate::{LockError, PackageFetcher};
use closure::PackageSet;
use sources::Release;

/// The packages of a release, as of now.
pub struct Archive {
    release: &'static Release,
    set: PackageSet,
}

impl Archive {
    /// Reads and verifies the indexes of the release, its updates and its security updates.
    pub fn read(
        release: &'static Release,
        arch: Arch,
        environment: &Environment,
        fetcher: &PackageFetcher,
    ) -> Result<Self, LockError> {
        let mut set = PackageSet::default();
        for mirror in release.mirrors(environment, arch) {
            for package in release::packages(fetcher, environment, &mirror, arch, Timestamp::now())? {
                set.add(package, mirror.archive);
            }
        }
        Ok(Self { release, set })
    }

    pub fn has(&self, name: &str) -> bool {
        self.set.get(name).is_some()
    }

    /// Locks packages, each with the reason why it is wanted, and what they depend on.
    pub fn lock(&self, wanted: &[(String, String)]) -> Result<(DebianRelease, Vec<LockedDeb>), LockError> {
        let closure = self.set.closure(wanted).map_err(|missing| {
            let near = suggest::closest(&missing.relation, self.set.names().map(String::as_str));
            LockError::NoDeb {
                relation: missing.relation.clone(),
                by: missing.by,
                suite: self.release.suite,
                suggestion: near.map(str::to_owned),
            }
        })?;
        let debs = closure.iter().map(|needed| LockedDeb {
            name: needed.package.name.clone(),
            version: needed.package.version.to_string(),
            file: needed.package.file().to_owned(),
            path: needed.package.path.clone(),
            archive: needed.archive.to_owned(),
            size: needed.package.size,
            digest: needed.package.digest.clone(),
            group: if needed.root == PYTHON { LayerGroup::Python } else { LayerGroup::System },
            reason: needed.reason.clone(),
        });
        let (distribution, suite) = (self.release.distribution.to_owned(), self.release.suite.to_owned());
        Ok((DebianRelease { distribution, suite }, debs.collect()))
    }
}

/// The package of the interpreter. What is there only for it belongs to its layer.
pub const PYTHON: &str = "python3";
