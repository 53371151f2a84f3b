use serde::{Deserialize, Serialize};

use super::header::{Header, row, table_file};
use crate::version::Capability;

/// `gpus.toml`: the cards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpus {
    /// Age and sources.
    pub table: Header,
    /// The cards.
    #[serde(default)]
    pub gpu: Vec<Gpu>,
}

/// A GPU model, as far as software can tell models apart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    /// Our name for it, short and without blanks.
    pub id: String,
    /// What the driver calls it.
    pub names: Vec<String>,
    /// Who makes it; only NVIDIA's run CUDA.
    pub vendor: Vendor,
    /// Compute capability; NVIDIA's only.
    pub capability: Option<Capability>,
    /// The generation.
    pub architecture: Option<String>,
    /// What it is sold for, which decides about forward compatibility.
    pub class: GpuClass,
    /// Advertised memory, one figure for each variant.
    pub memory_gb: Vec<u32>,
    /// Dense tensor throughput at half precision (FP16 or BF16, FP32 sums), in 10^12 operations a second; plain FP16,
    /// or FP32 where that is not faster, on cards without tensor cores.
    pub fp16_tflops: Option<f64>,
    /// Memory bandwidth, in 10^9 bytes a second.
    pub memory_gb_per_s: Option<f64>,
    /// How many MIG instances it can be cut into.
    pub mig_instances: Option<u8>,
    /// Whether NVIDIA's cuda-compat libraries may run on it.
    pub forward_compat: ForwardCompatClass,
    /// Which flavour of the kernel module drives it.
    pub kernel_module: Option<KernelModule>,
    /// PCI device numbers, in lower-case hexadecimal.
    pub pci_ids: Vec<String>,
    /// What else to know.
    pub note: Option<String>,
    /// Where it was read.
    pub source: Vec<String>,
}

/// Who makes a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Vendor {
    /// NVIDIA
    Nvidia,
    /// AMD
    Amd,
}

/// What a GPU is sold for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GpuClass {
    /// Servers.
    Datacenter,
    /// RTX and Quadro workstations.
    Workstation,
    /// GeForce.
    Consumer,
    /// Integrated modules.
    Jetson,
}

/// Whether cuda-compat may run on a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ForwardCompatClass {
    /// It may.
    Yes,
    /// It may not: error 804.
    No,
    /// It depends on the brand the board reports.
    BrandDependent,
}

/// Which kernel module drives a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelModule {
    /// The closed one alone.
    ProprietaryOnly,
    /// The open one alone.
    OpenOnly,
    /// Both.
    Either,
}

row!(Gpu, |row| row.id.clone());
table_file!(Gpus, "gpus", [gpu]);
