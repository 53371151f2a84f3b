use pep440_rs::Version;
use serde::{Deserialize, Serialize};

use super::header::{Header, Rule, row, table_file};
use crate::version::{CudaRelease, CudaVersion, Date, DriverVersion, PtxArch, PtxIsa, SmArch};

/// `frameworks.toml`: builds of the frameworks, with the CUDA and the GPU code inside them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Frameworks {
    /// Age and sources.
    pub table: Header,
    /// PyTorch releases on PyPI.
    #[serde(default)]
    pub torch: Vec<TorchRelease>,
    /// PyTorch builds by CUDA tag.
    #[serde(default)]
    pub torch_build: Vec<TorchBuild>,
    /// Counted GPU code of single PyTorch wheels.
    #[serde(default)]
    pub torch_inventory: Vec<TorchInventory>,
    /// TensorFlow releases.
    #[serde(default)]
    pub tensorflow: Vec<TensorflowRelease>,
    /// ONNX Runtime's GPU wheels.
    #[serde(default)]
    pub onnxruntime_gpu: Vec<OnnxruntimeGpu>,
    /// JAX's CUDA plugins.
    #[serde(default)]
    pub jax_plugin: Vec<JaxPlugin>,
    /// TensorRT releases.
    #[serde(default)]
    pub tensorrt: Vec<TensorRt>,
    /// What holds for all of them.
    #[serde(default)]
    pub rule: Vec<Rule>,
}

/// A PyTorch release: the wheel PyPI has, and what goes with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TorchRelease {
    /// 2.5.1
    pub version: Version,
    /// Day of release.
    pub released: Date,
    /// Python versions with a wheel.
    pub python: Vec<String>,
    /// CUDA of PyPI's `x86_64` wheel.
    pub cuda: CudaVersion,
    /// Its tag, "cu124".
    pub tag: String,
    /// cuDNN it pins.
    pub cudnn: Option<String>,
    /// NCCL it pins.
    pub nccl: Option<String>,
    /// Triton it pins.
    pub triton: Option<String>,
    /// Lowest driver.
    pub min_driver: DriverVersion,
    /// The torchvision that goes with it.
    pub torchvision: Option<Version>,
    /// The torchaudio that goes with it.
    pub torchaudio: Option<Version>,
    /// Size of the `x86_64` wheel.
    pub wheel_mib: Option<u32>,
    /// CUDA of PyPI's aarch64 wheel; none means that it is CPU-only.
    pub aarch64_cuda: Option<CudaVersion>,
    /// GPU code of the aarch64 wheel.
    pub aarch64_sass: Option<Vec<SmArch>>,
    /// What else to know.
    pub note: Option<String>,
    /// Where it was read.
    pub source: Vec<String>,
}

/// PyTorch built for one CUDA.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TorchBuild {
    /// Releases the row holds for.
    pub versions: Vec<Version>,
    /// "cu126"
    pub tag: String,
    /// 12.6
    pub cuda: CudaVersion,
    /// Whether this is the build PyPI carries.
    pub pypi: bool,
    /// Machine code for every kernel; none means unknown.
    pub sass: Option<Vec<SmArch>>,
    /// PTX; none means unknown, an empty list that there is none.
    pub ptx: Option<Vec<PtxArch>>,
    /// cuDNN it pins.
    pub cudnn: Option<String>,
    /// NCCL it pins.
    pub nccl: Option<String>,
    /// What else to know.
    pub note: Option<String>,
    /// Where it was read.
    pub source: Vec<String>,
}

/// Counted GPU code of one wheel's `libtorch_cuda.so`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TorchInventory {
    /// 2.15.0
    pub version: Version,
    /// The wheel's file name.
    pub wheel: String,
    /// How many cubins for each target.
    pub sass: Vec<TargetCount>,
    /// What else to know.
    pub note: Option<String>,
    /// Where it was read.
    pub source: Vec<String>,
}

/// How many cubins there are for a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetCount {
    /// `sm_90`
    pub target: SmArch,
    /// How many.
    pub count: u32,
}

/// A TensorFlow release.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorflowRelease {
    /// 2.17.0
    pub version: Version,
    /// Day of release.
    pub released: Date,
    /// Python versions with a wheel.
    pub python: Vec<String>,
    /// CUDA it was built with.
    pub cuda: Option<CudaVersion>,
    /// cuDNN's major.
    pub cudnn_major: Option<u8>,
    /// Machine code.
    pub sass: Option<Vec<SmArch>>,
    /// PTX.
    pub ptx: Option<Vec<PtxArch>>,
    /// Version of that PTX, where it is not that of the CUDA it was built with.
    pub ptx_isa: Option<PtxIsa>,
    /// Whether TF-TRT is inside.
    pub tensorrt: bool,
    /// cuDNN of the and-cuda extra.
    pub extra_cudnn: Option<String>,
    /// NCCL of the and-cuda extra.
    pub extra_nccl: Option<String>,
    /// CUDA runtime of the and-cuda extra.
    pub extra_cuda_runtime: Option<String>,
    /// What else to know.
    pub note: Option<String>,
    /// Where it was read.
    pub source: Vec<String>,
}

/// An onnxruntime-gpu release on PyPI.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OnnxruntimeGpu {
    /// 1.31.1
    pub version: Version,
    /// Day of release.
    pub released: Date,
    /// Python versions with a wheel.
    pub python: Vec<String>,
    /// CUDA it was built with, where stated.
    pub cuda: Option<CudaVersion>,
    /// CUDA's major.
    pub cuda_major: u8,
    /// cuDNN's major.
    pub cudnn_major: u8,
    /// Libraries its CUDA provider is linked against.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Machine code.
    pub sass: Vec<SmArch>,
    /// PTX.
    pub ptx: Vec<PtxArch>,
    /// The PTX's version.
    pub ptx_isa: Option<PtxIsa>,
    /// TensorRT it is documented for.
    pub tensorrt: Option<String>,
    /// The TensorRT library its provider is linked against.
    pub tensorrt_soname: Option<String>,
    /// What else to know.
    pub note: Option<String>,
    /// Where it was read.
    pub source: Vec<String>,
}

/// A JAX CUDA plugin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JaxPlugin {
    /// jax-cuda12-plugin
    pub package: String,
    /// 0.11.0
    pub version: Version,
    /// Day of release.
    pub released: Date,
    /// Python versions with a wheel.
    pub python: Vec<String>,
    /// 12 or 13.
    pub cuda_major: u8,
    /// The toolkit it was built with.
    pub built_with: Option<CudaRelease>,
    /// Machine code.
    pub sass: Option<Vec<SmArch>>,
    /// PTX.
    pub ptx: Option<Vec<PtxArch>>,
    /// The CUDA runtime it wants.
    pub cudart: Option<String>,
    /// The cuBLAS it wants.
    pub cublas: Option<String>,
    /// The cuDNN it wants.
    pub cudnn: Option<String>,
    /// The NCCL it wants.
    pub nccl: Option<String>,
    /// The nvcc it wants.
    pub nvcc: Option<String>,
    /// Lowest driver.
    pub min_driver: DriverVersion,
    /// Where it was read.
    pub source: Vec<String>,
}

/// A TensorRT release.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorRt {
    /// 10.13.2
    pub version: Version,
    /// CUDA it is recommended with.
    pub cuda: Vec<String>,
    /// cuDNN it is recommended with.
    pub cudnn: Option<String>,
    /// What else to know.
    pub note: Option<String>,
    /// Where it was read.
    pub source: Vec<String>,
}

row!(TorchRelease, |row| row.version.to_string());
row!(TorchBuild, |row| {
    let versions: Vec<_> = row.versions.iter().map(ToString::to_string).collect();
    format!("{}+{}", versions.join(","), row.tag)
});
row!(TorchInventory, |row| row.wheel.clone());
row!(TensorflowRelease, |row| row.version.to_string());
row!(OnnxruntimeGpu, |row| row.version.to_string());
row!(JaxPlugin, |row| format!("{} {}", row.package, row.version));
row!(TensorRt, |row| row.version.to_string());
table_file!(
    Frameworks,
    "frameworks",
    [torch, torch_build, torch_inventory, tensorflow, onnxruntime_gpu, jax_plugin, tensorrt, rule]
);
