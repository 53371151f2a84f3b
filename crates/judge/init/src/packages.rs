//! Releases of frameworks that a project could install, newest first.

use std::str::FromStr;

use cudock_facts::Facts;
use cudock_facts::lookup::without_local;
use cudock_facts::tables::{JaxPlugin, TorchBuild, TorchRelease};
use cudock_facts::version::CudaVersion;
use cudock_manifests::{Declared, DeclaredPackage};
use pep440_rs::{Version, VersionSpecifiers};

use crate::ProjectKind;

/// A release of a framework, in one of its builds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FrameworkRelease {
    pub(crate) name: &'static str,
    pub(crate) version: Version,
    /// `cu132`, `cuda13`, `cpu`.
    pub(crate) build: String,
    /// Python versions with a wheel, oldest first.
    pub(crate) pythons: Vec<String>,
    /// The package index, if it is not PyPI.
    pub(crate) index: Option<String>,
    /// Requirements for pip: `torch==2.15.0`.
    pub(crate) requirements: Vec<String>,
    /// Where its CUDA comes from, for the comment.
    pub(crate) remark: String,
    /// Whether the project itself names this version.
    pub(crate) is_pinned: bool,
}

impl FrameworkRelease {
    /// Whether pip installs a package together with it.
    pub(crate) fn installs(&self, package: &str) -> bool {
        self.requirements.iter().any(|requirement| requirement.split(['=', '[']).next() == Some(package))
    }

    /// `torch 2.15.0 (cu132)`.
    pub(crate) fn name_and_version(&self) -> String {
        format!("{} {} ({})", self.name, self.version, self.build)
    }
}

/// Requirements of the project and the user for a release.
pub(crate) struct Wanted<'a> {
    pub(crate) facts: &'a Facts,
    pub(crate) declared: &'a Declared,
    /// Whether the target has a GPU.
    pub(crate) gpu: bool,
    pub(crate) cuda: Option<CudaVersion>,
}

impl<'a> Wanted<'a> {
    /// The releases of the framework of a kind of project; none if it has no framework.
    pub(crate) fn releases(&self, kind: ProjectKind) -> Vec<FrameworkRelease> {
        match kind {
            ProjectKind::Torch => self.torch(),
            ProjectKind::Tensorflow => self.tensorflow(),
            ProjectKind::Jax => self.jax(),
            ProjectKind::Onnx => self.onnxruntime(),
            ProjectKind::Cmake | ProjectKind::Make | ProjectKind::CudaPython => Vec::new(),
        }
    }

    fn package(&self, names: &[&str]) -> Option<&'a DeclaredPackage> {
        self.declared.packages.iter().find(|package| names.contains(&package.name.as_str()))
    }

    fn fits_cuda(&self, cuda: Option<CudaVersion>) -> bool {
        self.cuda.is_none() || self.cuda == cuda
    }

    fn torch(&self) -> Vec<FrameworkRelease> {
        let torch = self.package(&["torch"]);
        let torchvision = self.package(&["torchvision"]);
        let frameworks = self.facts.frameworks();
        let fits = |release: &&TorchRelease| {
            allows(torch, &release.version)
                && torchvision.is_none_or(|package| {
                    release.torchvision.as_ref().is_some_and(|version| allows(Some(package), version))
                })
        };
        let mut releases: Vec<&TorchRelease> = frameworks.torch.iter().filter(fits).collect();
        releases.sort_by(|one, other| other.version.cmp(&one.version));
        let tag = torch.and_then(|package| package.tag.as_deref()).filter(|tag| tag.starts_with("cu"));
        let of_release = |release: &&TorchRelease| -> Vec<FrameworkRelease> {
            if !self.gpu {
                let remark = "wheels of this index have no GPU code, which most of the size of the others is";
                return vec![self.torch_release(release, "cpu", remark.to_owned())];
            }
            let mut builds: Vec<&TorchBuild> = frameworks.torch_builds(&release.version).collect();
            // PyPI's own build is the one that most people test; it may not be the newest.
            builds.sort_by_key(|build| (!build.pypi, std::cmp::Reverse(build.cuda)));
            let fitting = builds
                .into_iter()
                .filter(|build| tag.is_none_or(|tag| tag == build.tag) && self.fits_cuda(Some(build.cuda)));
            fitting
                .map(|build| {
                    let remark = format!(
                        "its {} wheels bring CUDA {}: the base image needs none",
                        build.tag, build.cuda
                    );
                    self.torch_release(release, &build.tag, remark)
                })
                .collect()
        };
        releases.iter().flat_map(of_release).collect()
    }

    fn torch_release(&self, release: &TorchRelease, tag: &str, remark: String) -> FrameworkRelease {
        let companion = |name: &str, version: Option<&Version>| {
            self.package(&[name]).zip(version).map(|(_, version)| format!("{name}=={version}"))
        };
        // torchaudio ended with 2.11.0, which works with later releases of torch.
        let earlier = self.facts.frameworks().torch.iter().filter(|row| row.version <= release.version);
        let torchaudio = earlier.filter_map(|row| row.torchaudio.as_ref()).max();
        let companions =
            [companion("torchvision", release.torchvision.as_ref()), companion("torchaudio", torchaudio)];
        let own = format!("torch=={}", release.version);
        FrameworkRelease {
            name: "torch",
            version: release.version.clone(),
            build: tag.to_owned(),
            pythons: release.python.clone(),
            index: Some(format!("https://download.pytorch.org/whl/{tag}")),
            requirements: std::iter::once(own).chain(companions.into_iter().flatten()).collect(),
            remark,
            is_pinned: is_pinned(self.package(&["torch"])),
        }
    }

    fn tensorflow(&self) -> Vec<FrameworkRelease> {
        let package = self.package(&["tensorflow", "tensorflow-cpu", "tensorflow-gpu"]);
        let (extra, build, remark) = if self.gpu {
            let remark = "the extra and-cuda brings CUDA and cuDNN: the base image needs none. amd64 only: wheels for arm64 \
                          have no GPU code";
            ("[and-cuda]", "and-cuda", remark)
        } else {
            ("", "cpu", "without the extra and-cuda, no CUDA libraries are installed")
        };
        let rows = self.facts.frameworks().tensorflow.iter().filter(|row| {
            let is_chosen = row.version.is_stable() || is_pinned(package);
            is_chosen && allows(package, &row.version) && (!self.gpu || self.fits_cuda(row.cuda))
        });
        let releases = rows.map(|row| FrameworkRelease {
            name: "tensorflow",
            version: row.version.clone(),
            build: build.to_owned(),
            pythons: row.python.clone(),
            index: None,
            requirements: vec![format!("tensorflow{extra}=={}", row.version)],
            remark: remark.to_owned(),
            is_pinned: is_pinned(package),
        });
        newest_first(releases)
    }

    fn jax(&self) -> Vec<FrameworkRelease> {
        let package = self.package(&["jax"]);
        let frameworks = self.facts.frameworks();
        let extra_of = |row: &JaxPlugin| format!("cuda{}", row.cuda_major);
        let asked =
            package.and_then(|package| package.extras.iter().find(|extra| extra.starts_with("cuda1")));
        let fits_extra = |row: &JaxPlugin| {
            let is_asked = asked.is_none_or(|asked| asked.starts_with(&extra_of(row)));
            is_asked && self.cuda.is_none_or(|cuda| cuda.major() == row.cuda_major)
        };
        let pinned = package.and_then(|package| package.exact.as_ref());
        let mut rows: Vec<(&JaxPlugin, Version)> = if let Some(version) = pinned {
            // The table does not have every patch release.
            let plugins = ["jax-cuda13-plugin", "jax-cuda12-plugin"].into_iter();
            plugins
                .filter_map(|plugin| Some((frameworks.jax_plugin(plugin, version)?, version.clone())))
                .collect()
        } else {
            let rows = frameworks.jax_plugin.iter().filter(|row| allows(package, &row.version));
            rows.map(|row| (row, row.version.clone())).collect()
        };
        rows.retain(|(row, _)| !self.gpu || fits_extra(row));
        rows.sort_by(|(one, _), (other, _)| {
            other.version.cmp(&one.version).then(other.cuda_major.cmp(&one.cuda_major))
        });
        let release = |(row, version): (&JaxPlugin, Version)| {
            let extra = extra_of(row);
            let (requirement, build, remark) = if self.gpu {
                let remark =
                    format!("the extra {extra} brings CUDA {}: the base image needs none", row.cuda_major);
                (format!("jax[{extra}]=={version}"), extra, remark)
            } else {
                (
                    format!("jax=={version}"),
                    "cpu".to_owned(),
                    "without an extra it runs on the CPU".to_owned(),
                )
            };
            FrameworkRelease {
                name: "jax",
                version,
                build,
                pythons: row.python.clone(),
                index: None,
                requirements: vec![requirement],
                remark,
                is_pinned: is_pinned(package),
            }
        };
        rows.into_iter().map(release).collect()
    }

    fn onnxruntime(&self) -> Vec<FrameworkRelease> {
        // The extras that bring CUDA and cuDNN exist from 1.22 on.
        let first = Version::new([1, 22]);
        let rows = self.facts.frameworks().onnxruntime_gpu.iter();
        let rows = rows.filter(|row| row.version >= first && (!self.gpu || self.fits_cuda(row.cuda)));
        let releases = rows.map(|row| {
            let (name, extras, remark) = if self.gpu {
                let remark =
                    format!("its extras bring CUDA {} and cuDNN: the base image needs none", row.cuda_major);
                ("onnxruntime-gpu", "[cuda,cudnn]", remark)
            } else {
                ("onnxruntime", "", "the target has no GPU".to_owned())
            };
            FrameworkRelease {
                name,
                version: row.version.clone(),
                build: if self.gpu { format!("cuda{}", row.cuda_major) } else { "cpu".to_owned() },
                pythons: row.python.clone(),
                index: None,
                requirements: vec![format!("{name}{extras}=={}", row.version)],
                remark,
                is_pinned: false,
            }
        });
        newest_first(releases)
    }
}

fn newest_first(releases: impl Iterator<Item = FrameworkRelease>) -> Vec<FrameworkRelease> {
    let mut releases: Vec<FrameworkRelease> = releases.collect();
    releases.sort_by(|one, other| other.version.cmp(&one.version));
    releases
}

fn is_pinned(package: Option<&DeclaredPackage>) -> bool {
    package.is_some_and(|package| package.exact.is_some())
}

/// Whether the project allows a version of a package.
fn allows(package: Option<&DeclaredPackage>, version: &Version) -> bool {
    let Some(package) = package else { return true };
    if let Some(exact) = &package.exact {
        return without_local(exact) == *version;
    }
    let range = package.range.as_deref().and_then(|range| VersionSpecifiers::from_str(range).ok());
    range.is_none_or(|range| range.contains(version))
}
