use cudock_base::Arch;
use pep440_rs::Version;
use serde::{Deserialize, Serialize};

use super::header::table_file;
use crate::version::{Capability, Date};

table_file! {
    /// `runtimes.toml`: wheels of inference libraries, pinned by hash.
    pub struct Runtimes = "runtimes" {
        /// Wheels, the oldest of each package first.
        pub wheel: Vec<RuntimeWheel> by |row| format!("{} {} {}", row.package, row.version, row.cpu),
        /// The packages of CUDA's libraries.
        pub cuda_library: Vec<CudaLibrary> by |row| row.soname.clone(),
    }
}

/// One wheel, for one processor, verified by its hash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuntimeWheel {
    /// onnxruntime-gpu, as package indexes write it.
    pub package: String,
    pub version: Version,
    pub cpu: Arch,
    pub file: String,
    pub size: u64,
    /// Its SHA-256, in lower-case hexadecimal.
    pub sha256: String,
    pub released: Date,
    /// The member that programs load.
    pub library: String,
    /// The members to unpack: libraries and licenses.
    pub members: Vec<WheelMember>,
    /// Libraries its CUDA provider is linked against.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Libraries its CUDA provider loads at run time.
    #[serde(default)]
    pub loads: Vec<String>,
    pub source: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WheelMember {
    pub path: String,
    /// Its bytes, unpacked.
    pub size: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CudaLibrary {
    pub soname: String,
    /// The pip requirement: nvidia-cudnn-cu13~=9.0
    pub requirement: String,
    /// Older releases that are much smaller, for images whose GPUs are all older than `small_below`.
    #[serde(default)]
    pub small_requirement: Option<String>,
    #[serde(default)]
    pub small_below: Option<Capability>,
    pub source: Vec<String>,
}
