//! Rules about a size: what it is, what it has, and whether the image runs on it.

use cudock_base::Arch;
use cudock_facts::tables::{Lifecycle, SizeDriver};

use super::{NO_MEASURE, Rule, short, unless};
use crate::availability::{Proof, Standing};
use crate::catalog::bare;
use crate::codes;
use crate::machine::Machine;
use crate::question::Case;
use crate::words::{bytes, gb, gpus, one_of};

/// Whether it is wanted, can be had and is known.
pub(super) const KNOWN: [Rule; 4] = [
    Rule { code: codes::NOT_WANTED, gap: wanted, words: wanted_words },
    Rule { code: codes::NOT_WANTED, gap: model, words: model_words },
    Rule { code: codes::SIZE_RETIRED, gap: retired, words: retired_words },
    Rule { code: codes::UNDOCUMENTED_SIZE, gap: documented, words: documented_words },
];
/// What sort of machine it is.
pub(super) const KIND: [Rule; 4] = [
    Rule { code: codes::NOT_NVIDIA, gap: vendor, words: vendor_words },
    Rule { code: codes::SIZE_NOT_OFFERED, gap: offered, words: offered_words },
    Rule { code: codes::ARCHITECTURE, gap: architecture, words: architecture_words },
    Rule { code: codes::CAPABILITY, gap: capability, words: capability_words },
];
/// What it has.
pub(super) const FIGURES: [Rule; 4] = [
    Rule { code: codes::GPU_MEMORY, gap: memory, words: memory_words },
    Rule { code: codes::GPU_COUNT, gap: count, words: count_words },
    Rule { code: codes::INTERCONNECT, gap: links, words: links_words },
    Rule { code: codes::MACHINE_TOO_SMALL, gap: around, words: around_words },
];
/// Whether the image runs there.
pub(super) const DRIVER: [Rule; 2] = [
    Rule { code: codes::DRIVER, gap: driver, words: driver_words },
    Rule { code: codes::IMAGE_DOES_NOT_RUN, gap: verdict, words: verdict_words },
];

fn wanted(case: &Case) -> Option<u64> {
    let sizes = &case.workload().wishes.sizes;
    let name = bare(&case.machine.name);
    unless(sizes.is_empty() || sizes.iter().any(|wanted| bare(wanted).eq_ignore_ascii_case(name)))
}

fn wanted_words(case: &Case) -> String {
    let sizes = &case.workload().wishes.sizes;
    if sizes.is_empty() { "any size will do".to_owned() } else { format!("wanted sizes: {}", one_of(sizes)) }
}

fn model(case: &Case) -> Option<u64> {
    let models = &case.workload().gpu.models;
    // A size whose GPU nobody knows is told apart by the rule for that.
    let Some(gpu) = &case.machine.gpu else { return None };
    unless(models.is_empty() || models.iter().any(|id| id.eq_ignore_ascii_case(gpu)))
}

fn model_words(case: &Case) -> String {
    let models = &case.workload().gpu.models;
    let gpu = case.machine.gpu_name();
    if models.is_empty() {
        format!("GPU {gpu}; any will do")
    } else {
        format!("GPU {gpu}; wanted: {}", one_of(models))
    }
}

fn retired(case: &Case) -> Option<u64> {
    let machine = case.machine;
    let gone = match machine.lifecycle {
        Lifecycle::PreviewEnded => true,
        Lifecycle::Retired => machine.last_day().is_none_or(|day| day <= case.workload().begins),
        _ => machine.last_day().is_some_and(|day| day <= case.workload().begins) && machine.ends.is_some(),
    };
    unless(!gone)
}

fn retired_words(case: &Case) -> String {
    let machine = case.machine;
    let instead = machine.replacement.as_ref().map(|other| format!("; instead: {other}")).unwrap_or_default();
    match (retired(case), machine.ends) {
        (Some(_), _) if machine.lifecycle == Lifecycle::PreviewEnded => {
            format!("its preview has ended{instead}")
        }
        (Some(_), Some(_)) => {
            let day = machine.last_day().map(|day| day.to_string()).unwrap_or_default();
            format!("retired on {day}{instead}")
        }
        (Some(_), None) => format!("retired{instead}"),
        (None, Some(day)) => format!("ends on {day} in most regions"),
        (None, None) => "no end of it is announced".to_owned(),
    }
}

fn documented(case: &Case) -> Option<u64> {
    unless(missing(case.machine).is_none())
}

fn documented_words(case: &Case) -> String {
    missing(case.machine).unwrap_or("documented").to_owned()
}

fn missing(machine: &Machine) -> Option<&'static str> {
    if machine.lifecycle == Lifecycle::Announced {
        return Some("announced, and not yet to be had");
    }
    if !machine.documented {
        return Some("no page describes it: only a price was seen");
    }
    let known = machine.nvidia.is_some()
        && machine.gpus.is_some()
        && machine.gpu_memory.is_some()
        && machine.vcpu.is_some()
        && machine.ram.is_some();
    (!known).then_some("the tables lack its GPU, memory or processors")
}

fn vendor(case: &Case) -> Option<u64> {
    unless(case.machine.nvidia != Some(false))
}

fn vendor_words(case: &Case) -> String {
    let gpu = case.machine.gpu_name();
    match case.machine.nvidia {
        Some(false) => format!("{gpu} is not made by NVIDIA and runs no CUDA"),
        Some(true) => format!("{gpu} is made by NVIDIA"),
        None => format!("who makes {gpu} is not known"),
    }
}

fn offered(case: &Case) -> Option<u64> {
    unless(not_offered(case).is_none())
}

fn offered_words(case: &Case) -> String {
    not_offered(case).unwrap_or_else(|| taken(case))
}

/// What says that the service takes the size.
fn taken(case: &Case) -> String {
    let name = case.terms.kind.name();
    let day = case.support().map(|row| format!(" (source of {})", row.as_of)).unwrap_or_default();
    match case.standing() {
        Standing::Proven(Proof::NotListed) => format!("no source says that {name} takes it{day}"),
        Standing::Proven(Proof::Indirect) => format!("{name} takes it, by indirect evidence{day}"),
        _ => format!("{name} takes it{day}"),
    }
}

fn not_offered(case: &Case) -> Option<String> {
    let (machine, kind) = (case.machine, case.terms.kind);
    let architectures = case.terms.row.map(|row| row.cpu_arch.as_slice()).unwrap_or_default();
    let standing = case.standing();
    if standing == Standing::Refused {
        let row = case.support();
        let note =
            row.and_then(|row| row.note.as_deref()).map(|note| format!(": {note}")).unwrap_or_default();
        let day = row.map(|row| format!(" (source of {})", row.as_of)).unwrap_or_default();
        return Some(format!("{} does not take its series{day}{note}", kind.name()));
    }
    if machine.confidential && standing == Standing::Proven(Proof::NotListed) {
        let name = kind.name();
        return Some(format!("a confidential VM, which {name} is not documented to make"));
    }
    if !machine.architecture.is_empty() && !architectures.iter().any(|known| known == &machine.architecture) {
        let offered = one_of(architectures);
        return Some(format!("{} has {offered} machines, this is {}", kind.name(), machine.architecture));
    }
    let nowhere =
        machine.profile.is_some() && !machine.offered_in.iter().any(|region| case.question.allows(*region));
    nowhere.then(|| "not offered in the regions allowed".to_owned())
}

fn architecture(case: &Case) -> Option<u64> {
    let needed = case.workload().machine.architecture.as_deref();
    unless(needed.is_none_or(|needed| Arch::to_kernel(needed) == Arch::to_kernel(&case.machine.architecture)))
}

fn architecture_words(case: &Case) -> String {
    let has = &case.machine.architecture;
    match &case.workload().machine.architecture {
        Some(needed) => format!("processor {has}, the image is for {needed}"),
        None => format!("processor {has}, the image is for any"),
    }
}

fn capability(case: &Case) -> Option<u64> {
    let needs = &case.workload().gpu;
    if needs.least_capability.is_none() && needs.greatest_capability.is_none() {
        return None;
    }
    let Some(has) = case.machine.capability else { return Some(NO_MEASURE) };
    let low = needs.least_capability.is_none_or(|least| has >= least);
    unless(low && needs.greatest_capability.is_none_or(|greatest| has <= greatest))
}

fn capability_words(case: &Case) -> String {
    let needs = &case.workload().gpu;
    let has = case.machine.capability.map_or_else(|| "an unknown one".to_owned(), |has| has.to_string());
    let needed = match (needs.least_capability, needs.greatest_capability) {
        (Some(least), Some(greatest)) if least == greatest => format!("the program runs on {least} alone"),
        (Some(least), Some(greatest)) => format!("the program runs on {least} to {greatest}"),
        (Some(least), None) => format!("the program needs {least} or above"),
        (None, Some(greatest)) => format!("the program runs on {greatest} and below"),
        (None, None) => "any will do".to_owned(),
    };
    format!("compute capability {has}; {needed}")
}

fn memory(case: &Case) -> Option<u64> {
    // A missing figure is told by the rule for that.
    short(case.machine.gpu_memory?, case.workload().gpu.memory)
}

fn memory_words(case: &Case) -> String {
    let machine = case.machine;
    let each = machine.gpu_memory.map_or_else(|| "unknown memory".to_owned(), gb);
    let of_each = if machine.gpus.is_some_and(|count| count > 1000) { "each of " } else { "" };
    let needed = match case.workload().gpu.memory {
        0 => "any will do".to_owned(),
        bytes => format!("{} needed", gb(bytes)),
    };
    format!("{each} on {of_each}{}, {needed}", gpus(machine))
}

fn count(case: &Case) -> Option<u64> {
    let needed = case.workload().gpu.per_instance;
    let has = case.machine.gpus?;
    match needed {
        0 => Some(NO_MEASURE),
        1 if has > 0 => None,
        _ => short(u64::from(has), u64::from(needed) * 1000),
    }
}

fn count_words(case: &Case) -> String {
    let needed = case.workload().gpu.per_instance;
    if needed == 0 {
        return "the work asks for 0 GPUs in an instance; ask for 1 or more".to_owned();
    }
    format!("{} in an instance, {needed} needed", gpus(case.machine))
}

fn links(case: &Case) -> Option<u64> {
    let (needs, machine) = (&case.workload().gpu, case.machine);
    let nvlink = !needs.nvlink || machine.nvlink.is_some();
    unless(nvlink && (!needs.infiniband || machine.infiniband == Some(true)))
}

fn links_words(case: &Case) -> String {
    let (needs, machine) = (&case.workload().gpu, case.machine);
    let mut words = Vec::new();
    if needs.nvlink || machine.nvlink.is_some() {
        words.push(machine.nvlink.clone().unwrap_or_else(|| "no NVLink".to_owned()));
    }
    match (machine.infiniband == Some(true), machine.infiniband_gbps) {
        (true, Some(gbps)) => words.push(format!("InfiniBand {gbps} Gb/s")),
        (true, None) => words.push("InfiniBand".to_owned()),
        (false, _) if needs.infiniband => words.push("no InfiniBand".to_owned()),
        _ => {}
    }
    let needed = match (needs.nvlink, needs.infiniband) {
        (true, true) => "NVLink and InfiniBand needed",
        (true, false) => "NVLink needed",
        (false, true) => "InfiniBand needed",
        (false, false) => "no link between GPUs or instances needed",
    };
    words.push(needed.to_owned());
    words.join(", ")
}

fn around(case: &Case) -> Option<u64> {
    let (needs, machine) = (&case.workload().machine, case.machine);
    let vcpu = machine.vcpu.and_then(|has| short(u64::from(has), u64::from(needs.vcpu)));
    let ram = machine.ram.and_then(|has| short(has, needs.memory));
    vcpu.max(ram)
}

fn around_words(case: &Case) -> String {
    let (needs, machine) = (&case.workload().machine, case.machine);
    let vcpu = machine.vcpu.map_or_else(|| "?".to_owned(), |has| has.to_string());
    let ram = machine.ram.map_or_else(|| "?".to_owned(), bytes);
    format!("{vcpu} vCPU and {ram} of memory, {} and {} needed", needs.vcpu, bytes(needs.memory))
}

fn driver(case: &Case) -> Option<u64> {
    unless(case.machine.driver.is_none_or(|driver| case.terms.brings(driver)))
}

fn driver_words(case: &Case) -> String {
    let Some(driver) = case.machine.driver else { return "the service brings the driver".to_owned() };
    let kind = match driver {
        SizeDriver::Cuda => "CUDA",
        SizeDriver::Grid => "GRID",
        SizeDriver::GridV20 => "GRID 20",
        SizeDriver::Rocm | SizeDriver::Amd | SizeDriver::AmdWindows => "AMD",
    };
    let name = case.terms.kind.name();
    if case.terms.brings(driver) {
        return format!("takes a {kind} driver, which {name} has");
    }
    format!("takes a {kind} driver; {name}'s images bring another kind, which does not install there")
}

fn verdict(case: &Case) -> Option<u64> {
    unless(case.verdict().is_none_or(|verdict| verdict.runs))
}

fn verdict_words(case: &Case) -> String {
    match case.verdict() {
        None => "whether the image runs there was not checked".to_owned(),
        Some(verdict) if verdict.runs && verdict.jit => "the image runs there after compiling".to_owned(),
        Some(verdict) if verdict.runs => "the image runs there".to_owned(),
        Some(verdict) if verdict.code == codes::IMAGE_DOES_NOT_RUN => {
            format!("the image does not run there: {}", verdict.reason)
        }
        Some(verdict) => format!("the image does not run there: {} ({})", verdict.reason, verdict.code),
    }
}
