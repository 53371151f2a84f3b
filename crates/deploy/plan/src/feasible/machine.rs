//! Rules about a size: whether it is available, what it has, and whether the image runs on it.

use cudock_base::Arch;
use cudock_base::text::format::{binary_bytes, bytes};
use cudock_facts::tables::{ComputeFormat, Lifecycle, SizeDriver, Vendor};

use super::{NO_MEASURE, short, unless};
use crate::catalog::availability::Proof;
use crate::catalog::bare;
use crate::catalog::machine::MachineType;
use crate::codes;
use crate::context::Case;
use crate::report::format::shortened;

pub(super) fn allowed(case: &Case) -> Option<u64> {
    let sizes = &case.workload().constraints.sizes;
    let name = bare(&case.machine.name);
    unless(sizes.is_empty() || sizes.iter().any(|allowed| bare(allowed).eq_ignore_ascii_case(name)))
}

pub(super) fn describe_allowed(case: &Case) -> String {
    let sizes = &case.workload().constraints.sizes;
    if sizes.is_empty() {
        "any size is allowed".to_owned()
    } else {
        format!("allowed sizes: {}", shortened(sizes))
    }
}

pub(super) fn model(case: &Case) -> Option<u64> {
    let models = &case.workload().gpu.models;
    // A size with an unknown GPU fails the rule about documentation.
    let Some(gpu) = &case.machine.gpu else { return None };
    unless(models.is_empty() || models.iter().any(|id| id.eq_ignore_ascii_case(gpu)))
}

pub(super) fn describe_model(case: &Case) -> String {
    let models = &case.workload().gpu.models;
    let gpu = case.machine.gpu_name();
    if models.is_empty() {
        format!("GPU {gpu}; any is allowed")
    } else {
        format!("GPU {gpu}; allowed: {}", shortened(models))
    }
}

pub(super) fn retired(case: &Case) -> Option<u64> {
    let machine = case.machine;
    let gone = match machine.lifecycle {
        Lifecycle::PreviewEnded => true,
        Lifecycle::Retired => case.last_day().is_none_or(|day| day <= case.workload().begins),
        _ => case.last_day().is_some_and(|day| day <= case.workload().begins) && machine.ends.is_some(),
    };
    unless(!gone)
}

pub(super) fn describe_retired(case: &Case) -> String {
    let machine = case.machine;
    let instead = machine.replacement.as_ref().map(|other| format!("; use {other}")).unwrap_or_default();
    match (retired(case), machine.ends) {
        (Some(_), _) if machine.lifecycle == Lifecycle::PreviewEnded => {
            format!("its preview has ended{instead}")
        }
        (Some(_), Some(_)) => {
            let day = case.last_day().map(|day| day.to_string()).unwrap_or_default();
            format!("retired on {day}{instead}")
        }
        (Some(_), None) => format!("retired{instead}"),
        (None, Some(day)) => format!("retired on {day} in most regions"),
        (None, None) => "no retirement announced".to_owned(),
    }
}

pub(super) fn documented(case: &Case) -> Option<u64> {
    unless(missing(case.machine).is_none())
}

pub(super) fn describe_documented(case: &Case) -> String {
    missing(case.machine).unwrap_or("documented").to_owned()
}

fn missing(machine: &MachineType) -> Option<&'static str> {
    if machine.lifecycle == Lifecycle::Announced {
        return Some("announced, not yet available");
    }
    if !machine.documented {
        return Some("undocumented: only a price is known");
    }
    let known = machine.vendor.is_some()
        && machine.gpus.is_some()
        && machine.gpu_memory.is_some()
        && machine.vcpu.is_some()
        && machine.ram.is_some();
    (!known).then_some("its GPU, memory or vCPUs are not in the tables")
}

pub(super) fn vendor(case: &Case) -> Option<u64> {
    unless(case.machine.vendor != Some(Vendor::Amd))
}

pub(super) fn describe_vendor(case: &Case) -> String {
    let gpu = case.machine.gpu_name();
    match case.machine.vendor {
        Some(Vendor::Amd) => format!("{gpu} is an AMD GPU, which does not run CUDA"),
        Some(Vendor::Nvidia) => format!("{gpu} is from NVIDIA"),
        None => format!("the vendor of {gpu} is unknown"),
    }
}

pub(super) fn offered(case: &Case) -> Option<u64> {
    unless(not_offered(case).is_none())
}

pub(super) fn describe_offered(case: &Case) -> String {
    not_offered(case).unwrap_or_else(|| describe_support(case))
}

/// The evidence that the service supports the size.
fn describe_support(case: &Case) -> String {
    let name = case.terms.kind.name();
    let day = case.support().map(|row| format!(" (source of {})", row.as_of)).unwrap_or_default();
    match case.series_support() {
        Some(Proof::NotListed) => format!("no source lists it for {name}{day}"),
        Some(Proof::Indirect) => format!("{name} supports it, by indirect evidence{day}"),
        _ => format!("{name} supports it{day}"),
    }
}

fn not_offered(case: &Case) -> Option<String> {
    let (machine, kind) = (case.machine, case.terms.kind);
    let architectures = case.terms.row.map(|row| row.cpu_arch.as_slice()).unwrap_or_default();
    let series_support = case.series_support();
    if series_support.is_none() {
        let row = case.support();
        let note =
            row.and_then(|row| row.note.as_deref()).map(|note| format!(": {note}")).unwrap_or_default();
        let day = row.map(|row| format!(" (source of {})", row.as_of)).unwrap_or_default();
        return Some(format!("{} does not support its series{day}{note}", kind.name()));
    }
    if machine.confidential && series_support == Some(Proof::NotListed) {
        let name = kind.name();
        return Some(format!("a confidential VM, which {name} is not documented to support"));
    }
    if let Some(own) = machine.architecture.filter(|own| !architectures.contains(own)) {
        let offered = shortened(architectures);
        let own = processor(own);
        return Some(format!("{} has {offered} machines, this is {own}", kind.name()));
    }
    let nowhere =
        machine.profile.is_some() && !machine.offered_in.iter().any(|region| case.context.allows(*region));
    nowhere.then(|| "not offered in the allowed regions".to_owned())
}

pub(super) fn architecture(case: &Case) -> Option<u64> {
    let needed = case.workload().machine.architecture.as_ref();
    unless(needed.is_none_or(|needed| needed.arch().is_some() && needed.arch() == case.machine.architecture))
}

pub(super) fn describe_architecture(case: &Case) -> String {
    let has = case.machine.architecture.map_or_else(String::new, processor);
    match &case.workload().machine.architecture {
        Some(needed) => format!("architecture {has}, the image is for {needed}"),
        None => format!("architecture {has}, the image is for any"),
    }
}

/// An architecture by its names in the kernel and in images: `arm64 (aarch64)`.
fn processor(arch: Arch) -> String {
    match arch {
        Arch::Aarch64 => format!("{} ({})", arch.oci_name(), arch.name()),
        Arch::X86_64 => arch.name().to_owned(),
    }
}

pub(super) fn capability(case: &Case) -> Option<u64> {
    let needs = &case.workload().gpu;
    if needs.least_capability.is_none() && needs.greatest_capability.is_none() {
        return None;
    }
    let Some(has) = case.machine.capability else { return Some(NO_MEASURE) };
    let low = needs.least_capability.is_none_or(|least| has >= least);
    unless(low && needs.greatest_capability.is_none_or(|greatest| has <= greatest))
}

pub(super) fn describe_capability(case: &Case) -> String {
    let needs = &case.workload().gpu;
    let has = case.machine.capability.map_or_else(|| "unknown".to_owned(), |has| has.to_string());
    let needed = match (needs.least_capability, needs.greatest_capability) {
        (Some(least), Some(greatest)) if least == greatest => format!("the program runs on {least} only"),
        (Some(least), Some(greatest)) => format!("the program runs on {least} to {greatest}"),
        (Some(least), None) => format!("the program needs {least} or higher"),
        (None, Some(greatest)) => format!("the program runs on {greatest} and lower"),
        (None, None) => "any is sufficient".to_owned(),
    };
    format!("compute capability {has}; {needed}")
}

/// The number format that the GPU calculates in. Weights of four bits are only stored in that form:
/// programs convert them to FP16.
fn calculated_in(wanted: ComputeFormat) -> ComputeFormat {
    if wanted == ComputeFormat::Int4 { ComputeFormat::Fp16 } else { wanted }
}

pub(super) fn precision(case: &Case) -> Option<u64> {
    let wanted = case.workload().gpu.precision?;
    let formats = case.machine.formats.as_ref();
    unless(formats.is_some_and(|formats| formats.contains(&calculated_in(wanted))))
}

pub(super) fn describe_precision(case: &Case) -> String {
    let Some(wanted) = case.workload().gpu.precision else {
        return "any number format is allowed".to_owned();
    };
    let (gpu, format) = (case.machine.gpu_name(), calculated_in(wanted));
    let verb = match (&case.machine.formats, precision(case)) {
        (None, _) => return format!("whether {gpu} calculates in {format} is unknown"),
        (Some(_), None) => "calculates",
        (Some(_), Some(_)) => "does not calculate",
    };
    let converted = if format == wanted { String::new() } else { format!("; {wanted} is converted to it") };
    format!("{gpu} {verb} in {format}{converted}")
}

pub(super) fn memory(case: &Case) -> Option<u64> {
    // A missing figure fails the rule about documentation.
    short(case.machine.gpu_memory?, case.workload().gpu.memory)
}

pub(super) fn describe_memory(case: &Case) -> String {
    let machine = case.machine;
    let each = machine.gpu_memory.map_or_else(|| "unknown memory".to_owned(), bytes);
    let of_each = if machine.gpus.is_some_and(|count| count > 1000) { "each of " } else { "" };
    let needed = match case.workload().gpu.memory {
        0 => "any is sufficient".to_owned(),
        memory => format!("{} needed", bytes(memory)),
    };
    format!("{each} on {of_each}{}, {needed}", machine.describe_gpus())
}

pub(super) fn count(case: &Case) -> Option<u64> {
    let needed = case.workload().gpu.per_instance;
    let has = case.machine.gpus?;
    match needed {
        0 => Some(NO_MEASURE),
        1 if has > 0 => None,
        _ => short(u64::from(has), u64::from(needed) * 1000),
    }
}

pub(super) fn describe_count(case: &Case) -> String {
    let needed = case.workload().gpu.per_instance;
    if needed == 0 {
        return "the workload needs 0 GPUs per instance; ask for 1 or more".to_owned();
    }
    format!("{} per instance, {needed} needed", case.machine.describe_gpus())
}

pub(super) fn links(case: &Case) -> Option<u64> {
    let (needs, machine) = (&case.workload().gpu, case.machine);
    let nvlink = !needs.nvlink || machine.links(needs.per_instance);
    unless(nvlink && (!needs.infiniband || machine.infiniband == Some(true)))
}

pub(super) fn describe_links(case: &Case) -> String {
    let (needs, machine) = (&case.workload().gpu, case.machine);
    let mut links = Vec::new();
    if needs.nvlink || machine.nvlink.is_some() {
        links.push(machine.nvlink.clone().unwrap_or_else(|| "no NVLink".to_owned()));
    }
    match (machine.infiniband == Some(true), machine.infiniband_gbps) {
        (true, Some(gbps)) => links.push(format!("InfiniBand {gbps} Gb/s")),
        (true, None) => links.push("InfiniBand".to_owned()),
        (false, _) if needs.infiniband => links.push("no InfiniBand".to_owned()),
        _ => {}
    }
    let of_gpus =
        if needs.per_instance > 1 { format!(" of {} GPUs", needs.per_instance) } else { String::new() };
    links.push(match (needs.nvlink, needs.infiniband) {
        (true, true) => format!("NVLink{of_gpus} and InfiniBand needed"),
        (true, false) => format!("NVLink{of_gpus} needed"),
        (false, true) => "InfiniBand needed".to_owned(),
        (false, false) => "no interconnect needed".to_owned(),
    });
    links.join(", ")
}

pub(super) fn machine(case: &Case) -> Option<u64> {
    let (needs, machine) = (&case.workload().machine, case.machine);
    let vcpu = machine.vcpu.and_then(|has| short(u64::from(has), u64::from(needs.vcpu)));
    let ram = machine.ram.and_then(|has| short(has, needs.memory));
    vcpu.max(ram)
}

pub(super) fn describe_machine(case: &Case) -> String {
    let (needs, machine) = (&case.workload().machine, case.machine);
    let vcpu = machine.vcpu.map_or_else(|| "?".to_owned(), |has| has.to_string());
    let ram = machine.ram.map_or_else(|| "?".to_owned(), binary_bytes);
    format!("{vcpu} vCPU and {ram} of memory, {} and {} needed", needs.vcpu, binary_bytes(needs.memory))
}

pub(super) fn driver(case: &Case) -> Option<u64> {
    unless(case.machine.driver.is_none_or(|driver| case.terms.provides(driver)))
}

pub(super) fn describe_driver(case: &Case) -> String {
    let Some(driver) = case.machine.driver else { return "the service provides the driver".to_owned() };
    let kind = match driver {
        SizeDriver::Cuda => "CUDA",
        SizeDriver::Grid => "GRID",
        SizeDriver::GridV20 => "GRID 20",
        SizeDriver::Rocm | SizeDriver::Amd | SizeDriver::AmdWindows => "AMD",
    };
    let name = case.terms.kind.name();
    if case.terms.provides(driver) {
        return format!("requires a {kind} driver, which {name} provides");
    }
    format!("requires a {kind} driver; {name} provides another, which does not install there")
}

pub(super) fn verdict(case: &Case) -> Option<u64> {
    unless(case.verdict().is_none_or(|verdict| verdict.runs))
}

pub(super) fn describe_verdict(case: &Case) -> String {
    match case.verdict() {
        None => "the image was not checked".to_owned(),
        Some(verdict) if verdict.runs && verdict.jit => {
            "the image runs there after JIT compilation".to_owned()
        }
        Some(verdict) if verdict.runs => "the image runs there".to_owned(),
        Some(verdict) if verdict.code == codes::IMAGE_DOES_NOT_RUN => {
            format!("the image does not run there: {}", verdict.reason)
        }
        Some(verdict) => format!("the image does not run there: {} ({})", verdict.reason, verdict.code),
    }
}
