//! Resource usage of containers: processors, memory, processes, GPUs.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use cudock_host::nvml::GpuProcess;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cgroup::Cgroup;
use crate::container::config::ContainerConfig;
use crate::container::home::ContainerDir;
use crate::container::status::ContainerState;
use crate::error::RuntimeError;

#[derive(Debug, Clone)]
pub struct Sample {
    at: Instant,
    cpu: Option<Duration>,
    memory: Option<u64>,
    memory_limit: Option<u64>,
    processes: BTreeSet<i32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Usage {
    pub id: String,
    pub name: String,
    /// Percent of one processor between two samples.
    pub cpu_percent: Option<f64>,
    /// Bytes of memory, without cached files that can be dropped.
    pub memory_bytes: Option<u64>,
    pub memory_limit_bytes: Option<u64>,
    pub pids: usize,
    /// Percent of one GPU, summed over its processes and GPUs; `None` without a GPU or NVML.
    pub gpu_percent: Option<u32>,
    /// Bytes of GPU memory of its processes.
    pub gpu_memory_bytes: Option<u64>,
    /// The same by GPU.
    pub gpus: Vec<GpuUsage>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GpuUsage {
    pub index: u32,
    /// Percent of time in which its kernels ran.
    pub percent: Option<u32>,
    pub memory_bytes: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Process {
    /// The PID on the host.
    pub pid: i32,
    pub parent: i32,
    /// The PID in the container.
    pub pid_inside: i32,
    /// The user on the host.
    pub uid: u32,
    pub cpu_seconds: u64,
    /// Its command line, or its name in brackets.
    pub command: String,
}

impl ContainerDir {
    pub fn sample(&self, config: &ContainerConfig) -> Result<Option<Sample>, RuntimeError> {
        if self.current(config)?.state != ContainerState::Running {
            return Ok(None);
        }
        let cgroup = Cgroup::of_container(&config.id);
        let number = |file: &str| cgroup.read(file)?.trim().parse::<u64>().ok();
        let cpu = number("cpuacct.usage")
            .map(Duration::from_nanos)
            .or_else(|| keyed(&cgroup.read("cpu.stat")?, "usage_usec").map(Duration::from_micros));
        let stat = cgroup.read("memory.stat").unwrap_or_default();
        let droppable = keyed(&stat, "total_inactive_file").or_else(|| keyed(&stat, "inactive_file"));
        let memory = number("memory.usage_in_bytes").or_else(|| number("memory.current"));
        let limit = number("memory.limit_in_bytes").or_else(|| number("memory.max"));
        Ok(Some(Sample {
            at: Instant::now(),
            cpu,
            memory: memory.map(|bytes| bytes.saturating_sub(droppable.unwrap_or_default())),
            // Version 1 reports "no limit" as a very large number.
            memory_limit: limit.filter(|limit| *limit < 1 << 60),
            processes: cgroup.processes(),
        }))
    }

    pub fn processes(&self, config: &ContainerConfig) -> Result<Vec<Process>, RuntimeError> {
        let state = self.current(config)?.state;
        if state != ContainerState::Running {
            return Err(RuntimeError::state(&config.name, &state, "running"));
        }
        // A process that exited meanwhile is skipped.
        let pids = Cgroup::of_container(&config.id).processes();
        Ok(pids.into_iter().filter_map(process).collect())
    }
}

fn keyed(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// The usage between two samples. `gpus` are all processes on all GPUs, if NVML is available.
pub fn usage(
    config: &ContainerConfig,
    before: &Sample,
    after: &Sample,
    gpus: Option<&[GpuProcess]>,
) -> Usage {
    let passed = after.at.saturating_duration_since(before.at).as_secs_f64();
    let cpu_percent = before.cpu.zip(after.cpu).filter(|_| passed > 0.0).map(|(before, after)| {
        let percent = after.saturating_sub(before).as_secs_f64() / passed * 100.0;
        (percent * 100.0).round() / 100.0
    });
    let gpus = match gpus {
        Some(all) if config.gpus.is_some() => by_gpu(all, &after.processes),
        _ => Vec::new(),
    };
    Usage {
        id: config.id.clone(),
        name: config.name.clone(),
        cpu_percent,
        memory_bytes: after.memory,
        memory_limit_bytes: after.memory_limit,
        pids: after.processes.len(),
        gpu_percent: total(gpus.iter().map(|gpu| gpu.percent)),
        gpu_memory_bytes: total(gpus.iter().map(|gpu| gpu.memory_bytes)),
        gpus,
    }
}

/// The sum of known values; `None` if there are none.
fn total<T: std::iter::Sum>(parts: impl Iterator<Item = Option<T>>) -> Option<T> {
    let mut known = parts.flatten().peekable();
    known.peek()?;
    Some(known.sum())
}

fn by_gpu(all: &[GpuProcess], own: &BTreeSet<i32>) -> Vec<GpuUsage> {
    let is_own = |process: &&GpuProcess| i32::try_from(process.pid).is_ok_and(|pid| own.contains(&pid));
    let indices: BTreeSet<u32> = all.iter().map(|process| process.gpu).collect();
    let of = |index: u32| all.iter().filter(move |process| process.gpu == index);
    indices
        .into_iter()
        .filter(|index| of(*index).any(|process| is_own(&process)))
        .map(|index| GpuUsage {
            index,
            percent: total(of(index).filter(is_own).map(|process| process.percent)),
            memory_bytes: total(of(index).filter(is_own).map(|process| process.memory_bytes)),
        })
        .collect()
}

fn process(pid: i32) -> Option<Process> {
    let read = |file: &str| fs::read(format!("/proc/{pid}/{file}")).ok();
    let stat = String::from_utf8_lossy(&read("stat")?).into_owned();
    let status = String::from_utf8_lossy(&read("status")?).into_owned();
    let (before, after) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = after.split(' ').collect();
    let number = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok());
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let arguments = read("cmdline").unwrap_or_default();
    let args: Vec<String> = arguments
        .split(|byte| *byte == 0)
        .filter(|arg| !arg.is_empty())
        .map(|arg| String::from_utf8_lossy(arg).into_owned())
        .collect();
    let name = before.split_once('(').map_or("", |(_, name)| name);
    // Clock ticks are hundredths of a second on all supported architectures.
    let ticks = number(11).unwrap_or_default() + number(12).unwrap_or_default();
    Some(Process {
        pid,
        parent: number(1).and_then(|parent| i32::try_from(parent).ok()).unwrap_or_default(),
        pid_inside: field("NSpid")
            .and_then(|pids| pids.split_whitespace().next_back()?.parse().ok())
            .unwrap_or(pid),
        uid: field("Uid").and_then(|ids| ids.split_whitespace().next()?.parse().ok()).unwrap_or_default(),
        cpu_seconds: ticks / 100,
        command: if args.is_empty() { format!("[{name}]") } else { args.join(" ") },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_containers_own_processes_count() {
        let on = |gpu, pid, percent, memory_bytes| GpuProcess { gpu, pid, percent, memory_bytes };
        let all = [
            on(0, 10, Some(40), Some(100)),
            on(0, 11, Some(30), Some(50)),
            on(0, 99, Some(20), Some(7)),
            on(1, 10, None, Some(5)),
            on(2, 99, Some(90), Some(9)),
        ];
        let own = BTreeSet::from([1, 10, 11]);
        let gpus = by_gpu(&all, &own);
        let expected = [
            GpuUsage { index: 0, percent: Some(70), memory_bytes: Some(150) },
            GpuUsage { index: 1, percent: None, memory_bytes: Some(5) },
        ];
        assert_eq!(gpus, expected);
        assert_eq!(total(gpus.iter().map(|gpu| gpu.percent)), Some(70));
        assert!(by_gpu(&all, &BTreeSet::new()).is_empty());
    }

    #[test]
    fn statistics_are_matched_by_full_name() {
        let text = "inactive_file 7\ntotal_inactive_file 9\n";
        assert_eq!(keyed(text, "inactive_file"), Some(7));
        assert_eq!(keyed(text, "total_inactive_file"), Some(9));
        assert_eq!(keyed(text, "active"), None);
    }
}
