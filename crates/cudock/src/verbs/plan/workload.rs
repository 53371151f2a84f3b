//! The workload as it was understood, and its assumptions.

use cudock_base::format::{bytes, duration, thousands};
use cudock_plan::{Access, Listed, PerSecond, Priority, Work, format};

use super::View;
use super::brief::price_dates;
use crate::output::{self, BOLD, DIM, line, styled};

pub(super) fn print(view: &View<'_>, placements: &[Listed]) {
    let title = format!("{}: ", view.title);
    let text = output::wrapped("", &format!("{title}{}", work(view)));
    line(format!("{}{}", styled(BOLD, &title), text.get(title.len()..).unwrap_or_default()));
    let fields = [
        ("GPU", gpu(view)),
        ("machine", machine(view)),
        ("data", data(view)),
        ("start", start(view)),
        ("Spot", spot(view)),
        ("begins", view.plan.workload().begins.to_string()),
        ("limits", constraints(view)),
        ("prices", prices(view, placements)),
    ];
    for (name, text) in fields {
        if !text.is_empty() {
            line(output::wrapped(&format!("  {name:8} "), &text));
        }
    }
    let assumptions = &view.plan.workload().assumptions;
    if !assumptions.is_empty() {
        line(format!("\n{}", styled(BOLD, "Assumptions")));
        let column = assumptions.iter().map(|one| one.about.chars().count()).max().unwrap_or(0);
        for one in assumptions {
            let text = format!("{} ({})", one.value, one.source);
            line(styled(DIM, &output::wrapped(&format!("  {:column$}  ", one.about), &text)));
        }
    }
}

fn work(view: &View<'_>) -> String {
    let on =
        view.plan.workload().gpu.measured_on.as_ref().map_or_else(String::new, |gpu| format!(" on {gpu}"));
    match &view.plan.workload().work {
        Work::Job { duration: length } => format!("one job of {}{on}", duration(*length)),
        Work::Items { items, each, at_once } => {
            let at_once = at_once.map_or_else(String::new, |count| format!(", at most {count} at a time"));
            format!("{} items of {}{on} each{at_once}", thousands(&items.to_string()), duration(*each))
        }
        Work::Sweep { trials, at_once, each } => {
            format!("{trials} trials of {}{on} each, {at_once} at a time", duration(*each))
        }
        Work::Serve { load, replica_rate, target_percent } => format!(
            "serving, {}; one instance answers {}/s{on}, target utilization {target_percent} %",
            format::load(load),
            format::rate(*replica_rate)
        ),
    }
}

fn gpu(view: &View<'_>) -> String {
    let gpu = &view.plan.workload().gpu;
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
    parts.extend(gpu.nvlink.then(|| "connected by NVLink".to_owned()));
    let joined = if gpu.infiniband { " connected by InfiniBand" } else { "" };
    match gpu.instances {
        0 | 1 => parts.extend(gpu.infiniband.then(|| "InfiniBand".to_owned())),
        several => parts.push(format!("in each of {several} machines{joined}")),
    }
    parts.join(", ")
}

fn machine(view: &View<'_>) -> String {
    let machine = &view.plan.workload().machine;
    let vcpu = (machine.vcpu > 0).then(|| format!("{} vCPU", machine.vcpu));
    let memory = (machine.memory > 0).then(|| format!("{} of memory", bytes(machine.memory)));
    let parts: Vec<String> = vcpu.into_iter().chain(memory).chain(machine.architecture.clone()).collect();
    parts.join(", ")
}

fn data(view: &View<'_>) -> String {
    let Some(data) = &view.plan.workload().data else { return String::new() };
    let region = data.region.as_ref().map_or_else(String::new, |region| format!(" in {region}"));
    let passes = |passes: u32| if passes == 1 { "once".to_owned() } else { format!("{passes} times") };
    let access = match data.access {
        Access::Stream { passes: count } => format!("read {} from there", passes(count)),
        Access::Stage => "copied to the local disk first".to_owned(),
        Access::Either { passes: count } => format!("read {}, or copied first", passes(count)),
    };
    let mut parts = vec![format!("{} in {}{region}, {access}", bytes(data.bytes), data.storage)];
    parts.extend(data.rate_per_gpu.map(|rate| format!("a GPU reads {}/s", bytes(rate))));
    parts.extend((data.leaves > 0).then(|| format!("{} leave Azure", bytes(data.leaves))));
    parts.join("; ")
}

fn start(view: &View<'_>) -> String {
    let start = &view.plan.workload().start;
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

fn spot(view: &View<'_>) -> String {
    let Some(spot) = &view.plan.workload().spot else { return "no: eviction is not allowed".to_owned() };
    let evictions = format::rate(PerSecond { millis: spot.evictions_per_hour });
    let checkpoints = match spot.checkpoint_every {
        Some(every) => format!("a checkpoint every {}", duration(every)),
        None => "no checkpoints".to_owned(),
    };
    format!("{evictions} evictions per hour, {checkpoints}")
}

fn constraints(view: &View<'_>) -> String {
    let constraints = &view.plan.workload().constraints;
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
    let for_what = if view.plan.serves() { " per month" } else { "" };
    parts.extend(constraints.budget.map(|budget| format!("at most {}{for_what}", format::dollars(budget))));
    parts.extend(
        (view.plan.serves() && !constraints.cold_starts_allowed).then(|| "no cold starts".to_owned()),
    );
    parts.join("; ")
}

/// The age of the prices in the table, and of those that are shown.
fn prices(view: &View<'_>, placements: &[Listed]) -> String {
    let as_of = view.plan.facts().prices().newest();
    let read = price_dates(placements).map(|dates| format!("; those below are of {dates}"));
    let age = view.today.days_since(as_of);
    let days = if age == 1 { "day" } else { "days" };
    format!("USD without tax, newest of {as_of} ({age} {days} old){}", read.unwrap_or_default())
}
