//! The virtual machine size of a workload.

use cudock_base::Arch;
use cudock_facts::Facts;
use cudock_facts::lookup::NameMatch;
use cudock_facts::tables::{Lifecycle, SizeDriver};

use crate::services::error::TranslationError;
use crate::spec::DeploymentSpec;

/// A virtual machine size.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    pub(crate) size: String,
    /// The driver of its GPUs; none for sizes without.
    pub(crate) driver: Option<SizeDriver>,
    pub(crate) has_infiniband: bool,
}

impl Machine {
    /// Whether its GPUs take the GRID driver instead of NVIDIA's data-center driver.
    pub(crate) fn needs_grid(&self) -> bool {
        matches!(self.driver, Some(SizeDriver::Grid | SizeDriver::GridV20))
    }
}

/// The virtual machine size of a workload, if it exists, is on sale and fits.
pub(crate) fn machine(facts: &Facts, spec: &DeploymentSpec) -> Result<Machine, TranslationError> {
    let Some(name) = spec.size.as_deref() else {
        return Err(TranslationError::new("this service needs a virtual machine size")
            .hint("name one, such as Standard_NC4as_T4_v3, or let `cudock plan` choose"));
    };
    let row = match facts.sizes().find(name) {
        NameMatch::One(row) => row,
        // The tables hold GPU sizes only.
        _ if spec.gpus == 0 && is_size(name) => {
            return Ok(Machine { size: name.to_owned(), driver: None, has_infiniband: false });
        }
        other => {
            let near = match other {
                NameMatch::NotFound(near) => near,
                _ => Vec::new(),
            };
            let error = TranslationError::new(format!("`{name}` is not a GPU size of Azure"));
            return Err(match cudock_base::did_you_mean(&near) {
                Some(hint) => error.hint(hint),
                None => error.hint("list the sizes: cudock facts size"),
            });
        }
    };
    if row.lifecycle == Lifecycle::Retired {
        let error = TranslationError::new(format!("Azure has retired {}", row.name));
        return Err(match &row.replacement {
            Some(size) => error.hint(format!("use {size} instead")),
            None => error,
        });
    }
    if row.cpu_arch != Arch::X86_64 {
        return Err(TranslationError::new(format!(
            "{} is an arm64 size: amd64 images do not run there, and no node image is known for it",
            row.name
        )));
    }
    let driver = row.driver;
    if spec.gpus > 0 && !matches!(driver, Some(SizeDriver::Cuda | SizeDriver::Grid | SizeDriver::GridV20)) {
        return Err(TranslationError::new(format!("{} has no NVIDIA GPU", row.name)));
    }
    if let Some(count) = row.gpu_count
        && f64::from(spec.gpus) > count.max(1.0)
    {
        return Err(TranslationError::new(format!("{} has {count} GPUs, not {}", row.name, spec.gpus)).hint(
            format!("sizes with more: cudock facts size --gpu {}", row.gpu.as_deref().unwrap_or("NAME")),
        ));
    }
    Ok(Machine { size: row.name.clone(), driver, has_infiniband: row.infiniband == Some(true) })
}

fn is_size(name: &str) -> bool {
    name.strip_prefix("Standard_").is_some_and(|rest| {
        !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    })
}
