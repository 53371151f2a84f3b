//! GPUs: which trial gets which, and whether their memory is free again.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, Instant};

use cudock_base::UsageError;
use cudock_base::process::tree::descendants;
use cudock_base::text::format::binary_bytes;
use cudock_host::host::NvmlResult;
use cudock_host::nvml::{processes_in_child, query_in_child, this_program};
use cudock_sweep::SweepPlan;

use super::protocol::GpuMemory;

/// Memory that a driver may keep for itself, plus changes by other programs on a desktop meanwhile.
const MEMORY_TOLERANCE: u64 = 64 << 20;

/// How long the driver may take to free the memory of a process that has ended.
const FREE_TIMEOUT: Duration = Duration::from_secs(5);

/// How often the memory of a trial that shares its GPU is read.
const CHECK_INTERVAL: Duration = Duration::from_secs(3);

/// A GPU of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LocalGpu {
    /// Its UUID, or its number if it has none.
    pub(crate) id: String,
    pub(crate) memory: Option<u64>,
    pub(crate) used: u64,
}

/// The GPUs of this machine that the sweep may use; none without a driver.
pub(crate) fn local_gpus() -> Vec<LocalGpu> {
    if !["/proc/driver/nvidia", "/dev/nvidiactl", "/dev/dxg"].iter().any(|path| Path::new(path).exists()) {
        return Vec::new();
    }
    let NvmlResult::Report(report) = query_in_child(this_program(), &[OsStr::new("nvml")]) else {
        return Vec::new();
    };
    let gpus = report.gpus.into_iter().enumerate().map(|(index, gpu)| LocalGpu {
        id: gpu.uuid.unwrap_or_else(|| index.to_string()),
        memory: gpu.memory_total,
        used: gpu.memory_used.unwrap_or_default(),
    });
    visible(gpus.collect(), std::env::var("CUDA_VISIBLE_DEVICES").ok().as_deref())
}

/// The GPUs that `CUDA_VISIBLE_DEVICES` allows, in its order.
fn visible(gpus: Vec<LocalGpu>, allowed: Option<&str>) -> Vec<LocalGpu> {
    let Some(allowed) = allowed else { return gpus };
    let names = allowed.split(',').map(str::trim).filter(|name| !name.is_empty());
    let found = names.map_while(|name| match name.parse::<usize>() {
        Ok(index) => gpus.get(index).cloned(),
        Err(_) => gpus.iter().find(|gpu| gpu.id.starts_with(name)).cloned(),
    });
    found.collect()
}

/// The GPUs of each slot; `None` if trials get none assigned.
pub(crate) type SlotGpus = Vec<Option<Vec<String>>>;

/// Divides the GPUs of this machine among trials. A sweep without GPUs has a slot for each of `cores`, unless it says
/// how many.
pub(crate) fn slots(plan: &SweepPlan, gpus: &[LocalGpu], cores: usize) -> Result<SlotGpus, UsageError> {
    let concurrent = plan.limits.concurrent.map(|count| usize::try_from(count).unwrap_or(usize::MAX));
    let per_trial = usize::try_from(plan.gpus_per_trial).unwrap_or(usize::MAX);
    if per_trial == 0 {
        return Ok(vec![None; concurrent.unwrap_or(cores).clamp(1, MAX_SLOTS)]);
    }
    let groups: Vec<Vec<String>> =
        gpus.chunks_exact(per_trial).map(|group| group.iter().map(|gpu| gpu.id.clone()).collect()).collect();
    if groups.is_empty() {
        let message = format!("each trial needs {per_trial} GPU(s), and this machine has {}", gpus.len());
        return Err(UsageError::new(message)
            .hint("`cudock doctor` diagnoses GPUs that are missing")
            .hint("--gpus-per-trial 0 runs trials without GPUs of their own"));
    }
    let sharing = usize::try_from(plan.trials_per_gpu.max(1)).unwrap_or(1);
    if let (true, Some(each)) = (sharing > 1, plan.gpu_memory) {
        let smallest = gpus.iter().filter_map(|gpu| gpu.memory).min();
        if let Some(smallest) = smallest.filter(|memory| each.saturating_mul(sharing as u64) > *memory) {
            return Err(UsageError::new(format!(
                "{sharing} trials of {} do not fit a GPU of {}",
                binary_bytes(each),
                binary_bytes(smallest)
            ))
            .hint("lower trials_per_gpu or gpu_memory"));
        }
    }
    let count = groups.len().saturating_mul(sharing).min(concurrent.unwrap_or(usize::MAX)).min(MAX_SLOTS);
    // Neighbors are on different GPUs, so that a sweep that does not use all slots uses all GPUs.
    Ok(groups.iter().cycle().take(count).map(|group| Some(group.clone())).collect())
}

/// Maximum number of trials at the same time: each has a worker process.
const MAX_SLOTS: usize = 256;

/// Memory of the GPUs of a trial: before it, meanwhile, and after it.
pub(crate) struct MemoryWatch {
    before: Vec<LocalGpu>,
    limit: Option<u64>,
    checked: Instant,
}

impl MemoryWatch {
    pub(crate) fn begin(gpus: &[String], limit: Option<u64>) -> Self {
        let before = if gpus.is_empty() { Vec::new() } else { used_on(gpus) };
        Self { before, limit, checked: Instant::now() }
    }

    /// Says so if the trial uses more memory than its share.
    pub(crate) fn check(&mut self) -> Option<String> {
        let limit = self.limit?;
        if self.checked.elapsed() < CHECK_INTERVAL {
            return None;
        }
        self.checked = Instant::now();
        let all =
            processes_in_child(this_program(), &[OsStr::new("nvml"), OsStr::new("--processes")]).ok()?;
        let own: BTreeSet<u32> =
            descendants(&[]).iter().map(|pid| pid.as_raw_nonzero().get().unsigned_abs()).collect();
        let used: u64 = all
            .iter()
            .filter(|process| own.contains(&process.pid))
            .filter_map(|process| process.memory_bytes)
            .sum();
        (used > limit).then(|| {
            format!(
                "it used {} of GPU memory, more than its limit of {}",
                binary_bytes(used),
                binary_bytes(limit)
            )
        })
    }

    /// The readings, and a note if memory that only this trial used is not free again.
    pub(crate) fn finish(self, has_own_gpus: bool) -> (Vec<GpuMemory>, Option<String>) {
        if self.before.is_empty() {
            return (Vec::new(), None);
        }
        let ids: Vec<String> = self.before.iter().map(|gpu| gpu.id.clone()).collect();
        let deadline = Instant::now() + FREE_TIMEOUT;
        loop {
            let after = used_on(&ids);
            let readings = self.before.iter().map(|before| GpuMemory {
                gpu: before.id.clone(),
                before: before.used,
                after: after.iter().find(|gpu| gpu.id == before.id).map_or(before.used, |gpu| gpu.used),
            });
            let readings: Vec<GpuMemory> = readings.collect();
            let held = readings.iter().find(|reading| reading.after > reading.before + MEMORY_TOLERANCE);
            let Some(held) = held.filter(|_| has_own_gpus) else { return (readings, None) };
            if Instant::now() > deadline {
                let more = binary_bytes(held.after - held.before);
                let note = format!("GPU {} has {more} more memory in use than before the trial", held.gpu);
                return (readings, Some(note));
            }
        }
    }
}

fn used_on(ids: &[String]) -> Vec<LocalGpu> {
    local_gpus().into_iter().filter(|gpu| ids.contains(&gpu.id)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpus(count: usize) -> Vec<LocalGpu> {
        (0..count)
            .map(|index| LocalGpu { id: format!("GPU-{index}"), memory: Some(16 << 30), used: 0 })
            .collect()
    }

    #[test]
    fn visible_devices_are_numbers_or_ids() {
        let ids = |allowed| visible(gpus(3), allowed).into_iter().map(|gpu| gpu.id).collect::<Vec<_>>();
        assert_eq!(ids(None), ["GPU-0", "GPU-1", "GPU-2"]);
        assert_eq!(ids(Some("2,0")), ["GPU-2", "GPU-0"]);
        assert_eq!(ids(Some("GPU-1")), ["GPU-1"]);
        // CUDA ignores what follows an invalid number.
        assert_eq!(ids(Some("1,7,0")), ["GPU-1"]);
        assert_eq!(ids(Some("")), [""; 0]);
    }

    fn plan(keys: &str) -> SweepPlan {
        let directory = tempfile::tempdir().unwrap();
        let text = format!(
            "[sweep]\ncommand = [\"x\"]\nobjectives = [{{ metric = \"a\", goal = \"minimize\" }}]\n\
             parameters = {{ x = {{ choice = [1] }} }}\nsampler = \"grid\"\n{keys}\n"
        );
        std::fs::write(directory.path().join("cudock.toml"), text).unwrap();
        cudock_project::Project::open(directory.path()).unwrap().sweep_plan().unwrap()
    }

    #[test]
    fn slots_have_gpus_of_their_own_or_a_share_that_fits() {
        let shown = |keys: &str, count: usize| {
            let slots = slots(&plan(keys), &gpus(count), 5).map_err(|error| error.to_string())?;
            let names =
                slots.iter().map(|gpus| gpus.as_ref().map_or("none".to_owned(), |gpus| gpus.join("+")));
            Ok::<_, String>(names.collect::<Vec<_>>().join(" "))
        };
        for (keys, count, expected) in [
            ("", 3, Ok("GPU-0 GPU-1 GPU-2")),
            ("gpus_per_trial = 2", 5, Ok("GPU-0+GPU-1 GPU-2+GPU-3")),
            ("limits = { concurrent = 2 }", 3, Ok("GPU-0 GPU-1")),
            ("gpus_per_trial = 0", 3, Ok("none none none none none")),
            ("gpus_per_trial = 0\nlimits = { concurrent = 2 }", 0, Ok("none none")),
            ("trials_per_gpu = 2\ngpu_memory = \"8GiB\"", 2, Ok("GPU-0 GPU-1 GPU-0 GPU-1")),
            (
                "trials_per_gpu = 2\ngpu_memory = \"9GiB\"",
                1,
                Err("2 trials of 9 GiB do not fit a GPU of 16 GiB"),
            ),
            ("", 0, Err("each trial needs 1 GPU(s), and this machine has 0")),
        ] {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(shown(keys, count), expected, "{keys} {count}");
        }
    }
}
