use std::fmt;
use std::sync::OnceLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::header::table_file;
use crate::version::Capability;

table_file! {
    /// `gpus.toml`: GPUs and chips.
    pub struct Gpus = "gpus" {
        pub gpu: Vec<Gpu> by |row| row.id.clone(),
        /// Chips with the PCI ids of their boards, for GPUs without a row of their own.
        pub chip: Vec<Chip> by |row| row.id.clone(),
        /// The number formats that GPUs calculate in.
        pub arithmetic: Vec<Arithmetic> by |row| row.capability.to_string(),
        // Rows derived from `chip` on the first lookup.
        cache of_chips: OnceLock<OfChips>,
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct OfChips {
    /// Rows for boards that have none of their own.
    pub(crate) rows: Vec<Gpu>,
    /// Other product names of boards that have a row, with its index.
    pub(crate) aliases: Vec<(String, usize)>,
}

/// A chip: every board with it has its compute capability.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chip {
    /// GK210
    pub id: String,
    pub capability: Capability,
    pub architecture: String,
    /// One line per device: its PCI id, then the product names it stands for, separated by `|`.
    pub devices: String,
    pub source: Vec<String>,
}

impl Chip {
    pub fn devices(&self) -> impl Iterator<Item = (&str, Vec<&str>)> {
        self.devices.lines().filter(|line| !line.is_empty()).map(|line| match line.split_once(' ') {
            Some((id, names)) => (id, names.split('|').collect()),
            None => (line, Vec::new()),
        })
    }
}

/// Number formats that a compute capability multiplies natively. A capability without a row is unknown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arithmetic {
    pub capability: Capability,
    pub native: Vec<ComputeFormat>,
    pub note: Option<String>,
    pub source: Vec<String>,
}

/// A number format that programs calculate in. TF32 is FP32 whose mantissa is cut before a multiplication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ComputeFormat {
    Fp64,
    Fp32,
    Tf32,
    Bf16,
    Fp16,
    Fp8,
    Fp4,
    Int8,
    Int4,
}

impl ComputeFormat {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fp64 => "fp64",
            Self::Fp32 => "fp32",
            Self::Tf32 => "tf32",
            Self::Bf16 => "bf16",
            Self::Fp16 => "fp16",
            Self::Fp8 => "fp8",
            Self::Fp4 => "fp4",
            Self::Int8 => "int8",
            Self::Int4 => "int4",
        }
    }
}

impl fmt::Display for ComputeFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A GPU model, as far as software can distinguish it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    /// A short name without spaces.
    pub id: String,
    pub names: Vec<String>,
    /// Only GPUs of NVIDIA run CUDA.
    pub vendor: Vendor,
    /// `None` for GPUs of other vendors.
    pub capability: Option<Capability>,
    pub architecture: Option<String>,
    /// The market segment, which determines forward compatibility.
    pub class: GpuClass,
    /// Advertised memory, one figure for each variant.
    pub memory_gb: Vec<u32>,
    /// Dense tensor throughput at half precision (FP16 or BF16, FP32 sums), in 10^12 operations a second; plain FP16,
    /// or FP32 where that is not faster, on cards without tensor cores.
    pub fp16_tflops: Option<f64>,
    /// Memory bandwidth, in 10^9 bytes per second.
    pub memory_gb_per_s: Option<f64>,
    pub mig_instances: Option<u8>,
    /// Whether NVIDIA's cuda-compat libraries may run on it.
    pub forward_compat: ForwardCompatClass,
    pub kernel_module: Option<KernelModule>,
    pub pci_ids: Vec<String>,
    pub note: Option<String>,
    pub source: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Vendor {
    Nvidia,
    Amd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GpuClass {
    Datacenter,
    /// RTX and Quadro workstations.
    Workstation,
    Consumer,
    /// Integrated modules.
    Jetson,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ForwardCompatClass {
    Yes,
    /// It may not: error 804.
    No,
    /// It depends on the brand the board reports.
    BrandDependent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KernelModule {
    ProprietaryOnly,
    OpenOnly,
    Either,
}
