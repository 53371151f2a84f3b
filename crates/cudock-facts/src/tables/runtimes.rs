use pep440_rs::Version;
use serde::{Deserialize, Serialize};

use super::header::{Header, row, table_file};
use crate::version::Date;

/// `runtimes.toml`: wheels that carry an inference library, pinned by hash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Runtimes {
    /// Age and sources.
    pub table: Header,
    /// The wheels, of each package the oldest first.
    #[serde(default)]
    pub wheel: Vec<RuntimeWheel>,
    /// Which package brings which of CUDA's libraries.
    #[serde(default)]
    pub cuda_library: Vec<CudaLibrary>,
}

/// One wheel, for one processor. Nothing else is taken for it than the bytes with its hash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuntimeWheel {
    /// onnxruntime-gpu, as package indexes write it.
    pub package: String,
    /// 1.31.1
    pub version: Version,
    /// `x86_64` or `aarch64`.
    pub cpu: String,
    /// The wheel's file name.
    pub file: String,
    /// Its bytes.
    pub size: u64,
    /// Its SHA-256, in lower-case hexadecimal.
    pub sha256: String,
    /// Day of release.
    pub released: Date,
    /// The member that programs load.
    pub library: String,
    /// All members that are taken out of it: libraries and licences.
    pub members: Vec<WheelMember>,
    /// What its CUDA provider is linked against.
    #[serde(default)]
    pub needs: Vec<String>,
    /// What its CUDA provider opens by name when it is used.
    #[serde(default)]
    pub loads: Vec<String>,
    /// Where it was read.
    pub source: Vec<String>,
}

/// A file in a wheel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WheelMember {
    /// Its path in the wheel.
    pub path: String,
    /// Its bytes, unpacked.
    pub size: u64,
}

/// A library of CUDA, and what to install where it is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CudaLibrary {
    /// libcudnn.so.9
    pub soname: String,
    /// As pip takes it: nvidia-cudnn-cu13~=9.0
    pub requirement: String,
    /// Where it was read.
    pub source: Vec<String>,
}

row!(RuntimeWheel, |row| format!("{} {} {}", row.package, row.version, row.cpu));
row!(CudaLibrary, |row| row.soname.clone());
table_file!(Runtimes, "runtimes", [wheel, cuda_library]);
