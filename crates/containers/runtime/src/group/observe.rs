//! Waits for a group, and prints its logs.

use std::time::Duration;

use cudock_group::restart::GroupState;

use super::dir::GroupDir;
use crate::container::home::Home;
use crate::container::log::LogRequest;
use crate::container::log::{self, LogLine, LogReader};
use crate::error::RuntimeError;

const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Waits until a group has ended and returns its exit code: 0 if all containers succeeded or it was stopped, else that of
/// the first container that failed.
pub fn wait(home: &Home, group: &GroupDir) -> Result<i32, RuntimeError> {
    loop {
        let status = match group.status()? {
            Some(status) => status,
            // It was removed meanwhile.
            None if group.containers(home)?.is_empty() => return Ok(0),
            None => {
                std::thread::sleep(POLL_INTERVAL);
                continue;
            }
        };
        match status.state {
            GroupState::Pending | GroupState::Running => std::thread::sleep(POLL_INTERVAL),
            GroupState::Succeeded | GroupState::Stopped => return Ok(0),
            GroupState::Lost => return Ok(137),
            GroupState::Failed => {
                let codes = status.containers.iter().filter_map(|container| container.exit_code);
                return Ok(codes.into_iter().find(|code| *code != 0).unwrap_or(1));
            }
        }
    }
}

struct ContainerLog {
    name: String,
    reader: LogReader,
    next: Option<LogLine>,
}

/// Prints the logs of all containers of a group by time, each line after the name of its container.
pub fn logs(home: &Home, group: &GroupDir, request: LogRequest) -> Result<(), RuntimeError> {
    let prefix = format!("{}.", group.name());
    let containers = group.containers(home)?;
    let mut logs = Vec::new();
    for (dir, config) in &containers {
        let reader = LogReader::for_request(&dir.log(), request)?;
        let name = config.name.strip_prefix(&prefix).unwrap_or(&config.name).to_owned();
        logs.push(ContainerLog { name, reader, next: None });
    }
    let width = logs.iter().map(|log| log.name.chars().count()).max().unwrap_or_default();
    loop {
        // Checked before the logs are read to their ends, so that nothing written in between is missed.
        let alive = group.status()?.is_some_and(|status| status.state.is_alive());
        while let Some((name, line)) = earliest(&mut logs)? {
            if !request.contains(&line) {
                continue;
            }
            let stamp = if request.timestamps { format!("{} ", line.time) } else { String::new() };
            let end = if line.log.ends_with('\n') { "" } else { "\n" };
            let text = format!("{name:width$} | {stamp}{}{end}", line.log);
            if log::print(&line, &text).is_err() {
                return Ok(());
            }
        }
        if !request.follow || !alive {
            return Ok(());
        }
        std::thread::sleep(log::POLL_INTERVAL);
    }
}

fn earliest(logs: &mut [ContainerLog]) -> Result<Option<(String, LogLine)>, RuntimeError> {
    for log in logs.iter_mut().filter(|log| log.next.is_none()) {
        log.next = log.reader.next_line()?;
    }
    let with_line = logs.iter_mut().filter(|log| log.next.is_some());
    let first = with_line.min_by(|a, b| {
        let time = |log: &ContainerLog| log.next.as_ref().map(|line| line.time.clone());
        time(a).cmp(&time(b))
    });
    Ok(first.and_then(|log| Some((log.name.clone(), log.next.take()?))))
}
