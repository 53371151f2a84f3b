//! Targets of GPU names, with a driver or with the newest one that supports the GPU.

use cudock_base::Arch;
use cudock_facts::Facts;
use cudock_facts::lookup::NameMatch;
use cudock_facts::tables::{ForwardCompatClass, Gpu, GpuClass, Vendor};
use cudock_facts::version::{Capability, DriverVersion};

use super::{StartPath, Target, TargetError, Traits};

impl Target {
    /// A GPU with a driver, or with the newest one that supports it.
    pub fn of_gpu(facts: &Facts, name: &str, driver: Option<DriverVersion>) -> Result<Self, TargetError> {
        let row = gpu_named(facts, name)?;
        let mut target = Self::of_row(facts, row, driver);
        // A name of several variants of a GPU is kept.
        if facts.gpus().find(name).one().is_none() {
            target.gpu = Some(name.trim().to_owned());
        }
        Ok(target)
    }

    pub(super) fn of_row(facts: &Facts, row: &Gpu, driver: Option<DriverVersion>) -> Self {
        let assumed = if driver.is_none() { newest_driver(facts, row) } else { None };
        let driver_assumed = assumed.map(|driver| {
            format!("no driver was named: {driver} is the newest in the tables that supports it")
        });
        let branch_only = driver.filter(|driver| !driver.is_exact()).map(DriverVersion::branch);
        let driver = if row.vendor == Vendor::Nvidia { driver.or(assumed) } else { None };
        let driver = driver.map(|driver| facts.drivers().last_release(driver));
        let target = Self::unknown_gpu(facts, driver);
        let traits = Traits {
            vendor: row.vendor,
            forward_compat: row.forward_compat,
            brand: brand(row),
            cpu: own_processor(row),
            branch_only,
            driver_assumed,
            ..target.traits
        };
        Self { gpu: Some(row.id.clone()), capability: row.capability, traits, ..target }
    }

    pub fn unknown_gpu(facts: &Facts, driver: Option<DriverVersion>) -> Self {
        let branch = driver.and_then(|driver| facts.drivers().branch_of(driver));
        Self {
            gpu: None,
            capability: None,
            driver,
            cuda: branch.map(|branch| branch.cuda),
            sku: None,
            service: None,
            traits: Traits {
                vendor: Vendor::Nvidia,
                forward_compat: ForwardCompatClass::BrandDependent,
                brand: None,
                gpu_count: None,
                cpu: None,
                ptx_isa: branch.map(|branch| branch.ptx_isa),
                wsl: false,
                branch_only: None,
                driver_assumed: None,
                start: StartPath::default(),
                machine: None,
                notes: Vec::new(),
            },
        }
    }
}

pub(super) fn gpu_named<'f>(facts: &'f Facts, name: &str) -> Result<&'f Gpu, TargetError> {
    let alike = |rows: &[&'f Gpu]| {
        let key = |row: &Gpu| (row.capability, row.forward_compat);
        rows.first().copied().filter(|first| rows.iter().all(|row| key(row) == key(first)))
    };
    match facts.gpus().find(name) {
        NameMatch::One(row) => Ok(row),
        // Variants of a GPU that differ only in memory are the same here.
        NameMatch::Several(rows) => alike(&rows).ok_or_else(|| {
            TargetError::new(format!("`{name}` matches several GPUs"), rows.iter().map(|row| &row.id))
        }),
        NameMatch::NotFound(near) => Err(TargetError::new(format!("unknown GPU `{name}`"), near)),
    }
}

/// The newest driver in the tables that supports a GPU.
fn newest_driver(facts: &Facts, row: &Gpu) -> Option<DriverVersion> {
    if row.vendor != Vendor::Nvidia {
        return None;
    }
    let last =
        row.capability.and_then(|capability| facts.drivers().architecture_of(capability)?.last_driver_branch);
    let branches =
        facts.drivers().branch.iter().filter(|branch| last.is_none_or(|last| branch.branch <= last));
    let newest = branches.max_by_key(|branch| branch.branch)?;
    Some(facts.drivers().last_release(DriverVersion::of_branch(newest.branch)))
}

/// The processor of GPUs that come with one.
fn own_processor(row: &Gpu) -> Option<Arch> {
    let with_grace = ["GH200", "GB200", "GB300", "GB10", "VR200"].iter().any(|id| row.id.starts_with(id));
    (with_grace || row.class == GpuClass::Jetson).then_some(Arch::Aarch64)
}

/// NVML's brand. Drivers call boards since Ampere "NVIDIA" and older data-center boards "Tesla".
fn brand(row: &Gpu) -> Option<String> {
    let name = row.names.first().map_or(row.id.as_str(), String::as_str).to_ascii_lowercase();
    let brand = match row.class {
        GpuClass::Datacenter if row.capability? < Capability::new(8, 0) => "tesla",
        GpuClass::Datacenter | GpuClass::Jetson => "nvidia",
        GpuClass::Consumer if name.contains("titan rtx") => "titanrtx",
        GpuClass::Consumer if name.contains("titan") => "titan",
        GpuClass::Consumer if name.contains("rtx") => "geforcertx",
        GpuClass::Consumer => "geforce",
        GpuClass::Workstation if name.contains("quadro rtx") => "quadrortx",
        GpuClass::Workstation if name.contains("quadro") => "quadro",
        GpuClass::Workstation => "nvidiartx",
    };
    Some(brand.to_owned())
}
