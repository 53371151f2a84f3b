use pep440_rs::Version;

use super::framework::without_local;
use crate::tables::{GpuPackage, Packages, SourceBuild};
use crate::version::CudaVersion;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PackageUse<'a> {
    Gpu(&'a GpuPackage, Option<NamedCuda>),
    NoGpu,
    /// The tables do not have it.
    Unknown,
}

/// The CUDA version in the name of a package: 12 of `cupy-cuda12x`, 11.8 of `spconv-cu118`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedCuda {
    pub major: u8,
    pub version: Option<CudaVersion>,
}

impl NamedCuda {
    /// Splits a normalized name into the package and its CUDA version.
    pub fn split(name: &str) -> Option<(&str, Self)> {
        let (base, suffix) = name.rsplit_once('-')?;
        if let Some(found) = Self::of_suffix(suffix) {
            return Some((base, found));
        }
        // `tensorrt-cu12-libs` and `tensorrt-cu12-bindings` are parts of a variant.
        let (base, inner) = base.rsplit_once('-')?;
        Some((base, Self::of_suffix(inner)?))
    }

    fn of_suffix(suffix: &str) -> Option<Self> {
        let digits = suffix.strip_prefix("cuda").or_else(|| suffix.strip_prefix("cu"))?;
        let digits = digits.strip_suffix('x').unwrap_or(digits);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        // `cu92` is 9.2 and `cu12` is 12: variants for CUDA before 10 always have a minor version.
        match digits.as_bytes() {
            [b'7'..=b'9', _] | [b'1', _, _] => {
                let (major, minor) = digits.split_at_checked(digits.len() - 1)?;
                let (major, minor) = (major.parse().ok()?, minor.parse().ok()?);
                Some(Self { major, version: Some(CudaVersion::new(major, minor)) })
            }
            [b'1', _] => Some(Self { major: digits.parse().ok()?, version: None }),
            _ => None,
        }
    }
}

impl Packages {
    /// How a package uses a GPU, by its normalized name on PyPI or in conda.
    pub fn find(&self, name: &str) -> PackageUse<'_> {
        let get = |name: &str| Some(self.by_name.get(name)?.and_then(|row| self.gpu.get(row)));
        let split = NamedCuda::split(name);
        let cuda = split.map(|(_, cuda)| cuda);
        match (get(name), split.and_then(|(base, _)| get(base))) {
            (Some(Some(row)), _) if row.plain_is_cpu && cuda.is_none() => PackageUse::NoGpu,
            (Some(Some(row)), _) | (None, Some(Some(row))) => PackageUse::Gpu(row, cuda),
            (Some(None), _) => PackageUse::NoGpu,
            (None, _) => PackageUse::Unknown,
        }
    }

    /// Prepares [`Self::find`].
    pub(crate) fn index_names(&mut self) {
        let with = self.gpu.iter().enumerate().flat_map(|(index, row)| {
            std::iter::once(&row.name).chain(&row.also).map(move |name| (name.clone(), Some(index)))
        });
        let without = self.no_gpu.iter().flat_map(|group| &group.names).map(|name| (name.clone(), None));
        // A row of an overlay may override the list of packages without GPU use.
        self.by_name = without.chain(with).collect();
    }

    /// How a package is compiled when it is installed, by its normalized name; `None` if PyPI has wheels of it.
    pub fn source_build(&self, package: &str) -> Option<&SourceBuild> {
        self.source_build.iter().find(|row| row.names.iter().any(|name| name == package))
    }

    /// The exact versions of other packages that a release requires.
    pub fn pins_of<'a>(
        &'a self,
        package: &'a str,
        version: &Version,
    ) -> impl Iterator<Item = (&'a str, &'a Version)> {
        let version = without_local(version);
        self.pin.iter().filter(move |pins| pins.package == package).filter_map(move |pins| {
            let row = pins.releases.iter().find(|row| row.version == version)?;
            Some((pins.requires.as_str(), &row.needs))
        })
    }
}

impl GpuPackage {
    /// The CUDA major of a release's wheels.
    pub fn cuda_major(&self, version: &Version) -> Option<u8> {
        let version = without_local(version);
        let rows = self.cuda.iter().filter(|row| row.from <= version);
        rows.max_by(|a, b| a.from.cmp(&b.from)).map(|row| row.major)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cuda_version_is_parsed_from_a_name() {
        let cases = [
            ("cupy-cuda12x", Some(("cupy", 12, None))),
            ("cupy-cuda102", Some(("cupy", 10, Some((10, 2))))),
            ("mxnet-cu112", Some(("mxnet", 11, Some((11, 2))))),
            ("mxnet-cu92", Some(("mxnet", 9, Some((9, 2))))),
            ("nvidia-dali-cuda120", Some(("nvidia-dali", 12, Some((12, 0))))),
            ("faiss-gpu-cu12", Some(("faiss-gpu", 12, None))),
            ("tensorrt-cu12-libs", Some(("tensorrt", 12, None))),
            ("tensorrt-cu13-bindings", Some(("tensorrt", 13, None))),
            ("jax-cuda12-plugin", Some(("jax", 12, None))),
            ("cuda-python", None),
            ("cupy", None),
            ("some-cucumber", None),
            ("x-cu1", None),
            ("x-cu1234", None),
        ];
        for (name, wanted) in cases {
            let found = NamedCuda::split(name).map(|(base, cuda)| {
                (base, cuda.major, cuda.version.map(|version| (version.major(), version.minor())))
            });
            assert_eq!(found, wanted, "{name}");
        }
    }
}
