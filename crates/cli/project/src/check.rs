//! Contradictions in a `cudock.toml`.
//!
//! Only what is wrong regardless of anything else is rejected here. Names of regions, GPUs and services are checked by
//! those who know them, and missing keys by those who know the flags, too.

use crate::manifest_text::ManifestText;
use crate::schema::{Manifest, SpotUse, WorkloadKind};
use crate::{ProjectError, TimeSpan};

/// Returns the first contradiction as an error.
pub(crate) fn check(manifest: &Manifest, text: &ManifestText) -> Result<(), ProjectError> {
    kinds_of_work(manifest, text)?;
    zeros(manifest, text)?;
    numbers(manifest, text)?;
    deadline(manifest, text)?;
    spot(manifest, text)?;
    needs(manifest, text)?;
    image(manifest, text)
}

/// Keys that each imply the kind of work.
const JOB: [&str; 3] = ["workload.duration", "workload.items", "workload.item_time"];
const SWEEP: [&str; 2] = ["workload.trials", "workload.trial_time"];
const SERVE: [&str; 5] =
    ["workload.rate", "workload.replica_rate", "workload.bench", "workload.fill", "workload.cold_starts"];

fn kinds_of_work(manifest: &Manifest, text: &ManifestText) -> Result<(), ProjectError> {
    let kinds: [(&str, WorkloadKind, &[&str]); 3] = [
        ("a job", WorkloadKind::Job, &JOB),
        ("a sweep", WorkloadKind::Sweep, &SWEEP),
        ("a service", WorkloadKind::Serve, &SERVE),
    ];
    let used: Vec<_> = kinds
        .iter()
        .filter_map(|(what, kind, keys)| Some((keys.iter().find(|key| text.has(key))?, what, kind)))
        .collect();
    if let [(one, what, _), (other, other_what, _), ..] = used.as_slice() {
        let last = text.last_of(&[one, other]).unwrap_or(other);
        let problem =
            format!("`{}` is for {what} and `{}` for {other_what}: keep one", bare(one), bare(other));
        return Err(text.key_error(last, problem, None));
    }
    if text.has("workload.kind")
        && let Some((key, what, kind)) = used.first()
        && **kind != manifest.workload.kind
    {
        let problem = format!("`{}` is for {what}, and `kind` is another", bare(key));
        return Err(text.key_error(key, problem, None));
    }
    let pairs = [
        ("workload.duration", "workload.items", "one run has no items: keep one of the two"),
        ("workload.replica_rate", "workload.bench", "both set the rate of one instance: keep one"),
    ];
    for (one, other, reason) in pairs {
        if text.has(one) && text.has(other) {
            let last = text.last_of(&[one, other]).unwrap_or(other);
            return Err(text.key_error(
                last,
                format!("`{}` and `{}`: {reason}", bare(one), bare(other)),
                None,
            ));
        }
    }
    Ok(())
}

/// The last part of a key.
fn bare(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

/// Rejects zeros where they make no sense.
fn zeros(manifest: &Manifest, text: &ManifestText) -> Result<(), ProjectError> {
    let Manifest { workload: work, needs, data, start, deploy, .. } = manifest;
    let checkpoint_every = deploy.spot.unwrap_or_default().checkpoint_every;
    let zero_time = |time: Option<TimeSpan>| time.is_some_and(|time| time.0.is_zero());
    let times = [
        ("workload.duration", zero_time(work.duration)),
        ("workload.item_time", zero_time(work.item_time)),
        ("workload.trial_time", zero_time(work.trial_time)),
        ("workload.deadline", zero_time(work.deadline)),
        ("deploy.spot.checkpoint_every", zero_time(checkpoint_every)),
    ];
    let counts = [
        ("workload.items", work.items == Some(0)),
        ("workload.trials", work.trials == Some(0)),
        ("workload.at_once", work.at_once == Some(0)),
        ("workload.batch", work.batch == Some(0)),
        ("needs.gpus", needs.gpus == Some(0)),
        ("needs.nodes", needs.nodes == Some(0)),
        ("needs.cpu", needs.cpu == Some(0)),
        ("data.passes", data.passes == Some(0)),
    ];
    let sizes = [
        ("needs.gpu_memory", needs.gpu_memory.is_some_and(|size| size.0 == 0)),
        ("needs.memory", needs.memory.is_some_and(|size| size.0 == 0)),
        ("data.size", data.size.is_some_and(|size| size.0 == 0)),
        ("data.rate", data.rate.is_some_and(|rate| rate.0 == 0)),
        ("data.read_size", data.read_size.is_some_and(|size| size.0 == 0)),
        ("start.image_size", start.image_size.is_some_and(|size| size.0 == 0)),
    ];
    let rules: [(&[_], &str); 3] = [
        (&times, "must be longer than zero"),
        (&counts, "must be at least 1; omit it if it does not matter"),
        (&sizes, "must be larger than zero; omit it if it does not matter"),
    ];
    for (values, rule) in rules {
        if let Some((key, _)) = values.iter().find(|(_, is_zero)| *is_zero) {
            return Err(text.value_error(key, format!("`{}` {rule}", bare(key)), None));
        }
    }
    let unpacked = start.image_unpacked.zip(start.image_size);
    if unpacked.is_some_and(|(unpacked, size)| unpacked < size) {
        let problem = "an unpacked image is not smaller than `image_size`";
        return Err(text.value_error("start.image_unpacked", problem, None));
    }
    Ok(())
}

fn numbers(manifest: &Manifest, text: &ManifestText) -> Result<(), ProjectError> {
    let work = &manifest.workload;
    if work.fill.is_some_and(|fill| !(1..=100).contains(&fill)) {
        return Err(text.value_error("workload.fill", "`fill` must be from 1 to 100 percent", None));
    }
    if work.replica_rate.is_some_and(|rate| rate.0.is_zero()) {
        let problem = "`replica_rate` must be larger than zero";
        return Err(text.value_error("workload.replica_rate", problem, None));
    }
    for (gpu, speed) in &work.speeds {
        if !(speed.is_finite() && *speed > 0.0) {
            let problem = format!("invalid speed `{speed}`: expected a factor such as 0.5 or 2");
            return Err(text.value_error(&format!("workload.speeds.{gpu}"), problem, None));
        }
    }
    if !work.speeds.is_empty() && work.measured_on.is_none() {
        let problem = "`speeds` are relative to a GPU: name it with `measured_on`";
        return Err(text.key_error("workload.speeds", problem, None));
    }
    if let Some(budget) = manifest.deploy.budget.filter(|budget| !(budget.is_finite() && *budget > 0.0)) {
        let problem = format!("invalid budget `{budget}`: expected US dollars such as 100 or 12.5");
        return Err(text.value_error("deploy.budget", problem, None));
    }
    Ok(())
}

/// Work that takes longer than the deadline cannot meet it, unless another GPU may be faster.
fn deadline(manifest: &Manifest, text: &ManifestText) -> Result<(), ProjectError> {
    let work = &manifest.workload;
    let Some(TimeSpan(deadline)) = work.deadline else { return Ok(()) };
    if let Some(key) = SERVE.iter().find(|key| text.has(key)) {
        let problem = format!("a service has no end: `deadline` and `{}` contradict each other", bare(key));
        return Err(text.key_error("workload.deadline", problem, None));
    }
    if work.measured_on.is_some() {
        return Ok(());
    }
    let pieces = [("a trial", work.trial_time), ("an item", work.item_time), ("the job", work.duration)];
    for (what, time) in pieces {
        if let Some(TimeSpan(time)) = time.filter(|time| time.0 > deadline) {
            let problem = format!(
                "the deadline is shorter than {what}, which takes {time:?}; \
                 name the GPU that was measured with `measured_on` if a faster one may do it"
            );
            return Err(text.value_error("workload.deadline", problem, None));
        }
    }
    Ok(())
}

fn spot(manifest: &Manifest, text: &ManifestText) -> Result<(), ProjectError> {
    let Some(spot) = manifest.deploy.spot else { return Ok(()) };
    let options = [
        ("deploy.spot.evictions", spot.evictions.is_some()),
        ("deploy.spot.checkpoint_every", spot.checkpoint_every.is_some()),
        ("deploy.spot.checkpoint_takes", spot.checkpoint_takes.is_some()),
    ];
    if spot.allowed == SpotUse::No
        && let Some((key, _)) = options.iter().find(|(_, is_set)| *is_set)
    {
        let problem = format!("`{}` is for Spot machines, and `allow = false` rules them out", bare(key));
        return Err(text.key_error(key, problem, None));
    }
    if let Some(rate) = spot.evictions.filter(|rate| !(rate.is_finite() && *rate >= 0.0)) {
        let problem = format!("invalid rate `{rate}`: expected evictions per hour such as 0.05");
        return Err(text.value_error("deploy.spot.evictions", problem, None));
    }
    if spot.checkpoint_takes.is_some() && spot.checkpoint_every.is_none() {
        let problem = "`checkpoint_takes` needs `checkpoint_every`";
        return Err(text.key_error("deploy.spot.checkpoint_takes", problem, None));
    }
    Ok(())
}

fn needs(manifest: &Manifest, text: &ManifestText) -> Result<(), ProjectError> {
    let needs = &manifest.needs;
    if let Some(range) = needs.capability
        && let (Some(least), Some(greatest)) = (range.least, range.greatest)
        && least > greatest
    {
        let problem = format!("no GPU has a compute capability of at least {least} and at most {greatest}");
        return Err(text.value_error("needs.capability", problem, None));
    }
    if needs.nvlink == Some(true) && needs.gpus == Some(1) {
        let problem = "NVLink connects the GPUs of an instance, and `gpus = 1` leaves nothing to connect";
        return Err(text.key_error("needs.nvlink", problem, None));
    }
    Ok(())
}

fn image(manifest: &Manifest, text: &ManifestText) -> Result<(), ProjectError> {
    let Some(image) = &manifest.image else { return Ok(()) };
    let is_version = |python: &&String| {
        let minor = python.strip_prefix("3.");
        minor.is_some_and(|minor| !minor.is_empty() && minor.bytes().all(|byte| byte.is_ascii_digit()))
    };
    if let Some(python) = image.python.as_ref().filter(|python| !is_version(python)) {
        let problem = format!("invalid version of Python `{python}`: expected one such as 3.13");
        return Err(text.value_error("image.python", problem, None));
    }
    if let Some(path) = image.files.keys().find(|path| !path.starts_with('/')) {
        let problem = format!("`{path}` is not an absolute path in the image");
        return Err(text.key_error(&format!("image.files.{path}"), problem, Some(format!("/{path}"))));
    }
    if !image.requirements.is_empty() && image.pyproject.is_some() {
        let problem = "`requirements` and `pyproject` both name Python packages: keep one";
        return Err(text.key_error("image.pyproject", problem, None));
    }
    Ok(())
}
