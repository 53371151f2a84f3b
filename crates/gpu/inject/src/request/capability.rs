use std::collections::BTreeSet;

use cudock_base::text::suggest::nearest;

use crate::InjectError;

/// A part of the driver that a container may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Capability {
    /// CUDA and `OpenCL`.
    Compute,
    /// 32-bit programs.
    Compat32,
    /// OpenGL, EGL and Vulkan.
    Graphics,
    /// nvidia-smi and NVML.
    Utility,
    /// Encoding and decoding.
    Video,
    /// Screens: an X server in the container.
    Display,
    /// DLSS and its kin.
    Ngx,
}

impl Capability {
    pub const ALL: [Self; 7] =
        [Self::Compute, Self::Compat32, Self::Graphics, Self::Utility, Self::Video, Self::Display, Self::Ngx];

    /// The word in `NVIDIA_DRIVER_CAPABILITIES`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Compat32 => "compat32",
            Self::Graphics => "graphics",
            Self::Utility => "utility",
            Self::Video => "video",
            Self::Display => "display",
            Self::Ngx => "ngx",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    set: BTreeSet<Capability>,
    all: bool,
}

impl Default for Capabilities {
    /// The default of containers that request none: `utility,compute`.
    fn default() -> Self {
        Self::of(&[Capability::Utility, Capability::Compute])
    }
}

impl Capabilities {
    /// These and no others.
    pub fn of(capabilities: &[Capability]) -> Self {
        Self { set: capabilities.iter().copied().collect(), all: false }
    }

    /// Everything the driver has, including parts that belong to no capability.
    pub fn all() -> Self {
        Self { set: Capability::ALL.into_iter().collect(), all: true }
    }

    /// Reads a list of names; `wherein` is the option or variable it stands in. An empty list is the default.
    pub fn parse(text: &str, wherein: &str) -> Result<Self, InjectError> {
        let names: Vec<&str> = text.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        if names.is_empty() {
            return Ok(Self::default());
        }
        let mut capabilities = Self::of(&[]);
        for name in names {
            if name == "all" {
                capabilities = Self::all();
            } else if let Some(known) = Capability::ALL.into_iter().find(|known| known.name() == name) {
                capabilities.set.insert(known);
            } else {
                let known = Capability::ALL.iter().map(|known| known.name()).chain(["all"]);
                return Err(InjectError::UnknownCapability {
                    wherein: wherein.to_owned(),
                    name: name.to_owned(),
                    near: nearest(name, known),
                });
            }
        }
        Ok(capabilities)
    }

    pub fn has(&self, capability: Capability) -> bool {
        self.set.contains(&capability)
    }

    /// Whether everything was requested by `all`, rather than every capability by name.
    pub fn is_all(&self) -> bool {
        self.all
    }
}
