//! Determines what must change besides the name.

use cudock_facts::Facts;
use cudock_facts::tables::{Profile, Size, SizeDriver, Vendor};
use cudock_facts::version::{Capability, SmArch, Variant};
use schemars::JsonSchema;
use serde::Serialize;

use super::codes;
use super::old::{MachineGpu, OldMachine};

/// Something that must change, or be reviewed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Change {
    /// The finding code, if there is one.
    pub code: Option<&'static str>,
    pub text: String,
    /// A short form for a table; empty if it is not shown there.
    #[serde(skip)]
    pub brief: String,
}

impl Change {
    fn new(code: impl Into<Option<&'static str>>, text: impl Into<String>, brief: impl Into<String>) -> Self {
        Self { code: code.into(), text: text.into(), brief: brief.into() }
    }
}

/// The changes from one size to another. For an old size that is not in the tables, only its GPUs are known.
pub(super) fn to_size(
    facts: &Facts,
    (size, old): (Option<&Size>, &OldMachine),
    new: &Size,
    gpu: &MachineGpu,
) -> Vec<Change> {
    let old_gpu = old.gpu.as_ref();
    let changes = [
        maker(facts, old_gpu, gpu),
        machine_code(facts, old_gpu, gpu, &format!("--size {}", new.name)),
        driver(size, new),
        fewer_gpus(old_gpu, gpu),
        share(gpu),
        machine(old, new),
        size.and_then(|size| processor(size, new)),
        size.and_then(|size| interconnect(size, new)),
        size.and_then(|size| generation(size, new)),
        quota(size, new),
        new.note.clone().map(|note| Change::new(None, note, "")),
    ];
    changes.into_iter().flatten().collect()
}

/// The changes from a container instance to a profile of Container Apps.
pub(super) fn to_profile(
    facts: &Facts,
    old: &OldMachine,
    profile: &Profile,
    gpu: &MachineGpu,
    region: Option<&str>,
) -> Vec<Change> {
    let mut changes = Vec::new();
    changes.extend(machine_code(facts, old.gpu.as_ref(), gpu, &format!("--gpu {}", profile.gpu)));
    changes.extend(fewer_gpus(old.gpu.as_ref(), gpu));
    if let Some(region) = region.filter(|region| !profile.regions.iter().any(|known| known == region)) {
        let text = format!("{region} does not offer it: {}", profile.regions.join(", "));
        changes.push(Change::new(None, text, format!("not in {region}")));
    }
    changes
}

fn maker(facts: &Facts, old: Option<&MachineGpu>, new: &MachineGpu) -> Option<Change> {
    let vendor = |id: &str| facts.gpus().find(id).one().map(|gpu| gpu.vendor);
    let (old, vendor_new) = (vendor(&old?.id)?, vendor(&new.id)?);
    let (text, brief) = match (old, vendor_new) {
        (Vendor::Nvidia, Vendor::Amd) => {
            (format!("{} is an AMD GPU: CUDA does not run on it", new.id), "ROCm instead of CUDA")
        }
        (Vendor::Amd, Vendor::Nvidia) => {
            (format!("{} is an NVIDIA GPU: ROCm programs do not run on it", new.id), "CUDA instead of ROCm")
        }
        _ => return None,
    };
    Some(Change::new(codes::OTHER_MAKER, text, brief))
}

fn machine_code(facts: &Facts, old: Option<&MachineGpu>, new: &MachineGpu, target: &str) -> Option<Change> {
    let (was, is) = (old?.capability?, new.capability?);
    if was == is {
        return None;
    }
    let (code, native) = (SmArch::new(was, Variant::Plain), SmArch::new(is, Variant::Plain));
    if code.runs_on(is) {
        return Some(Change::new(
            None,
            format!("compute capability {was} becomes {is}: machine code for {code} runs there"),
            format!("{code} or {native} code (unchanged builds run)"),
        ));
    }
    let toolkit =
        first_toolkit(facts, is).map_or_else(String::new, |cuda| format!(" (CUDA {cuda} or later)"));
    Some(Change::new(
        codes::NO_CODE_FOR_GPU,
        format!(
            "compute capability {was} becomes {is}: machine code for {code} does not run there, code for \
             {native}{toolkit} or PTX does: `cudock check IMAGE {target}`"
        ),
        format!("{native} code or PTX"),
    ))
}

fn first_toolkit(facts: &Facts, capability: Capability) -> Option<String> {
    let architecture = facts.drivers().architecture_of(capability)?;
    let own = architecture.first_toolkit_of.get(&capability).copied();
    own.or(architecture.first_toolkit).map(|cuda| cuda.to_string())
}

fn driver(old: Option<&Size>, new: &Size) -> Option<Change> {
    let is = new.driver?;
    if old.and_then(|old| old.driver) == Some(is) {
        return None;
    }
    let grid = Some(codes::VGPU_DRIVER);
    let (code, text, brief) = match is {
        SizeDriver::Grid => (grid, "it needs Azure's GRID driver", "GRID driver"),
        SizeDriver::GridV20 => (grid, "it needs version 20 of Azure's GRID driver", "GRID driver 20"),
        SizeDriver::Cuda if old.is_some() => (None, "it needs NVIDIA's CUDA driver, not GRID", "CUDA driver"),
        SizeDriver::Rocm | SizeDriver::Amd | SizeDriver::AmdWindows if old.is_some() => {
            (None, "it needs another AMD driver", "AMD driver")
        }
        _ => return None,
    };
    Some(Change::new(code, text, brief))
}

fn fewer_gpus(old: Option<&MachineGpu>, new: &MachineGpu) -> Option<Change> {
    let old = old?;
    (new.devices() < old.devices()).then(|| {
        let text = format!("it has {} GPU instead of {}", new.devices(), old.devices());
        Change::new(codes::FEWER_GPUS, text, "fewer GPUs")
    })
}

fn share(new: &MachineGpu) -> Option<Change> {
    (new.count < 1.0).then(|| {
        let share = format!("1/{:.0} of a GPU", 1.0 / new.count);
        Change::new(None, format!("it has {share}, with that share of its speed"), share)
    })
}

fn machine(old: &OldMachine, new: &Size) -> Option<Change> {
    let mut less = Vec::new();
    if let (Some(was), Some(is)) = (old.vcpu, new.vcpu)
        && is < was
    {
        less.push(format!("{is} vCPU instead of {was}"));
    }
    if let (Some(was), Some(is)) = (old.ram_gib, new.ram_gib)
        && is < was
    {
        less.push(format!("{is} GiB of memory instead of {was}"));
    }
    (!less.is_empty())
        .then(|| Change::new(codes::SMALLER_MACHINE, format!("it has {}", less.join(" and ")), ""))
}

fn processor(old: &Size, new: &Size) -> Option<Change> {
    (old.cpu_arch != new.cpu_arch).then(|| {
        let text = format!("its CPU is {}, not {}", new.cpu_arch, old.cpu_arch);
        Change::new(codes::OTHER_PROCESSOR, text, format!("{} build", new.cpu_arch))
    })
}

fn interconnect(old: &Size, new: &Size) -> Option<Change> {
    let lost = old.infiniband == Some(true) && new.infiniband != Some(true);
    lost.then(|| Change::new(codes::NO_INTERCONNECT, "it has no InfiniBand", "no InfiniBand"))
}

/// An image of the first generation does not boot on a size of the second.
fn generation(old: &Size, new: &Size) -> Option<Change> {
    let first = |size: &Size| size.generations.iter().any(|generation| generation == "V1");
    (first(old) && !first(new) && !new.generations.is_empty())
        .then(|| Change::new(None, "it boots only images of generation 2", "generation 2 image"))
}

fn quota(old: Option<&Size>, new: &Size) -> Option<Change> {
    let family = new.quota_family.as_ref()?;
    let same = old.and_then(|old| old.quota_family.as_ref()) == Some(family);
    (!same).then(|| Change::new(codes::QUOTA, format!("it needs quota for the family {family}"), ""))
}
