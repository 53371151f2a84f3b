//! A workload in words, field by field.

use std::time::Duration;

use cudock_base::text::format::{bytes, duration, thousands};
use cudock_facts::tables::DataAccess;

use crate::report::format;
use crate::workload::{Priority, Work, Workload};

impl Workload {
    /// The work: "one job of 40 min on T4".
    pub fn work_text(&self) -> String {
        work(self)
    }

    /// Everything else that was given, inferred or assumed, each with its name; a text may be empty.
    pub fn field_texts(&self) -> [(&'static str, String); 7] {
        [
            ("GPU", gpu(self)),
            ("machine", machine(self)),
            ("data", data(self)),
            ("start", start(self)),
            ("Spot", spot(self)),
            ("begins", self.begins.to_string()),
            ("limits", constraints(self)),
        ]
    }
}

fn serves(workload: &Workload) -> bool {
    matches!(workload.work, Work::Serve { .. })
}

fn work(workload: &Workload) -> String {
    let on = workload.gpu.measured_on.as_ref().map_or_else(String::new, |gpu| format!(" on {gpu}"));
    match &workload.work {
        Work::Job { duration: length } => format!("one job of {}{on}", duration(*length)),
        Work::Items { items, each, at_once } => {
            let at_once = at_once.map_or_else(String::new, |count| format!(", at most {count} at a time"));
            format!("{} items of {}{on} each{at_once}", thousands(&items.to_string()), duration(*each))
        }
        Work::Sweep { trials, at_once, each } => {
            format!("{trials} trials of {}{on} each, {at_once} at a time", duration(*each))
        }
        Work::Serve { load, replica_rate, target_percent } => format!(
            "serving, {}; one instance answers {}{on}, target utilization {target_percent} %",
            format::load(load),
            replica_rate
        ),
    }
}

fn gpu(workload: &Workload) -> String {
    let gpu = &workload.gpu;
    let memory = match gpu.memory {
        0 => "any memory".to_owned(),
        memory => format!("{} or more", bytes(memory)),
    };
    let mut parts = vec![format!("{} with {memory}", gpu.per_instance)];
    parts.extend((!gpu.models.is_empty()).then(|| format!("{} only", gpu.models.join(" or "))));
    parts.extend(match (gpu.least_capability, gpu.greatest_capability) {
        (Some(least), Some(greatest)) if least == greatest => Some(format!("compute capability {least}")),
        (Some(least), Some(greatest)) => Some(format!("compute capability {least} to {greatest}")),
        (Some(least), None) => Some(format!("compute capability {least} or more")),
        (None, Some(greatest)) => Some(format!("compute capability {greatest} or less")),
        (None, None) => None,
    });
    parts.extend(gpu.precision.map(|format| format!("calculating in {format}")));
    parts.extend(gpu.nvlink.then(|| "connected by NVLink".to_owned()));
    let joined = if gpu.infiniband { " connected by InfiniBand" } else { "" };
    match gpu.instances {
        0 | 1 => parts.extend(gpu.infiniband.then(|| "InfiniBand".to_owned())),
        several => parts.push(format!("in each of {several} machines{joined}")),
    }
    parts.join(", ")
}

fn machine(workload: &Workload) -> String {
    let machine = &workload.machine;
    let vcpu = (machine.vcpu > 0).then(|| format!("{} vCPU", machine.vcpu));
    let memory = (machine.memory > 0).then(|| format!("{} of memory", bytes(machine.memory)));
    let architecture = machine.architecture.as_ref().map(ToString::to_string);
    let parts: Vec<String> = vcpu.into_iter().chain(memory).chain(architecture).collect();
    parts.join(", ")
}

fn data(workload: &Workload) -> String {
    let Some(data) = &workload.data else { return String::new() };
    let region = data.region.as_ref().map_or_else(String::new, |region| format!(" in {region}"));
    let passes = if data.passes == 1 { "once".to_owned() } else { format!("{} times", data.passes) };
    let access = match data.access {
        DataAccess::Stream => format!("read {passes} from there"),
        DataAccess::Stage => "copied to the local disk first".to_owned(),
        DataAccess::Either => format!("read {passes}, or copied first"),
    };
    let mut parts = vec![format!("{} in {}{region}, {access}", bytes(data.bytes), data.storage)];
    parts.extend(data.rate_per_gpu.map(|rate| format!("a GPU reads {}/s", bytes(rate))));
    parts.extend((data.leaves > 0).then(|| format!("{} leave Azure", bytes(data.leaves))));
    parts.join("; ")
}

fn start(workload: &Workload) -> String {
    let start = &workload.start;
    let mut parts = Vec::new();
    if let Some(image) = &start.image {
        let (packed, unpacked) = (bytes(image.compressed), bytes(image.unpacked));
        parts.push(format!("image of {packed} ({unpacked} unpacked)"));
    }
    if start.weights > 0 {
        parts.push(format!("{} of weights", bytes(start.weights)));
    }
    if !start.ready.is_zero() {
        parts.push(format!("ready {} after the start", duration(start.ready)));
    }
    if !start.jit.is_zero() {
        parts.push(format!("{} of JIT compilation", duration(start.jit)));
    }
    parts.join(", ")
}

fn spot(workload: &Workload) -> String {
    let Some(spot) = &workload.spot else { return "no: eviction is not allowed".to_owned() };
    let evictions = format::short(spot.evictions.times_in(Duration::from_secs(3600)));
    let checkpoints = match spot.checkpoint_every {
        Some(every) => format!("a checkpoint every {}", duration(every)),
        None => "no checkpoints".to_owned(),
    };
    format!("{evictions} evictions per hour, {checkpoints}")
}

fn constraints(workload: &Workload) -> String {
    let constraints = &workload.constraints;
    let mut parts = Vec::new();
    let listed =
        |what: &str, names: &[String]| (!names.is_empty()).then(|| format!("{what} {}", names.join(", ")));
    parts.extend(listed("in", &constraints.regions));
    parts.extend(listed("on", &constraints.services));
    parts.extend(listed("size", &constraints.sizes));
    parts.extend(constraints.priority.map(|priority| match priority {
        Priority::Regular => "no Spot".to_owned(),
        Priority::Spot => "Spot only".to_owned(),
    }));
    let management = constraints.management.name();
    parts.extend((management != "own").then(|| format!("at least {management}")));
    parts.extend(constraints.deadline.map(|deadline| format!("finished within {}", duration(deadline))));
    let for_what = if serves(workload) { " per month" } else { "" };
    parts.extend(constraints.budget.map(|budget| format!("at most {}{for_what}", format::dollars(budget))));
    parts.extend((serves(workload) && !constraints.cold_starts_allowed).then(|| "no cold starts".to_owned()));
    parts.join("; ")
}
