//! cudock's own engine: containers without a daemon.

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cudock_http::Progress;
use cudock_image::unpack::{LayerStore, Pruned, Unpacked};
use cudock_image::{Image, ImageError, RunConfig};
use serde_json::{Value, json};

use super::{Engine, LogRequest, Request, Summary};
use crate::clock::moment;
use crate::copy::{Copied, CopyRequest};
use crate::error::{OnFile, OnSystem, RuntimeError};
use crate::exec::{self, ExecRequest};
use crate::group;
use crate::home::{ContainerDir, Home};
use crate::launch::text;
use crate::log::{LOOK_AGAIN, Line, Reader};
use crate::plan::{MountPlan, Plan, Private};
use crate::reexec;
use crate::signal::{SignalNumber, parse_signal, stop_signal};
use crate::started::Started;
use crate::status::{State, Status};
use crate::usage::Process;

/// Opens an image by the words people use for it.
pub type Open = Box<dyn Fn(&str) -> Result<Image, ImageError>>;

/// cudock's own engine.
pub struct Builtin {
    /// Where containers are kept.
    pub home: Home,
    /// How images are opened.
    pub open: Open,
    /// Hears how unpacking goes.
    pub progress: Arc<dyn Progress>,
}

impl fmt::Debug for Builtin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builtin").field("home", &self.home).finish_non_exhaustive()
    }
}

/// Unpacked layers that nobody may remove meanwhile.
#[derive(Debug)]
pub struct Held {
    layers: Option<Unpacked>,
}

impl Held {
    /// Gives the root of a container that was just made the owner and the mode that the image says.
    pub(crate) fn shape_root(&self, dir: &ContainerDir) -> Result<(), RuntimeError> {
        let Some(image) = &self.layers else { return Ok(()) };
        image.root.apply(&dir.upper()).on("cannot shape the container's root", &dir.upper())
    }
}

impl Builtin {
    /// Fills in what only the image knows, and unpacks it where it is not.
    pub fn complete(&self, request: &mut Request) -> Result<Held, RuntimeError> {
        let (layers, run, held) = if let Some(directory) = request.plan.image.strip_prefix("rootfs:") {
            (vec![directory.into()], RunConfig::default(), None)
        } else {
            let image = (self.open)(&request.plan.image)?;
            let unpacked = LayerStore::open(self.home.images())?.unpack(&image, self.progress.as_ref())?;
            (unpacked.layers.clone(), image.config.config.clone(), Some(unpacked))
        };
        fill_in(request, &run)?;
        request.plan.layers = layers;
        Ok(Held { layers: held })
    }

    /// Removes unpacked layers that no container is made of, and what killed runs left of others.
    pub fn prune(&self) -> Result<Pruned, RuntimeError> {
        let used: HashSet<PathBuf> = self.home.all()?.into_iter().flat_map(|(_, plan)| plan.layers).collect();
        Ok(LayerStore::open(self.home.images())?.prune(&|layer| used.contains(layer))?)
    }
}

/// What the image says, where the user said nothing.
fn fill_in(request: &mut Request, run: &RunConfig) -> Result<(), RuntimeError> {
    let plan = &mut request.plan;
    plan.process.environment = run.environment().into_iter().collect();
    let entrypoint = request.entrypoint.as_ref().unwrap_or(&run.entrypoint);
    // An entry point of the user's own does not take the image's arguments.
    let own = request.entrypoint.is_some() || !request.command.is_empty();
    let command = if own { &request.command } else { &run.cmd };
    plan.process.args = entrypoint.iter().chain(command).cloned().collect();
    if plan.process.args.is_empty() {
        let text = "no command to run: the image names none, and none was given";
        return Err(RuntimeError::Request(text.to_owned()));
    }
    let cwd = request.cwd.clone().unwrap_or_else(|| run.working_dir.clone());
    plan.process.cwd = if cwd.is_empty() { "/".to_owned() } else { cwd };
    if !plan.process.cwd.starts_with('/') {
        let text = format!("`{}` is not an absolute directory to start in", plan.process.cwd);
        return Err(RuntimeError::Request(text));
    }
    plan.process.user = request.user.clone().unwrap_or_else(|| run.user.clone());
    if plan.stop_signal.is_empty() {
        run.stop_signal.clone_into(&mut plan.stop_signal);
        if !plan.stop_signal.is_empty() && parse_signal(&plan.stop_signal).is_err() {
            let text: String = plan.stop_signal.chars().take(40).flat_map(char::escape_debug).collect();
            eprintln!(
                "warning: the image's StopSignal `{text}` is not a signal: SIGTERM stops the container"
            );
            "SIGTERM".clone_into(&mut plan.stop_signal);
        }
    }
    Ok(())
}

/// Writes the id of a container to a file that must not exist, before anything is made of it.
fn write_id(file: &Path, id: &str) -> Result<(), RuntimeError> {
    match File::options().write(true).create_new(true).open(file) {
        Ok(mut file) => file.write_all(id.as_bytes()).when("cannot write --cidfile"),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let text = format!("--cidfile {}: file exists; remove it or name another", file.display());
            Err(RuntimeError::Request(text))
        }
        Err(error) => Err(RuntimeError::Request(format!("--cidfile {}: {error}", file.display()))),
    }
}

/// The variables a container needs again, whose values no file has.
fn given_again(plan: &Plan, given: &[(String, String)]) -> Result<Private, RuntimeError> {
    let missing = |name: &&String| !given.iter().any(|(known, _)| known == *name);
    let missing: Vec<&str> = plan.process.given.iter().filter(missing).map(String::as_str).collect();
    if missing.is_empty() {
        return Ok(Private { environment: given.to_vec() });
    }
    let again: Vec<String> = missing.iter().map(|name| format!("-e {name}=…")).collect();
    Err(RuntimeError::Reported {
        code: 2,
        text: format!(
            "the values of {} are kept in no file and ended with the container",
            missing.join(", ")
        ),
        hint: Some(format!("give them again: cudock start {} {}", again.join(" "), plan.name)),
    })
}

impl Builtin {
    /// A container that can be started and stopped by itself, which one of a group cannot.
    fn find_own(&self, name: &str) -> Result<(ContainerDir, Plan), RuntimeError> {
        let (dir, plan) = self.home.find(name)?;
        match &plan.group {
            None => Ok((dir, plan)),
            Some(group) => Err(RuntimeError::Request(format!(
                "container {} belongs to group {group}, whose supervisor starts it: `cudock down {group}` and \
                 `cudock up` restart the group",
                plan.name
            ))),
        }
    }

    /// Fetches and unpacks an image, so that the next container of it starts at once.
    pub fn pull(&self, image: &str) -> Result<Image, RuntimeError> {
        let opened = (self.open)(image)?;
        LayerStore::open(self.home.images())?.unpack(&opened, self.progress.as_ref())?;
        Ok(opened)
    }
}

impl Engine for Builtin {
    fn name(&self) -> &'static str {
        "cudock"
    }

    fn run(&self, mut request: Request) -> Result<i32, RuntimeError> {
        let held = self.complete(&mut request)?;
        for mount in &request.plan.mounts {
            if let MountPlan::Volume { name, .. } = mount {
                self.home.create_volume(name)?;
            }
        }
        if let Some(file) = &request.cidfile {
            write_id(file, &request.plan.id)?;
        }
        let dir = self.home.create(&request.plan)?;
        held.shape_root(&dir)?;
        if request.detach {
            start_detached(&dir, &request.private)?;
            println!("{}", request.plan.id);
            return Ok(0);
        }
        // Comes back only with an error: the watcher takes this process over.
        let words = ["monitor".into(), dir.path().as_os_str().to_owned(), "--attached".into()];
        Err(reexec::become_sealed(&words, &request.private)?)
    }

    fn list(&self, all: bool) -> Result<Vec<Summary>, RuntimeError> {
        self.home.sweep()?;
        let groups = group::list(&self.home)?;
        let mut summaries = Vec::new();
        for (dir, plan) in self.home.all()? {
            // One that cannot be read must not hide the others.
            let status = dir.current(&plan).unwrap_or_else(|error| Status {
                state: State::Lost,
                error: Some(text(&error)),
                ..Status::default()
            });
            let mut summary = summary(&plan, &status);
            let alive = group::told_by_group(&groups, &mut summary).unwrap_or(status.state.is_alive());
            if all || alive {
                summaries.push(summary);
            }
        }
        if all {
            summaries.extend(self.home.damaged()?.iter().map(damaged));
        }
        Ok(summaries)
    }

    fn logs(&self, name: &str, request: LogRequest) -> Result<(), RuntimeError> {
        let (dir, plan) = self.home.find(name)?;
        let mut reader = Reader::open(&dir.log());
        if let Some(count) = request.tail {
            if request.since.is_some() || request.until.is_some() {
                let skipped = lines_within(&dir, request)?.saturating_sub(count);
                skip_within(&mut reader, request, skipped)?;
            } else {
                reader.skip_to_last(count)?;
            }
        }
        loop {
            // Looked at before the log is read to its end, so that nothing written meanwhile is missed.
            let goes_on = request.follow && dir.is_alive(&plan)?;
            while let Some(line) = reader.next_line()? {
                if is_after(&line, request) {
                    return Ok(());
                }
                if !is_within(&line, request) {
                    continue;
                }
                let time = if request.timestamps { format!("{} ", line.time) } else { String::new() };
                let written = if line.stream == "stderr" {
                    write!(std::io::stderr(), "{time}{}", line.log)
                } else {
                    write!(std::io::stdout(), "{time}{}", line.log)
                };
                if written.is_err() {
                    return Ok(());
                }
            }
            if !goes_on {
                return Ok(());
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    fn exec(&self, name: &str, request: &ExecRequest) -> Result<i32, RuntimeError> {
        let (dir, _) = self.home.find(name)?;
        Err(exec::joiner(&dir, request)?.replace_this_process())
    }

    fn stop(&self, name: &str, seconds: Option<u32>) -> Result<(), RuntimeError> {
        self.stop_all(&[name.to_owned()], seconds).into_iter().collect()
    }

    fn stop_all(&self, names: &[String], seconds: Option<u32>) -> Vec<Result<(), RuntimeError>> {
        // All are asked before the first is waited for, so that together they take as long as the slowest.
        let ask = |name: &String| {
            let (dir, plan) = self.home.find(name)?;
            let signal = stop_signal(&plan.stop_signal);
            let asked = dir.ask(&plan, signal)?;
            Ok((dir, plan, signal, asked))
        };
        let asked: Vec<Result<_, RuntimeError>> = names.iter().map(ask).collect();
        let wait = |asked| {
            let (dir, plan, signal, asked): (ContainerDir, Plan, _, _) = asked?;
            let limit = Duration::from_secs(seconds.unwrap_or(plan.stop_seconds).into());
            dir.wait_stopped(&plan, signal, asked, limit).map(|_| ())
        };
        asked.into_iter().map(wait).collect()
    }

    fn remove(&self, name: &str, force: bool) -> Result<(), RuntimeError> {
        match self.home.find(name) {
            Ok((dir, plan)) => dir.delete(&plan, force),
            Err(error @ RuntimeError::Damaged { .. }) => match self.home.find_damaged(name)? {
                Some(dir) => dir.clear(),
                None => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    fn wait(&self, name: &str) -> Result<i32, RuntimeError> {
        let (dir, plan) = self.home.find(name)?;
        dir.wait(&plan)
    }

    fn inspect(&self, name: &str) -> Result<Value, RuntimeError> {
        let (dir, plan) = self.home.find(name)?;
        let status = dir.current(&plan)?;
        Ok(json!({
            "plan": plan,
            "status": status,
            "created": moment(plan.created),
            "folder": dir.path(),
            "log": dir.log(),
            "written_bytes": crate::end::written(&dir)?,
        }))
    }

    fn kill(&self, name: &str, signal: &str) -> Result<(), RuntimeError> {
        let (dir, plan) = self.home.find(name)?;
        let signal = parse_signal(signal)?;
        if signal == SignalNumber::from(nix::sys::signal::Signal::SIGKILL)
            || signal == stop_signal(&plan.stop_signal)
        {
            // Whoever ends a container this way does not want it started again.
            let state = dir.current(&plan)?.state;
            if matches!(state, State::Running | State::Restarting) {
                dir.ask_to_stop()?;
            }
        }
        dir.signal(&plan, signal)
    }

    fn start(&self, name: &str, given: &[(String, String)], attach: bool) -> Result<i32, RuntimeError> {
        let (dir, plan) = self.find_own(name)?;
        let status = dir.current(&plan)?;
        if dir.is_watched()? {
            if status.state == State::Running {
                return Ok(0);
            }
            let is = status.state.word().to_owned();
            return Err(RuntimeError::State { name: plan.name, is, needed: "stopped" });
        }
        let private = given_again(&plan, given)?;
        dir.allow_to_start()?;
        if attach {
            let words = ["monitor".into(), dir.path().as_os_str().to_owned(), "--attached".into()];
            return Err(reexec::become_sealed(&words, &private)?);
        }
        start_detached(&dir, &private)?;
        Ok(0)
    }

    fn restart(&self, name: &str, seconds: Option<u32>) -> Result<(), RuntimeError> {
        let (dir, plan) = self.find_own(name)?;
        let status = dir.current(&plan)?;
        // While it runs, its watcher has the values of its variables in memory.
        let started = if status.state == State::Running { Started::read(&dir)? } else { None };
        let given = started.map(|started| started.given).unwrap_or_default();
        let private = given_again(&plan, &given)?;
        if plan.remove && status.state.is_alive() {
            return Err(RuntimeError::Request(format!(
                "container {} was started with --rm: it is removed when it stops and cannot be restarted",
                plan.name
            )));
        }
        let limit = Duration::from_secs(seconds.unwrap_or(plan.stop_seconds).into());
        dir.stop(&plan, stop_signal(&plan.stop_signal), limit)?;
        dir.allow_to_start()?;
        start_detached(&dir, &private)
    }

    fn copy(&self, name: &str, request: &CopyRequest) -> Result<Copied, RuntimeError> {
        let (dir, plan) = self.home.find(name)?;
        crate::copy::copy(&dir, &plan, request)
    }

    fn processes(&self, name: &str) -> Result<Vec<Process>, RuntimeError> {
        let (dir, plan) = self.home.find(name)?;
        dir.processes(&plan)
    }
}

/// Whether a line is of the time that was asked for.
fn is_within(line: &Line, request: LogRequest) -> bool {
    let Some(time) = crate::clock::milliseconds(&line.time) else { return true };
    request.since.is_none_or(|since| time >= since) && request.until.is_none_or(|until| time < until)
}

/// Whether a line is later than all that were asked for.
fn is_after(line: &Line, request: LogRequest) -> bool {
    let time = crate::clock::milliseconds(&line.time);
    request.until.zip(time).is_some_and(|(until, time)| time >= until)
}

fn lines_within(dir: &ContainerDir, request: LogRequest) -> Result<usize, RuntimeError> {
    let mut reader = Reader::open(&dir.log());
    let mut count = 0;
    while let Some(line) = reader.next_line()? {
        count += usize::from(is_within(&line, request));
    }
    Ok(count)
}

fn skip_within(reader: &mut Reader, request: LogRequest, mut count: usize) -> Result<(), RuntimeError> {
    while count > 0 {
        let Some(line) = reader.next_line()? else { return Ok(()) };
        count -= usize::from(is_within(&line, request));
    }
    Ok(())
}

/// A container of which nothing can be read but its id.
fn damaged(dir: &ContainerDir) -> Summary {
    let (id, state) = (dir.id(), "damaged".to_owned());
    Summary { name: id.clone(), id, state, ..Summary::default() }
}

fn summary(plan: &Plan, status: &Status) -> Summary {
    Summary {
        id: plan.id.clone(),
        name: plan.name.clone(),
        image: plan.image.clone(),
        command: plan.process.args.join(" "),
        state: status.state.word().to_owned(),
        created: plan.created,
        started: status.started,
        exit_code: status.exit_code,
        out_of_memory: status.out_of_memory,
        restarts: status.restarts,
        ready: status.ready,
        ports: status.ports.clone(),
        gpus: plan.gpus.as_ref().map(|gpus| gpus.devices.clone()),
        group: plan.group.clone(),
    }
}

/// Starts a watcher that goes on without us, and waits until its container runs.
pub fn start_detached(dir: &ContainerDir, private: &Private) -> Result<(), RuntimeError> {
    let (mut ready, theirs) =
        std::io::pipe().map_err(|error| RuntimeError::system("cannot hear from the watcher", error))?;
    let theirs: OwnedFd = theirs.into();
    let words = ["monitor".into(), dir.path().as_os_str().to_owned()];
    reexec::sealed_command(&words, private)?.spawn_detached(&theirs)?;
    // Only the watcher may hold it from here on, so that its end is seen.
    drop(theirs);
    let mut answer = String::new();
    ready
        .read_to_string(&mut answer)
        .map_err(|error| RuntimeError::system("cannot hear from the watcher", error))?;
    reexec::reported(&answer)
}
