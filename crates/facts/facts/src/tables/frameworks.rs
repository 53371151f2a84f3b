use pep440_rs::Version;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::header::{TableRule, table_file};
use crate::version::{CudaRelease, CudaVersion, Date, DriverVersion, PtxArch, PtxIsa, SmArch};

table_file! {
    /// `frameworks.toml`: builds of the frameworks, with the CUDA and the GPU code inside them.
    pub struct Frameworks = "frameworks" {
        pub torch: Vec<TorchRelease> by |row| row.version.to_string(),
        pub torch_build: Vec<TorchBuild> by |row| {
            let versions: Vec<_> = row.versions.iter().map(ToString::to_string).collect();
            format!("{}+{}", versions.join(","), row.tag)
        },
        pub torch_inventory: Vec<TorchInventory> by |row| row.wheel.clone(),
        pub tensorflow: Vec<TensorflowRelease> by |row| row.version.to_string(),
        pub onnxruntime_gpu: Vec<OnnxruntimeGpu> by |row| row.version.to_string(),
        pub jax_plugin: Vec<JaxPlugin> by |row| format!("{} {}", row.package, row.version),
        pub tensorrt: Vec<TensorRt> by |row| row.version.to_string(),
        pub rule: Vec<TableRule>,
    }
}

/// A PyTorch release: the wheel on PyPI, and matching packages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TorchRelease {
    #[schemars(with = "String")]
    pub version: Version,
    pub released: Date,
    /// Python versions with a wheel.
    pub python: Vec<String>,
    /// CUDA of PyPI's `x86_64` wheel.
    pub cuda: CudaVersion,
    /// Its tag, "cu124".
    pub tag: String,
    pub cudnn: Option<String>,
    pub nccl: Option<String>,
    pub triton: Option<String>,
    pub min_driver: DriverVersion,
    #[schemars(with = "Option<String>")]
    pub torchvision: Option<Version>,
    #[schemars(with = "Option<String>")]
    pub torchaudio: Option<Version>,
    pub wheel_mib: Option<u32>,
    /// CUDA of PyPI's aarch64 wheel; `None` if it is CPU-only.
    pub aarch64_cuda: Option<CudaVersion>,
    pub aarch64_sass: Option<Vec<SmArch>>,
    pub note: Option<String>,
    pub source: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TorchBuild {
    #[schemars(with = "Vec<String>")]
    pub versions: Vec<Version>,
    pub tag: String,
    pub cuda: CudaVersion,
    pub pypi: bool,
    /// Machine code for every kernel; `None` if unknown.
    pub sass: Option<Vec<SmArch>>,
    /// PTX; `None` if unknown, empty if there is none.
    pub ptx: Option<Vec<PtxArch>>,
    pub cudnn: Option<String>,
    pub nccl: Option<String>,
    pub note: Option<String>,
    pub source: Vec<String>,
}

/// The numbers of cubins in one wheel's `libtorch_cuda.so`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TorchInventory {
    pub version: Version,
    pub wheel: String,
    pub sass: Vec<TargetCount>,
    pub note: Option<String>,
    pub source: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetCount {
    pub target: SmArch,
    pub count: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TensorflowRelease {
    #[schemars(with = "String")]
    pub version: Version,
    pub released: Date,
    /// Python versions with a wheel.
    pub python: Vec<String>,
    pub cuda: Option<CudaVersion>,
    pub cudnn_major: Option<u8>,
    pub sass: Option<Vec<SmArch>>,
    pub ptx: Option<Vec<PtxArch>>,
    /// The version of the PTX, if it differs from that of its CUDA version.
    pub ptx_isa: Option<PtxIsa>,
    pub tensorrt: bool,
    /// cuDNN of the and-cuda extra.
    pub extra_cudnn: Option<String>,
    /// NCCL of the and-cuda extra.
    pub extra_nccl: Option<String>,
    pub extra_cuda_runtime: Option<String>,
    pub note: Option<String>,
    pub source: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OnnxruntimeGpu {
    #[schemars(with = "String")]
    pub version: Version,
    pub released: Date,
    /// Python versions with a wheel.
    pub python: Vec<String>,
    /// The CUDA version it was built with, if documented.
    pub cuda: Option<CudaVersion>,
    pub cuda_major: u8,
    pub cudnn_major: u8,
    /// Libraries its CUDA provider is linked against.
    #[serde(default)]
    pub needs: Vec<String>,
    pub sass: Vec<SmArch>,
    pub ptx: Vec<PtxArch>,
    pub ptx_isa: Option<PtxIsa>,
    /// TensorRT it is documented for.
    pub tensorrt: Option<String>,
    /// The TensorRT library its provider is linked against.
    pub tensorrt_soname: Option<String>,
    pub note: Option<String>,
    pub source: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JaxPlugin {
    pub package: String,
    #[schemars(with = "String")]
    pub version: Version,
    pub released: Date,
    /// Python versions with a wheel.
    pub python: Vec<String>,
    pub cuda_major: u8,
    pub built_with: Option<CudaRelease>,
    pub sass: Option<Vec<SmArch>>,
    pub ptx: Option<Vec<PtxArch>>,
    pub cudart: Option<String>,
    pub cublas: Option<String>,
    pub cudnn: Option<String>,
    pub nccl: Option<String>,
    pub nvcc: Option<String>,
    pub min_driver: DriverVersion,
    pub source: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TensorRt {
    #[schemars(with = "String")]
    pub version: Version,
    /// CUDA it is recommended with.
    pub cuda: Vec<String>,
    /// cuDNN it is recommended with.
    pub cudnn: Option<String>,
    pub note: Option<String>,
    pub source: Vec<String>,
}
