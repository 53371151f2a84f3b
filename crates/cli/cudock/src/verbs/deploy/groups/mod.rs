//! The verbs for groups: `up`, `down`, `groups`, and the hidden `supervise`.

mod image;
mod request;
mod text;

use std::path::Path;

use cudock_cli::{DownArgs, GroupsArgs, SuperviseArgs, UpArgs};
use cudock_facts::Facts;
use cudock_group::Group;
use cudock_group::restart::GroupState;
use cudock_runtime::Connection;
use cudock_runtime::container::home::Home;
use cudock_runtime::engine::LogRequest;
use cudock_runtime::flags;
use cudock_runtime::group::flags::UpSource;
use cudock_runtime::group::{self, GroupDir, GroupHandover, GroupLock, GroupStatus, StartOutcome};
use cudock_runtime::namespace::{reexec, rootless};
use schemars::JsonSchema;
use serde::Serialize;

use crate::failure::{Failure, Outcome};
use crate::output::{self, BOLD, Format, line, styled};
use crate::steps::cloud::deployment_named;
use crate::steps::engine::{home, own_engine};
use crate::steps::group_file;
use crate::steps::images::access;
use crate::steps::serve::{ServeRequest, serve};
use crate::verbs::deploy::deployments;

#[derive(Serialize, JsonSchema)]
pub(crate) struct GroupsReport<'a> {
    groups: &'a [GroupStatus],
}

/// Lines of each log that are printed for a group that did not become ready.
const LAST_LINES: usize = 5;

/// `cudock up`.
pub(crate) fn up(args: &UpArgs, facts: impl FnOnce() -> Result<Facts, Failure>) -> Result<Outcome, Failure> {
    if args.deploy.on.is_some() {
        return deployments::up(&facts()?, args);
    }
    match group::flags::find_source(args.directory.as_deref(), args.file.as_deref())? {
        UpSource::Project(directory) if has_image(&directory)? => image::up(&directory, args, &facts()?),
        UpSource::Project(directory) => serve_project(&directory, args),
        UpSource::Group(file) => up_group(args, &file),
    }
}

/// Whether a project describes an image, which is then built and run.
fn has_image(directory: &Path) -> Result<bool, Failure> {
    Ok(cudock_project::Project::open(directory)?.manifest.image.is_some())
}

/// Serves a project exactly as `cudock serve` does.
fn serve_project(directory: &Path, args: &UpArgs) -> Result<Outcome, Failure> {
    if args.detach || args.name.is_some() || !args.publish.is_empty() || !args.volume.is_empty() {
        return Err(Failure::input(format!("{} is a project to serve, not a group", directory.display()))
            .hint("`cudock serve` has the options for it; -f FILE runs a group"));
    }
    serve(&ServeRequest::of_project(directory, args.port, args.offline))
}

fn up_group(args: &UpArgs, file: &Path) -> Result<Outcome, Failure> {
    if args.port.is_some() {
        return Err(Failure::input(format!("--port is for projects, and {} is a group", file.display()))
            .hint("-p HOST:CONTAINER publishes a port of a group"));
    }
    let (text, mut reading) = group_file::read(file)?;
    if let Some(name) = &args.name {
        group::flags::check_name(name)?;
        reading.group.name.clone_from(name);
    }
    let settings = request::settings(args, &reading.group)?;
    group::flags::check_volumes(file, &reading.group, &settings)?;
    // Users other than root re-execute the command in a namespace here, so notes come after.
    rootless::become_root()?;
    let home = home()?;
    text::notes(file, &reading, &settings);
    request::enter_directory_of(file)?;
    let engine = own_engine(home, access(None, args.offline));
    let limit = Some(flags::duration(&args.timeout)?).filter(|limit| !limit.is_zero());
    let (dir, lock) = group::create(&engine, &reading.group, &settings)?;
    let name = reading.group.name.clone();
    let handover = GroupHandover::new(text, name.clone(), engine.home.root().to_owned(), &settings);
    if !args.detach {
        // Returns only with an error: the supervisor replaces this process.
        return Err(group::become_supervisor(&dir, &lock, &handover)?.into());
    }
    match group::start_detached(&dir, lock, &handover, limit)? {
        StartOutcome::Ready => {
            line(&name);
            Ok(Outcome::Yes)
        }
        StartOutcome::NotReady(reason) => not_ready(args, &engine.home, &dir, &reason),
        StartOutcome::TimedOut => timed_out(args, &engine.home, &dir, &reading.group),
    }
}

/// Reports the container that is not ready in time and its last probe, and removes the group.
fn timed_out(args: &UpArgs, home: &Home, dir: &GroupDir, group: &Group) -> Result<Outcome, Failure> {
    let name = &group.name;
    let status = dir.status()?;
    let waiting = status.as_ref().and_then(GroupStatus::unready);
    let reason =
        waiting.map_or_else(|| "it is not ready".to_owned(), |container| container.unready_reason(group));
    let failure =
        Failure::with_code(format!("group {name} is not ready after {}: {reason}", args.timeout), 1);
    remove_failed(args, home, dir, waiting.map(|container| container.name.as_str()))?;
    let next = "--timeout TIME waits longer";
    Err(failure.hint(if args.keep {
        kept(name)
    } else {
        format!("the group was removed; --keep leaves it running, {next}")
    }))
}

/// Reports why a group did not become ready, and removes it if it still runs: one that has ended keeps its logs.
fn not_ready(args: &UpArgs, home: &Home, dir: &GroupDir, reason: &str) -> Result<Outcome, Failure> {
    let name = dir.name();
    let failure = Failure::with_code(format!("group {name} is not ready: {reason}"), 1);
    let failed = reason
        .split(':')
        .next()
        .filter(|container| home.find(&group::container_name(&name, container)).is_ok());
    if dir.status()?.is_some_and(|status| status.state.is_alive()) && !args.keep {
        remove_failed(args, home, dir, failed)?;
        return Err(failure.hint("the group was removed; --keep leaves it running"));
    }
    let failure = match failed {
        Some(container) => failure.hint(format!("`cudock logs {name}/{container}` shows what it wrote")),
        None => failure,
    };
    Err(failure.hint(kept(&name)))
}

/// Shows the last lines of the container that keeps a group from being ready, and removes the group, unless it is to be kept.
fn remove_failed(args: &UpArgs, home: &Home, dir: &GroupDir, container: Option<&str>) -> Result<(), Failure> {
    if args.keep {
        return Ok(());
    }
    if let Some(container) = container {
        let request = LogRequest { tail: Some(LAST_LINES), ..LogRequest::default() };
        anstream::eprintln!("{} {}/{container}:", styled(BOLD, "last lines of"), dir.name());
        group::logs(home, dir, request)?;
    }
    Ok(group::down(home, &dir.name(), None)?)
}

fn kept(name: &str) -> String {
    format!("list its containers with `cudock groups {name}`, stop it with `cudock down {name}`")
}

/// `cudock down`.
pub(crate) fn down(args: &DownArgs) -> Result<Outcome, Failure> {
    if args.all {
        return deployments::down_all();
    }
    let name = match (&args.name, &args.file) {
        (Some(name), _) => {
            if deployment_named(name)?.is_some() {
                return deployments::down(name);
            }
            group::flags::check_name(name)?;
            name.clone()
        }
        (None, Some(file)) => group_file::read(file)?.1.group.name,
        (None, None) => return Err(Failure::input("no group").hint("cudock down NAME, or -f FILE")),
    };
    rootless::become_root()?;
    group::down(&home()?, &name, args.time)?;
    line(name);
    Ok(Outcome::Yes)
}

/// `cudock groups`.
pub(crate) fn groups(args: &GroupsArgs, format: Format) -> Result<Outcome, Failure> {
    rootless::become_root()?;
    let mut groups = group::list(&home()?)?;
    if let Some(name) = &args.name {
        groups.retain(|group| group.name == *name);
        if groups.is_empty() {
            return Err(cudock_runtime::RuntimeError::UnknownGroup(name.clone()).into());
        }
    }
    match format {
        Format::Text => text::list(&groups, args.name.is_some()),
        Format::Json => output::report(&GroupsReport { groups: &groups }),
    }
    Ok(Outcome::Yes)
}

/// The hidden verb that supervises a group.
pub(crate) fn supervise(args: &SuperviseArgs) -> Result<Outcome, Failure> {
    let dir = GroupDir::at(&args.group);
    let handover: GroupHandover = reexec::inherited(args.handed)?;
    let lock = GroupLock::from(reexec::take_over(args.lock));
    let ready = args.ready.map(reexec::take_over);
    if !args.attached {
        reexec::leave_session();
    }
    let name = dir.name();
    match group::supervise(&dir, lock, &handover, Connection { attached: args.attached, ready, lock: None }) {
        Ok(GroupState::Failed) => {
            if args.attached {
                anstream::eprintln!("{} see `cudock groups {name}`", styled(BOLD, "the group failed:"));
            }
            Ok(Outcome::No)
        }
        Ok(_) => Ok(Outcome::Yes),
        // The process that reads `ready` prints it.
        Err(error) if args.ready.is_some() => Ok(Outcome::Program(cudock_runtime::exit_code(&error))),
        Err(error) => Err(error.into()),
    }
}
