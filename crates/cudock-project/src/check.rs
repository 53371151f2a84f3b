//! What a file says that cannot all be so.
//!
//! Only what is wrong whatever else is known is judged here; names of regions, cards and services are judged by those
//! who know them, and what is missing by those who know the flags too.

use crate::places::Places;
use crate::schema::{Manifest, SpotUse, WorkloadKind};
use crate::{ProjectError, Span};

/// Formats of numbers that a workload may ask for, as `needs.precision` names them.
pub const PRECISIONS: [&str; 9] = ["fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4", "int4"];

/// The first contradiction, or nothing.
pub(crate) fn check(manifest: &Manifest, places: &Places) -> Result<(), ProjectError> {
    kinds_of_work(manifest, places)?;
    times(manifest, places)?;
    counts(manifest, places)?;
    sizes(manifest, places)?;
    numbers(manifest, places)?;
    deadline(manifest, places)?;
    spot(manifest, places)?;
    needs(manifest, places)
}

/// Keys that each say what kind of work it is.
const JOB: [&str; 3] = ["workload.duration", "workload.items", "workload.item_time"];
const SWEEP: [&str; 2] = ["workload.trials", "workload.trial_time"];
const SERVE: [&str; 5] =
    ["workload.rate", "workload.replica_rate", "workload.bench", "workload.fill", "workload.cold_starts"];

fn kinds_of_work(manifest: &Manifest, places: &Places) -> Result<(), ProjectError> {
    let kinds: [(&str, WorkloadKind, &[&str]); 3] = [
        ("a job", WorkloadKind::Job, &JOB),
        ("a sweep", WorkloadKind::Sweep, &SWEEP),
        ("a service", WorkloadKind::Serve, &SERVE),
    ];
    let used: Vec<_> = kinds
        .iter()
        .filter_map(|(what, kind, keys)| Some((keys.iter().find(|key| places.has(key))?, what, kind)))
        .collect();
    if let [(one, what, _), (other, other_what, _), ..] = used.as_slice() {
        let last = places.last_of(&[one, other]).unwrap_or(other);
        let problem =
            format!("`{}` is for {what} and `{}` for {other_what}: keep one", bare(one), bare(other));
        return Err(places.wrong_key(last, problem));
    }
    if places.has("workload.kind")
        && let Some((key, what, kind)) = used.first()
        && **kind != manifest.workload.kind
    {
        let problem = format!("`{}` is for {what}, and `kind` is another", bare(key));
        return Err(places.wrong_key(key, problem));
    }
    let pairs = [
        ("workload.duration", "workload.items", "one run has no items: keep one of the two"),
        ("workload.replica_rate", "workload.bench", "both say what one instance answers: keep one"),
    ];
    for (one, other, why) in pairs {
        if places.has(one) && places.has(other) {
            let last = places.last_of(&[one, other]).unwrap_or(other);
            return Err(places.wrong_key(last, format!("`{}` and `{}`: {why}", bare(one), bare(other))));
        }
    }
    Ok(())
}

fn bare(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

fn times(manifest: &Manifest, places: &Places) -> Result<(), ProjectError> {
    let work = &manifest.workload;
    let spot = manifest.deploy.spot.unwrap_or_default();
    let times = [
        ("workload.duration", work.duration),
        ("workload.item_time", work.item_time),
        ("workload.trial_time", work.trial_time),
        ("workload.deadline", work.deadline),
        ("deploy.spot.checkpoint_every", spot.checkpoint_every),
    ];
    for (key, time) in times {
        if time.is_some_and(|time| time.0.is_zero()) {
            return Err(places.wrong_value(key, format!("`{}` is no time at all", bare(key)), None));
        }
    }
    Ok(())
}

fn counts(manifest: &Manifest, places: &Places) -> Result<(), ProjectError> {
    let (work, needs) = (&manifest.workload, &manifest.needs);
    let counts = [
        ("workload.items", work.items),
        ("workload.trials", work.trials.map(u64::from)),
        ("workload.at_once", work.at_once.map(u64::from)),
        ("workload.batch", work.batch.map(u64::from)),
        ("needs.gpus", needs.gpus.map(u64::from)),
        ("needs.nodes", needs.nodes.map(u64::from)),
        ("needs.cpu", needs.cpu.map(u64::from)),
        ("data.passes", manifest.data.passes.map(u64::from)),
    ];
    for (key, count) in counts {
        if count == Some(0) {
            let problem = format!("`{}` is at least 1; leave it out if it does not matter", bare(key));
            return Err(places.wrong_value(key, problem, None));
        }
    }
    Ok(())
}

fn sizes(manifest: &Manifest, places: &Places) -> Result<(), ProjectError> {
    let sizes = [
        ("needs.gpu_memory", manifest.needs.gpu_memory.map(|size| size.0)),
        ("needs.memory", manifest.needs.memory.map(|size| size.0)),
        ("data.size", manifest.data.size.map(|size| size.0)),
        ("data.rate", manifest.data.rate.map(|rate| rate.0)),
        ("data.read_size", manifest.data.read_size.map(|size| size.0)),
        ("start.image_size", manifest.start.image_size.map(|size| size.0)),
    ];
    for (key, size) in sizes {
        if size == Some(0) {
            let problem = format!("`{}` is nothing; leave it out if it does not matter", bare(key));
            return Err(places.wrong_value(key, problem, None));
        }
    }
    let unpacked = manifest.start.image_unpacked.zip(manifest.start.image_size);
    if unpacked.is_some_and(|(unpacked, size)| unpacked < size) {
        let problem = "an image takes more space unpacked than `image_size`, not less";
        return Err(places.wrong_value("start.image_unpacked", problem, None));
    }
    Ok(())
}

fn numbers(manifest: &Manifest, places: &Places) -> Result<(), ProjectError> {
    let work = &manifest.workload;
    if work.fill.is_some_and(|fill| !(1..=100).contains(&fill)) {
        return Err(places.wrong_value("workload.fill", "`fill` is from 1 to 100 percent", None));
    }
    if work.replica_rate.is_some_and(|rate| rate.0 <= 0.0) {
        let problem = "an instance that answers nothing is of no use";
        return Err(places.wrong_value("workload.replica_rate", problem, None));
    }
    for (gpu, speed) in &work.speeds {
        if !(speed.is_finite() && *speed > 0.0) {
            let problem = format!("`{speed}` is no speed; write how many times as fast it is, as 0.5 or 2");
            return Err(places.wrong_value(&format!("workload.speeds.{gpu}"), problem, None));
        }
    }
    if !work.speeds.is_empty() && work.measured_on.is_none() {
        let problem = "`speeds` are relative to a GPU: name it with `measured_on`";
        return Err(places.wrong_key("workload.speeds", problem));
    }
    if let Some(budget) = manifest.deploy.budget.filter(|budget| !(budget.is_finite() && *budget > 0.0)) {
        let problem = format!("`{budget}` is no budget; write US dollars, as 100 or 12.5");
        return Err(places.wrong_value("deploy.budget", problem, None));
    }
    Ok(())
}

/// What takes longer than the deadline cannot be done, unless another GPU may be faster.
fn deadline(manifest: &Manifest, places: &Places) -> Result<(), ProjectError> {
    let work = &manifest.workload;
    let Some(Span(deadline)) = work.deadline else { return Ok(()) };
    if let Some(key) = SERVE.iter().find(|key| places.has(key)) {
        let problem = format!("a service has no end: `deadline` and `{}` contradict each other", bare(key));
        return Err(places.wrong_key("workload.deadline", problem));
    }
    if work.measured_on.is_some() {
        return Ok(());
    }
    let pieces = [("a trial", work.trial_time), ("an item", work.item_time), ("the job", work.duration)];
    for (what, time) in pieces {
        if let Some(Span(time)) = time.filter(|time| time.0 > deadline) {
            let problem = format!(
                "the deadline is shorter than {what}, which takes {time:?}; \
                 name the GPU that was measured with `measured_on` if a faster one may do it"
            );
            return Err(places.wrong_value("workload.deadline", problem, None));
        }
    }
    Ok(())
}

fn spot(manifest: &Manifest, places: &Places) -> Result<(), ProjectError> {
    let Some(spot) = manifest.deploy.spot else { return Ok(()) };
    let options = [
        ("deploy.spot.evictions", spot.evictions.is_some()),
        ("deploy.spot.checkpoint_every", spot.checkpoint_every.is_some()),
        ("deploy.spot.checkpoint_takes", spot.checkpoint_takes.is_some()),
    ];
    if spot.allowed == SpotUse::No
        && let Some((key, _)) = options.iter().find(|(_, given)| *given)
    {
        let problem = format!("`{}` is for Spot machines, and `allow = false` rules them out", bare(key));
        return Err(places.wrong_key(key, problem));
    }
    if let Some(rate) = spot.evictions.filter(|rate| !(rate.is_finite() && *rate >= 0.0)) {
        let problem = format!("`{rate}` is no rate; write evictions an hour, as 0.05");
        return Err(places.wrong_value("deploy.spot.evictions", problem, None));
    }
    if spot.checkpoint_takes.is_some() && spot.checkpoint_every.is_none() {
        let problem = "`checkpoint_takes` needs `checkpoint_every`";
        return Err(places.wrong_key("deploy.spot.checkpoint_takes", problem));
    }
    Ok(())
}

fn needs(manifest: &Manifest, places: &Places) -> Result<(), ProjectError> {
    let needs = &manifest.needs;
    if let Some(range) = needs.capability
        && let (Some(least), Some(greatest)) = (range.least, range.greatest)
        && least > greatest
    {
        let problem = format!("no GPU has a compute capability of at least {least} and at most {greatest}");
        return Err(places.wrong_value("needs.capability", problem, None));
    }
    if let Some(precision) = needs.precision.as_deref().filter(|precision| !PRECISIONS.contains(precision)) {
        let near = cudock_base::suggest::closest(precision, PRECISIONS);
        let problem = format!("no number format is called `{precision}`");
        return Err(places.wrong_value("needs.precision", problem, near.map(ToString::to_string)));
    }
    if needs.nvlink == Some(true) && needs.gpus == Some(1) {
        let problem = "NVLink joins the GPUs of an instance, and `gpus = 1` leaves nothing to join";
        return Err(places.wrong_key("needs.nvlink", problem));
    }
    Ok(())
}
