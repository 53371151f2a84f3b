//! `cudock facts`.

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
#[command(mut_arg("verbose", |arg| arg.short('v').help("List the sources")))]
#[command(after_help = "Examples:
  cudock facts                                    the tables, their age and their rows
  cudock facts gpu T4
  cudock facts driver 535.161.08
  cudock facts cuda 12.4
  cudock facts image 12.4.1-cudnn-runtime-ubuntu22.04
  cudock facts torch 2.5.1
  cudock facts package cupy-cuda12x
  cudock facts size Standard_NC4as_T4_v3
  cudock facts size --gpu A100 --region westeurope
  cudock facts size --lifecycle
  cudock facts size Standard_NC24ads_A100_v4 --prices")]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct FactsArgs {
    /// What to look up; by default, list the tables
    #[arg(value_enum)]
    pub kind: Option<FactKind>,

    /// Name of the entry; by default, list all
    pub name: Option<String>,

    /// With `size`: list only those with this GPU
    #[arg(long, value_name = "NAME")]
    pub gpu: Option<String>,

    /// With `size`: show prices of this region
    #[arg(long, value_name = "REGION")]
    pub region: Option<String>,

    /// With `size`: also list retired and undocumented sizes
    #[arg(long)]
    pub all: bool,

    /// With `size`: list every size by its retirement date, with its replacement
    #[arg(long)]
    pub lifecycle: bool,

    /// With `size` and a name: list the price in every region, cheapest first
    #[arg(long)]
    pub prices: bool,
}

/// The kinds of facts that can be looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FactKind {
    /// A GPU: T4, H200, "NVIDIA A10"
    Gpu,
    /// A driver: 535.161.08, or a branch: 580
    Driver,
    /// A toolkit: 12.4, or a release: 12.4.1
    Cuda,
    /// A code target: `sm_90a`, `compute_80`
    Arch,
    /// A tag of nvidia/cuda
    Image,
    /// A PyTorch release: 2.5.1, 2.5.1+cu121
    Torch,
    /// A torchvision release
    Torchvision,
    /// A TensorFlow release
    Tensorflow,
    /// An onnxruntime-gpu release
    Onnxruntime,
    /// A JAX CUDA plugin release
    Jax,
    /// A TensorRT release
    Tensorrt,
    /// A Python or conda package: xgboost, cupy-cuda12x
    Package,
    /// An Azure virtual machine size
    Size,
    /// An Azure service: aci, container-apps, ml, batch, vm, aks
    Service,
    /// A kind of Azure storage
    Storage,
}
