use std::fmt;
use std::str::FromStr;

use super::{ParseError, as_major_minor, as_text, number};

/// A CUDA version of drivers and libraries: major and minor.
///
/// Patch releases of a toolkit are [`CudaRelease`]s; drivers have none, so the two do not compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CudaVersion {
    major: u8,
    minor: u8,
}

impl CudaVersion {
    pub const fn new(major: u8, minor: u8) -> Self {
        Self { major, minor }
    }

    /// The version from `cudaDriverGetVersion` and NVML: 12080 is 12.8. Zero means that there is no driver.
    pub fn from_api(number: u32) -> Option<Self> {
        let major = u8::try_from(number / 1000).ok().filter(|major| *major > 0)?;
        let minor = u8::try_from(number % 1000 / 10).ok()?;
        Some(Self { major, minor })
    }

    /// The version in PyTorch's tags: `cu118` is 11.8, `cu130` is 13.0, `cu92` is 9.2.
    pub fn from_tag(tag: &str) -> Option<Self> {
        let digits = tag.strip_prefix("cu")?;
        let split = digits.len().checked_sub(1)?;
        Some(Self { major: number(digits.get(..split)?)?, minor: number(digits.get(split..)?)? })
    }

    /// 12 of 12.8: libraries of one major version share their lowest driver.
    pub const fn major(self) -> u8 {
        self.major
    }

    pub const fn minor(self) -> u8 {
        self.minor
    }
}

as_major_minor!(CudaVersion, "CUDA version", "12.4", (1.., _));

/// A toolkit release, such as 12.4.1: a [`CudaVersion`] and its patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CudaRelease {
    version: CudaVersion,
    patch: u16,
}

impl CudaRelease {
    pub const fn version(self) -> CudaVersion {
        self.version
    }

    pub const fn patch(self) -> u16 {
        self.patch
    }
}

impl fmt::Display for CudaRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.version, self.patch)
    }
}

impl FromStr for CudaRelease {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let parts = text.rsplit_once('.').and_then(|(version, patch)| {
            Some(Self { version: version.parse().ok()?, patch: number(patch)? })
        });
        parts.ok_or_else(|| ParseError::new("CUDA release", text, "12.4.1"))
    }
}

as_text!(CudaRelease);

/// The version of the PTX language. The toolkit determines it, not the target; a driver rejects PTX newer than itself
/// (error 222).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PtxIsa {
    major: u8,
    minor: u8,
}

impl PtxIsa {
    pub const fn new(major: u8, minor: u8) -> Self {
        Self { major, minor }
    }
}

as_major_minor!(PtxIsa, "PTX ISA version", "8.4", _);
