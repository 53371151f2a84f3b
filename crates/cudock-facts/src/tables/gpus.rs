use std::sync::OnceLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::header::{Header, row, table_file};
use crate::version::Capability;

/// `gpus.toml`: GPUs and chips.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpus {
    pub table: Header,
    #[serde(default)]
    pub gpu: Vec<Gpu>,
    /// Chips with the PCI ids of their boards, for GPUs without a row of their own.
    #[serde(default)]
    pub chip: Vec<Chip>,
    /// Rows derived from `chip` on the first lookup.
    #[serde(skip)]
    pub(crate) of_chips: OnceLock<OfChips>,
}

/// The rows derived from the chip table.
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
    /// The devices: PCI id and product names.
    pub fn devices(&self) -> impl Iterator<Item = (&str, Vec<&str>)> {
        self.devices.lines().filter(|line| !line.is_empty()).map(|line| match line.split_once(' ') {
            Some((id, names)) => (id, names.split('|').collect()),
            None => (line, Vec::new()),
        })
    }
}

/// A GPU model, as far as software can distinguish it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    /// A short name without spaces.
    pub id: String,
    /// Names used by the driver.
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
    /// The maximum number of MIG instances.
    pub mig_instances: Option<u8>,
    /// Whether NVIDIA's cuda-compat libraries may run on it.
    pub forward_compat: ForwardCompatClass,
    /// Which flavour of the kernel module drives it.
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

/// What a GPU is sold for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GpuClass {
    /// Servers.
    Datacenter,
    /// RTX and Quadro workstations.
    Workstation,
    Consumer,
    /// Integrated modules.
    Jetson,
}

/// Whether cuda-compat may run on a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ForwardCompatClass {
    Yes,
    /// It may not: error 804.
    No,
    /// It depends on the brand the board reports.
    BrandDependent,
}

/// Which kernel module drives a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KernelModule {
    /// The closed one alone.
    ProprietaryOnly,
    /// The open one alone.
    OpenOnly,
    Either,
}

row!(Gpu, |row| row.id.clone());
row!(Chip, |row| row.id.clone());
table_file!(Gpus, "gpus", [gpu, chip]);
