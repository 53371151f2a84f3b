//! A group as a whole, from the side of those who wait for it or read what it wrote.

use std::io::Write;
use std::time::Duration;

use super::dir::GroupDir;
use super::state::State;
use crate::clock;
use crate::engine::LogRequest;
use crate::error::RuntimeError;
use crate::home::Home;
use crate::log::{LOOK_AGAIN, Line, Reader};

/// How often we look whether a group has ended.
const LOOK: Duration = Duration::from_millis(20);

/// Waits until a group has ended. Its exit code: 0 where all its containers succeeded or it was stopped, else that of the
/// first container that failed.
pub fn wait(home: &Home, group: &GroupDir) -> Result<i32, RuntimeError> {
    loop {
        let status = match group.status()? {
            Some(status) => status,
            // It was taken down while we waited.
            None if group.containers(home)?.is_empty() => return Ok(0),
            None => {
                std::thread::sleep(LOOK);
                continue;
            }
        };
        match status.state {
            State::Pending | State::Running => std::thread::sleep(LOOK),
            State::Succeeded | State::Stopped => return Ok(0),
            State::Lost => return Ok(137),
            State::Failed => {
                let codes = status.containers.iter().filter_map(|container| container.exit_code);
                return Ok(codes.into_iter().find(|code| *code != 0).unwrap_or(1));
            }
        }
    }
}

/// What one container wrote.
struct Source {
    name: String,
    reader: Reader,
    next: Option<Line>,
}

/// Prints what the containers of a group wrote, in the order of time, each line behind its container's name.
pub fn logs(home: &Home, group: &GroupDir, request: LogRequest) -> Result<(), RuntimeError> {
    let prefix = format!("{}.", group.name());
    let containers = group.containers(home)?;
    let mut sources = Vec::new();
    for (dir, plan) in &containers {
        let mut reader = Reader::open(&dir.log());
        if let Some(count) = request.tail {
            reader.skip_to_last(count)?;
        }
        let name = plan.name.strip_prefix(&prefix).unwrap_or(&plan.name).to_owned();
        sources.push(Source { name, reader, next: None });
    }
    let width = sources.iter().map(|source| source.name.chars().count()).max().unwrap_or_default();
    loop {
        // Looked at before the logs are read to their ends, so that nothing written meanwhile is missed.
        let alive = group.status()?.is_some_and(|status| status.state.is_alive());
        while let Some((name, line)) = earliest(&mut sources)? {
            let time = clock::milliseconds(&line.time);
            let early = request.since.zip(time).is_some_and(|(since, time)| time < since);
            let late = request.until.zip(time).is_some_and(|(until, time)| time >= until);
            if early || late {
                continue;
            }
            let stamp = if request.timestamps { format!("{} ", line.time) } else { String::new() };
            let end = if line.log.ends_with('\n') { "" } else { "\n" };
            let text = format!("{name:width$} | {stamp}{}{end}", line.log);
            let written = if line.stream == "stderr" {
                std::io::stderr().write_all(text.as_bytes())
            } else {
                std::io::stdout().write_all(text.as_bytes())
            };
            if written.is_err() {
                return Ok(());
            }
        }
        if !request.follow || !alive {
            return Ok(());
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Takes the line that came first among those that are next.
fn earliest(sources: &mut [Source]) -> Result<Option<(String, Line)>, RuntimeError> {
    for source in sources.iter_mut().filter(|source| source.next.is_none()) {
        source.next = source.reader.next_line()?;
    }
    let with_line = sources.iter_mut().filter(|source| source.next.is_some());
    let first = with_line.min_by(|a, b| {
        let time = |source: &Source| source.next.as_ref().map(|line| line.time.clone());
        time(a).cmp(&time(b))
    });
    Ok(first.and_then(|source| Some((source.name.clone(), source.next.take()?))))
}
