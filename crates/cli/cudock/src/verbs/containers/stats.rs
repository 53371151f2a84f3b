//! `cudock stats`: what containers use, again and again.

use std::ffi::OsStr;
use std::io::IsTerminal;
use std::time::Duration;

use cudock_base::text::format::fixed_bytes;
use cudock_base::text::table::TextTable;
use cudock_cli::{EngineChoice, StatsArgs};
use cudock_host::nvml::{GpuProcess, processes_in_child, this_program};
use cudock_runtime::container::config::ContainerConfig;
use cudock_runtime::container::home::ContainerDir;
use cudock_runtime::container::usage::{Sample, Usage, usage};
use cudock_runtime::namespace::rootless;

use super::reports::StatsReport;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, line, table, warning};
use crate::steps::engine::home;

/// Between two samples; processor percentages are of this time.
const BETWEEN: Duration = Duration::from_secs(1);

/// `cudock stats`.
pub(crate) fn stats(args: &StatsArgs, format: Format) -> Result<Outcome, Failure> {
    if let EngineChoice::Docker | EngineChoice::Podman = args.engine.engine {
        return Err(Failure::input("stats is not supported with --engine docker or podman")
            .hint("`docker stats` or `podman stats` shows processors and memory; `nvidia-smi` GPUs"));
    }
    rootless::become_root()?;
    let mut warned = false;
    let mut before = samples(args)?;
    loop {
        std::thread::sleep(BETWEEN);
        let gpus = if before.iter().any(|(_, config, _)| config.gpus.is_some()) {
            gpu_processes(&mut warned)
        } else {
            None
        };
        let after = samples(args)?;
        let used: Vec<Usage> = after
            .iter()
            .filter_map(|(_, config, after)| {
                let (_, _, before) = before.iter().find(|(_, known, _)| known.id == config.id)?;
                Some(usage(config, before, after, gpus.as_deref()))
            })
            .collect();
        print(&used, args.no_stream, format);
        if args.no_stream {
            return Ok(Outcome::Yes);
        }
        before = after;
    }
}

/// Samples of the containers that were named, or of all that run.
fn samples(args: &StatsArgs) -> Result<Vec<(ContainerDir, ContainerConfig, Sample)>, Failure> {
    let home = home()?;
    let found = if args.containers.is_empty() {
        home.all()?
    } else {
        args.containers.iter().map(|name| home.find(name)).collect::<Result<_, _>>()?
    };
    let named = !args.containers.is_empty();
    let mut all = Vec::new();
    for (dir, config) in found {
        match dir.sample(&config) {
            Ok(Some(sample)) => all.push((dir, config, sample)),
            Ok(None) if named => {
                return Err(Failure::input(format!("container {} is not running", config.name)));
            }
            Err(error) if named => return Err(error.into()),
            // One that ended, was removed meanwhile, or cannot be read must not hide the others.
            Ok(None) | Err(_) => {}
        }
    }
    Ok(all)
}

/// Processes on GPUs, queried in a child: a driver that hangs blocks only the child.
fn gpu_processes(warned: &mut bool) -> Option<Vec<GpuProcess>> {
    let arguments = ["nvml", "--processes"].map(OsStr::new);
    match processes_in_child(this_program(), &arguments) {
        Ok(processes) => Some(processes),
        Err(error) => {
            if !*warned {
                warning(format!("GPU usage is unknown: {error}"));
                *warned = true;
            }
            None
        }
    }
}

fn print(used: &[Usage], once: bool, format: Format) {
    if format != Format::Text {
        output::report(&StatsReport { containers: used });
        return;
    }
    if !once && std::io::stdout().is_terminal() {
        // To the top left, and all below it cleared.
        line("\u{1b}[H\u{1b}[2J");
    }
    let rows = used.iter().map(|one| {
        let memory = match (one.memory_bytes, one.memory_limit_bytes) {
            (Some(bytes), Some(limit)) => format!("{} / {}", fixed_bytes(bytes), fixed_bytes(limit)),
            (Some(bytes), None) => fixed_bytes(bytes),
            (None, _) => "-".to_owned(),
        };
        let percent =
            |value: Option<String>| value.map_or_else(|| "-".to_owned(), |value| format!("{value}%"));
        vec![
            one.name.clone(),
            percent(one.cpu_percent.map(|value| format!("{value:.1}"))),
            memory,
            one.pids.to_string(),
            percent(one.gpu_percent.map(|value| value.to_string())),
            one.gpu_memory_bytes.map_or_else(|| "-".to_owned(), fixed_bytes),
        ]
    });
    table(&TextTable::list(&["NAME", "CPU", "MEMORY / LIMIT", "PIDS", "GPU", "GPU MEMORY"], rows.collect()));
}
