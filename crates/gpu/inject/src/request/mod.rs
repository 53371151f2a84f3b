//! GPU requests: `--gpus`, or the variables of an image.

mod capability;
mod flag;
mod image;

pub use capability::{Capabilities, Capability};

/// Which GPUs a container gets, and what it may do with them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GpuRequest {
    pub devices: Devices,
    /// The parts of the driver.
    pub capabilities: Capabilities,
    /// IMEX channels, for memory shared between machines.
    pub imex_channels: Vec<u32>,
    /// Features that must be requested explicitly.
    pub extras: Extras,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Devices {
    #[default]
    All,
    /// The driver, and no GPU.
    None,
    /// The first N GPUs.
    Count(u32),
    Listed(Vec<DeviceName>),
}

/// The name of a GPU or MIG device.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DeviceName {
    /// Its number in NVML's order.
    Index(u32),
    /// Its UUID, or the beginning of it.
    Uuid(String),
    /// A MIG device by the numbers of its GPU and of itself.
    Mig(u32, u32),
    MigUuid(String),
    /// Its PCI address.
    Bus(String),
}

/// Features that must be requested explicitly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Extras {
    /// `GPUDirect` Storage.
    pub gds: bool,
    pub gdrcopy: bool,
    /// `InfiniBand` verbs.
    pub mofed: bool,
    /// `NVSwitch` management.
    pub nvswitch: bool,
    /// Creating and removing MIG devices; the caller makes sure that the container may administrate.
    pub mig_config: bool,
    /// Monitoring all MIG devices; likewise.
    pub mig_monitor: bool,
}

impl std::fmt::Display for DeviceName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Index(index) => write!(f, "{index}"),
            Self::Mig(gpu, mig) => write!(f, "{gpu}:{mig}"),
            Self::Uuid(name) | Self::MigUuid(name) | Self::Bus(name) => f.write_str(name),
        }
    }
}

impl DeviceName {
    /// Parses one name; `None` if it is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let number = |text: &str| text.parse::<u32>().ok().filter(|_| !text.starts_with('+'));
        if let Some(index) = number(text) {
            return Some(Self::Index(index));
        }
        if text.starts_with("GPU-") && text.len() > 4 {
            return Some(Self::Uuid(text.to_owned()));
        }
        if text.starts_with("MIG-") && text.len() > 4 {
            return Some(Self::MigUuid(text.to_owned()));
        }
        if let Some((Some(gpu), Some(mig))) =
            text.split_once(':').map(|(gpu, mig)| (number(gpu), number(mig)))
        {
            return Some(Self::Mig(gpu, mig));
        }
        let is_bus = text.matches(':').count() == 2
            && text.contains('.')
            && text.bytes().all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.'));
        is_bus.then(|| Self::Bus(text.to_ascii_lowercase()))
    }
}
