use pep440_rs::Version;

use crate::tables::{
    Drivers, Frameworks, JaxPlugin, OnnxruntimeGpu, TensorflowRelease, TorchBuild, TorchRelease,
};

use crate::version::{Capability, DriverVersion};

/// A wheel of a PyTorch release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TorchWheel<'a> {
    /// The wheel on PyPI: `2.5.1` without a local version.
    Pypi,
    /// The wheel for a CUDA tag: `2.5.1+cu121`.
    Tag(&'a str),
}

/// A version without its local part: 2.5.1 of `2.5.1+cu121`.
pub fn without_local(version: &Version) -> Version {
    version.clone().without_local()
}

impl Frameworks {
    pub fn torch(&self, version: &Version) -> Option<&TorchRelease> {
        let version = without_local(version);
        self.torch.iter().find(|row| row.version == version)
    }

    pub fn torch_builds(&self, version: &Version) -> impl Iterator<Item = &TorchBuild> {
        let version = without_local(version);
        self.torch_build.iter().filter(move |row| row.versions.contains(&version))
    }

    pub fn torch_build(&self, version: &Version, wheel: TorchWheel<'_>) -> Option<&TorchBuild> {
        self.torch_builds(version).find(|build| match wheel {
            TorchWheel::Pypi => build.pypi,
            TorchWheel::Tag(tag) => build.tag == tag,
        })
    }

    /// The newest PyTorch build that starts on a driver and has code for all of the GPUs.
    pub fn newest_torch<'a>(
        &'a self,
        drivers: &Drivers,
        driver: Option<DriverVersion>,
        cards: &[Capability],
    ) -> Option<(&'a Version, &'a TorchBuild)> {
        let fits = |build: &&TorchBuild| {
            driver.is_none_or(|driver| drivers.runs_toolkit(driver, build.cuda)) && build.has_code_for(cards)
        };
        let newest = |build: &'a TorchBuild| Some((build.versions.iter().max()?, build));
        let builds = self.torch_build.iter().filter(fits).filter_map(newest);
        builds.max_by(|(a, one), (b, other)| a.cmp(b).then(one.cuda.cmp(&other.cuda)))
    }

    /// The PyTorch releases a torchvision release goes with.
    pub fn torch_with_torchvision(&self, version: &Version) -> impl Iterator<Item = &TorchRelease> {
        let version = without_local(version);
        self.torch.iter().filter(move |row| row.torchvision.as_ref() == Some(&version))
    }

    pub fn tensorflow(&self, version: &Version) -> Option<&TensorflowRelease> {
        self.tensorflow.iter().find(|row| row.version == *version)
    }

    /// An onnxruntime-gpu release. The table has the last patch of each minor version; patches keep the CUDA and GPU code
    /// of their minor version, so any patch matches its row.
    pub fn onnxruntime_gpu(&self, version: &Version) -> Option<&OnnxruntimeGpu> {
        let minor = |version: &Version| version.release().iter().take(2).copied().collect::<Vec<_>>();
        self.onnxruntime_gpu
            .iter()
            .find(|row| row.version == *version)
            .or_else(|| self.onnxruntime_gpu.iter().find(|row| minor(&row.version) == minor(version)))
    }

    /// A JAX plugin release: the row of that version, of a rebuild of it (0.12.0.1 for 0.12.0), or else the newest before
    /// it of the same minor version. The table does not have every patch release.
    pub fn jax_plugin(&self, package: &str, version: &Version) -> Option<&JaxPlugin> {
        let rows = || self.jax_plugin.iter().filter(|row| row.package == package);
        let minor = |version: &Version| version.release().iter().take(2).copied().collect::<Vec<_>>();
        rows()
            .find(|row| row.version == *version)
            .or_else(|| rows().find(|row| row.version.release().starts_with(version.release())))
            .or_else(|| {
                rows()
                    .filter(|row| row.version < *version && minor(&row.version) == minor(version))
                    .max_by(|a, b| a.version.cmp(&b.version))
            })
    }
}

impl TorchBuild {
    /// Whether it has machine code for each of the GPUs. False if its code is unknown.
    pub fn has_code_for(&self, cards: &[Capability]) -> bool {
        let code = self.sass.as_deref().unwrap_or_default();
        cards.iter().all(|card| code.iter().any(|code| code.runs_on(*card)))
    }
}
