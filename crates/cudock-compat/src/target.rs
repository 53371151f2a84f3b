//! What a subject is held against: a card, a driver, and what is around them.

use cudock_facts::Facts;
use cudock_facts::finding::{Evidence as Seen, Finding, Severity};
use cudock_facts::lookup::Found;
use cudock_facts::tables::{ForwardCompatClass, Gpu, GpuClass, KernelModule, Size, SizeDriver, Vendor};
use cudock_facts::version::{Capability, CudaVersion, Date, DriverVersion, PtxIsa};
use cudock_host::checks::Diagnosis;
use cudock_host::host::{FoundBy, LibraryKind, NvmlAnswer};
use cudock_host::{Host, Status};
use serde::Serialize;

use crate::codes;

/// A place a subject may run in.
#[derive(Debug, Clone, Serialize)]
pub struct Target {
    /// The card, by the tables' name or the driver's; none if there is none.
    pub gpu: Option<String>,
    /// Its compute capability.
    pub capability: Option<Capability>,
    /// The driver.
    pub driver: Option<DriverVersion>,
    /// The CUDA version the driver carries.
    pub cuda: Option<CudaVersion>,
    /// The Azure size.
    pub sku: Option<String>,
    /// What else decides.
    #[serde(skip)]
    pub traits: Traits,
}

/// What else about a target decides.
#[derive(Debug, Clone)]
pub struct Traits {
    /// Who made the card.
    pub vendor: Vendor,
    /// Whether cuda-compat runs on it.
    pub forward_compat: ForwardCompatClass,
    /// Which kernel modules drive it.
    pub modules: Option<KernelModule>,
    /// NVML's brand of it, as container requirements name it.
    pub brand: Option<String>,
    /// How many there are.
    pub gpu_count: Option<u32>,
    /// The processor, as images name it.
    pub cpu: Option<String>,
    /// The PTX the driver understands.
    pub ptx_isa: Option<PtxIsa>,
    /// Whether the driver is Windows', under WSL2.
    pub wsl: bool,
    /// Why this driver: none if it was given.
    pub driver_assumed: Option<String>,
    /// How containers are started.
    pub start: StartPath,
    /// What is known of the machine itself.
    pub machine: Option<Machine>,
    /// What is to be said about the target, whatever runs there.
    pub notes: Vec<Finding>,
}

/// How containers get their GPU, which decides who reads the image's variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StartPath {
    /// By NVIDIA's hook, as `docker run --gpus` does: the image's requirements and capabilities count.
    #[default]
    Hook,
    /// By CDI: they do not.
    Cdi,
}

/// What is known of a machine that is at hand.
#[derive(Debug, Clone, Default)]
pub struct Machine {
    /// The libcuda a program started there would load.
    pub libcuda: Option<HostLibcuda>,
    /// Whether the driver's PTX compiler is there.
    pub has_jit: bool,
    /// The first thing that keeps every program from the GPU, with CUDA's error.
    pub blocked: Option<(Option<u16>, Finding)>,
    /// The cards' identities, for `CUDA_VISIBLE_DEVICES`.
    pub uuids: Vec<String>,
}

/// The libcuda that comes first on a machine.
#[derive(Debug, Clone)]
pub struct HostLibcuda {
    /// Where it is.
    pub path: String,
    /// What it is.
    pub kind: LibraryKind,
    /// Its version.
    pub version: Option<DriverVersion>,
    /// Whether `LD_LIBRARY_PATH` leads to it.
    pub by_library_path: bool,
}

/// A name that is no target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TargetError {
    /// What is wrong.
    pub message: String,
    /// Names that are near.
    pub near: Vec<String>,
}

impl Target {
    /// A card, with a driver or with the newest that drives it.
    pub fn of_gpu(facts: &Facts, name: &str, driver: Option<DriverVersion>) -> Result<Self, TargetError> {
        let row = gpu_named(facts, name)?;
        let mut target = Self::of_row(facts, row, driver);
        // A name that stands for variants of a card stays what it is.
        if facts.gpus().find(name).one().is_none() {
            target.gpu = Some(name.trim().to_owned());
        }
        Ok(target)
    }

    fn of_row(facts: &Facts, row: &Gpu, driver: Option<DriverVersion>) -> Self {
        let assumed = if driver.is_none() { newest_driver(facts, row) } else { None };
        let driver_assumed = assumed.map(|driver| {
            format!("no driver was named: {driver} is the newest in the tables that drives it")
        });
        let driver = if row.vendor == Vendor::Nvidia { driver.or(assumed) } else { None };
        let branch = driver.and_then(|driver| facts.drivers().branch_of(driver));
        Self {
            gpu: Some(row.id.clone()),
            capability: row.capability,
            driver,
            cuda: branch.map(|branch| branch.cuda),
            sku: None,
            traits: Traits {
                vendor: row.vendor,
                forward_compat: row.forward_compat,
                modules: row.kernel_module,
                brand: brand(row),
                gpu_count: None,
                cpu: own_processor(row).map(str::to_owned),
                ptx_isa: branch.map(|branch| branch.ptx_isa),
                wsl: false,
                driver_assumed,
                start: StartPath::default(),
                machine: None,
                notes: Vec::new(),
            },
        }
    }

    /// An Azure size: its card, its processor and the driver its service installs, as far as that is known.
    pub fn of_size(
        facts: &Facts,
        name: &str,
        driver: Option<DriverVersion>,
        today: Date,
    ) -> Result<Self, TargetError> {
        match facts.sizes().find(name) {
            Found::One(size) => Self::of_size_row(facts, size, driver, today),
            Found::Several(sizes) => Err(TargetError {
                message: format!("`{name}` stands for several sizes"),
                near: sizes.iter().map(|size| size.name.clone()).collect(),
            }),
            Found::Nothing(near) => Err(TargetError {
                message: format!("no Azure size is called `{name}`"),
                near: near.into_iter().map(str::to_owned).collect(),
            }),
        }
    }

    /// Every size on sale that has a card of the tables.
    pub fn all_sizes(facts: &Facts, driver: Option<DriverVersion>, today: Date) -> Vec<Self> {
        let on_sale = facts.sizes().size.iter().filter(|size| size.is_on_sale(today));
        on_sale.filter_map(|size| Self::of_size_row(facts, size, driver, today).ok()).collect()
    }

    fn of_size_row(
        facts: &Facts,
        size: &Size,
        given: Option<DriverVersion>,
        today: Date,
    ) -> Result<Self, TargetError> {
        let no_gpu =
            || TargetError { message: format!("{} has no GPU in the tables", size.name), near: Vec::new() };
        let row = gpu_named(facts, size.gpu.as_deref().ok_or_else(no_gpu)?)?;
        let installed = installed_driver(facts, size);
        let driver = given.or_else(|| installed.as_ref().map(|(driver, _)| *driver));
        let mut target = Self::of_row(facts, row, driver);
        if given.is_none()
            && let Some((driver, why)) = installed
        {
            target.traits.driver_assumed =
                Some(format!("{driver} is what Azure documents for this series: {why}"));
        }
        target.sku = Some(size.name.clone());
        target.traits.cpu = Some(image_architecture(&size.cpu_arch).to_owned());
        target.traits.gpu_count = size
            .gpu_count
            .filter(|count| *count >= 1.0)
            .map(|count| if count >= 255.0 { 255 } else { count_of(count) });
        if !size.is_on_sale(today) {
            target.traits.notes.push(retired(size));
        }
        if matches!(size.driver, Some(SizeDriver::Grid | SizeDriver::GridV20)) {
            target.traits.notes.push(Finding {
                code: codes::VGPU_DRIVER,
                severity: Severity::Note,
                message: format!("{} takes Azure's GRID driver", size.name),
                evidence: vec![Seen::new(&size.name, "driver kind in the tables")],
                fix: "install the GRID driver Azure distributes, of the version its driver guide names"
                    .to_owned(),
            });
        }
        Ok(target)
    }

    /// The cards of a machine that was read; one target a kind of card. With no card, one target that says so.
    pub fn of_host(facts: &Facts, host: &Host, diagnosis: &Diagnosis) -> Vec<Self> {
        let machine = machine(host, diagnosis);
        let uuids = machine.uuids.len();
        let mut targets: Vec<Self> = Vec::new();
        for gpu in &diagnosis.gpus {
            let row = facts.gpus().by_product_name(&gpu.name).or_else(|| gpu_named(facts, &gpu.name).ok());
            let mut target = match row {
                Some(row) => Self::of_row(facts, row, diagnosis.driver),
                None => Self::unknown_card(facts, diagnosis.driver),
            };
            target.gpu = Some(row.map_or_else(|| gpu.name.clone(), |row| row.id.clone()));
            target.capability = gpu.capability.or(target.capability);
            target.traits.gpu_count = u32::try_from(diagnosis.gpus.len().max(uuids)).ok();
            if !targets.iter().any(|known| known.capability == target.capability && known.gpu == target.gpu) {
                targets.push(target);
            }
        }
        if targets.is_empty() {
            let mut target = Self::unknown_card(facts, diagnosis.driver);
            target.traits.gpu_count = Some(0);
            targets.push(target);
        }
        for target in &mut targets {
            target.cuda = diagnosis.cuda.or(target.cuda);
            target.traits.cpu = Some(image_architecture(&host.surroundings.cpu_arch).to_owned());
            target.traits.wsl = host.surroundings.wsl;
            target.traits.driver_assumed = None;
            target.traits.machine = Some(machine.clone());
        }
        targets
    }

    fn unknown_card(facts: &Facts, driver: Option<DriverVersion>) -> Self {
        let branch = driver.and_then(|driver| facts.drivers().branch_of(driver));
        Self {
            gpu: None,
            capability: None,
            driver,
            cuda: branch.map(|branch| branch.cuda),
            sku: None,
            traits: Traits {
                vendor: Vendor::Nvidia,
                forward_compat: ForwardCompatClass::BrandDependent,
                modules: None,
                brand: None,
                gpu_count: None,
                cpu: None,
                ptx_isa: branch.map(|branch| branch.ptx_isa),
                wsl: false,
                driver_assumed: None,
                start: StartPath::default(),
                machine: None,
                notes: Vec::new(),
            },
        }
    }

    /// In a few words: "H200 (9.0), driver 580.159.04".
    pub fn words(&self) -> String {
        let sku = self.sku.as_ref().map_or_else(String::new, |sku| format!("{sku}: "));
        let gpu = self.gpu.as_deref().unwrap_or("no GPU");
        let capability = self.capability.map_or_else(String::new, |capability| format!(" ({capability})"));
        let driver = self.driver.map_or_else(String::new, |driver| format!(", driver {driver}"));
        format!("{sku}{gpu}{capability}{driver}")
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and 255")]
fn count_of(count: f64) -> u32 {
    count as u32
}

fn gpu_named<'f>(facts: &'f Facts, name: &str) -> Result<&'f Gpu, TargetError> {
    let alike = |rows: &[&Gpu]| {
        rows.first().is_some_and(|first| {
            rows.iter()
                .all(|row| row.capability == first.capability && row.forward_compat == first.forward_compat)
        })
    };
    match facts.gpus().find(name) {
        Found::One(row) => Ok(row),
        // Variants of one card that differ in memory alone are one card here.
        Found::Several(rows) if alike(&rows) => rows
            .first()
            .copied()
            .ok_or_else(|| TargetError { message: format!("no GPU is called `{name}`"), near: Vec::new() }),
        Found::Several(rows) => Err(TargetError {
            message: format!("`{name}` stands for several GPUs"),
            near: rows.iter().map(|row| row.id.clone()).collect(),
        }),
        Found::Nothing(near) => Err(TargetError {
            message: format!("no GPU is called `{name}`"),
            near: near.into_iter().map(str::to_owned).collect(),
        }),
    }
}

/// The newest driver in the tables that drives a card.
fn newest_driver(facts: &Facts, row: &Gpu) -> Option<DriverVersion> {
    if row.vendor != Vendor::Nvidia {
        return None;
    }
    let last =
        row.capability.and_then(|capability| facts.drivers().architecture_of(capability)?.last_driver_branch);
    let branches =
        facts.drivers().branch.iter().filter(|branch| last.is_none_or(|last| branch.branch <= last));
    let newest = branches.max_by_key(|branch| branch.branch)?;
    Some(newest.latest_linux.unwrap_or(DriverVersion::of_branch(newest.branch)))
}

/// What Azure documents for a series, the newest first.
fn installed_driver(facts: &Facts, size: &Size) -> Option<(DriverVersion, String)> {
    let series = size.series.as_deref()?;
    let rows = facts.services().driver.iter().filter(|row| row.service == "vm" && row.applies_to == series);
    let rows = rows.filter(|row| size.driver.is_none_or(|kind| kind == row.kind));
    let newest = rows
        .filter_map(|row| Some((row.version?, row)))
        .max_by_key(|(version, row)| (row.as_of, *version))?;
    Some((
        newest.0,
        newest.1.note.clone().unwrap_or_else(|| "the driver of the virtual machine extension".to_owned()),
    ))
}

fn retired(size: &Size) -> Finding {
    let when = size.retired_on.or(size.retires_on);
    let when = when.map_or_else(|| "is not on sale".to_owned(), |day| format!("ended on {day}"));
    let instead = size.replacement.as_deref().map_or_else(
        || "choose a size on sale (`cudock facts size`)".to_owned(),
        |replacement| format!("use {replacement} (`cudock facts size`)"),
    );
    Finding {
        code: codes::SIZE_RETIRED,
        severity: Severity::Warning,
        message: format!("{} {when}", size.name),
        evidence: size.source.iter().map(|source| Seen::new(&size.name, source)).collect(),
        fix: instead,
    }
}

/// The processor of cards that are sold with one.
fn own_processor(row: &Gpu) -> Option<&'static str> {
    let with_grace = ["GH200", "GB200", "GB300", "GB10", "VR200"].iter().any(|id| row.id.starts_with(id));
    (with_grace || row.class == GpuClass::Jetson).then_some("arm64")
}

/// What images call a processor.
pub fn image_architecture(name: &str) -> &str {
    match name {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
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

fn machine(host: &Host, diagnosis: &Diagnosis) -> Machine {
    let first = host
        .libraries
        .iter()
        .find(|library| library.name == "libcuda.so.1" && library.found_by != FoundBy::NotSearched);
    let libcuda = first.map(|library| HostLibcuda {
        path: library.path.clone(),
        kind: library.kind,
        version: library.version,
        by_library_path: library.found_by == FoundBy::LibraryPath,
    });
    let has_jit = host.libraries.iter().any(|library| library.name.starts_with("libnvidia-ptxjitcompiler"));
    let uuids = match &host.nvml {
        NvmlAnswer::Answered(report) => {
            report.gpus.iter().map(|gpu| gpu.uuid.clone().unwrap_or_default()).collect()
        }
        _ => Vec::new(),
    };
    Machine { libcuda, has_jit, blocked: blocked(diagnosis), uuids }
}

/// CUDA's error for what the doctor found; those about libcuda are judged where it is chosen.
fn blocked(diagnosis: &Diagnosis) -> Option<(Option<u16>, Finding)> {
    let error = |code: &str| match code {
        // No GPU, held by another driver, not given to this container, its nodes missing or forbidden, not driven.
        "CD0101" | "CD0102" | "CD0106" | "CD0107" | "CD0108" | "CD0111" | "CD0201" | "CD0209" | "CD0210" => {
            Some(Some(100))
        }
        "CD0110" => Some(Some(802)),
        "CD0113" => Some(Some(46)),
        "CD0202" => Some(Some(803)),
        "CD0214" => Some(Some(999)),
        "CD0103" | "CD0104" | "CD0105" => Some(None),
        _ => None,
    };
    diagnosis.checks.iter().filter(|check| check.status == Status::Problem).find_map(|check| {
        let code = check.code?;
        let finding = Finding {
            code,
            severity: Severity::Error,
            message: check.message.clone(),
            evidence: check.evidence.clone(),
            fix: check.fix.clone().unwrap_or_default(),
        };
        // Without this node the driver is found, and memory cannot be shared with it.
        let uvm = code == "CD0107" && check.message.contains("nvidia-uvm");
        Some((if uvm { Some(999) } else { error(code)? }, finding))
    })
}
