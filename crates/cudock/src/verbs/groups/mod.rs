//! The verbs for groups: `up`, `down`, `groups`, and the hidden `supervise`.

mod args;
mod print;
mod read;
mod request;

use std::path::Path;

use cudock_group::Group;
use cudock_group::restart::GroupState;
use cudock_runtime::engine::LogRequest;
use cudock_runtime::engine::builtin::Builtin;
use cudock_runtime::flags;
use cudock_runtime::group::{self, Connection, GroupDir, GroupLock, GroupStatus, Handover, Started};
use cudock_runtime::home::Home;
use cudock_runtime::{reexec, rootless};

pub(crate) use self::args::{DownArgs, GroupsArgs, SuperviseArgs, UpArgs};
use self::read::Source;
use crate::failure::{Failure, Outcome};
use crate::output::{BOLD, Format, json, line, styled};
use crate::verbs::containers::{access, home, opener, progress};
use crate::verbs::serve::{self, ServeArgs};

/// So many lines of each container are shown of a group that did not become ready.
const LAST_LINES: usize = 5;

/// `cudock up`.
pub(crate) fn up(words: &UpArgs) -> Result<Outcome, Failure> {
    match read::source(words.directory.as_deref(), words.file.as_deref())? {
        Source::Project(directory) => serve_project(&directory, words),
        Source::Group(file) => up_group(words, &file),
    }
}

/// Serves a project exactly as `cudock serve` does.
fn serve_project(directory: &Path, words: &UpArgs) -> Result<Outcome, Failure> {
    if words.detach || words.name.is_some() || !words.publish.is_empty() || !words.volume.is_empty() {
        return Err(Failure::input(format!("{} is a project to serve, not a group", directory.display()))
            .hint("`cudock serve` has the options for it; -f FILE runs a group"));
    }
    serve::run(&ServeArgs::of_project(directory, words.port, words.offline))
}

fn up_group(words: &UpArgs, file: &Path) -> Result<Outcome, Failure> {
    if words.port.is_some() {
        return Err(Failure::input(format!("--port is for projects, and {} is a group", file.display()))
            .hint("-p HOST:CONTAINER publishes a port of a group"));
    }
    let (text, mut reading) = read::read(file)?;
    if let Some(name) = &words.name {
        group::flags::check_name(name)?;
        reading.group.name.clone_from(name);
    }
    let settings = request::settings(words, &reading.group)?;
    group::flags::check_volumes(file, &reading.group, &settings)?;
    // Who is not root goes on as root of a namespace: the words are said again there, so notes come after.
    rootless::become_root()?;
    let home = home()?;
    read::print_notes(file, &reading, &settings);
    request::enter_directory_of(file)?;
    let engine =
        Builtin { home, open: opener(access(None, words.offline), false), progress: progress(false) };
    let limit = Some(flags::duration(&words.timeout)?).filter(|limit| !limit.is_zero());
    let (dir, lock) = group::make(&engine, &reading.group, &settings)?;
    let name = reading.group.name.clone();
    let handover = Handover::new(text, name.clone(), engine.home.root().to_owned(), &settings);
    if !words.detach {
        // Comes back only with an error: the supervisor takes this process over.
        return Err(group::take_over(&dir, &lock, &handover)?.into());
    }
    match group::start_detached(&dir, lock, &handover, limit)? {
        Started::Ready => {
            line(&name);
            Ok(Outcome::Yes)
        }
        Started::NotReady(why) => Err(not_ready(&engine.home, &name, &why)),
        Started::TimedOut => timed_out(words, &engine.home, &dir, &reading.group),
    }
}

/// The time for a group to become ready is over: says who is not and what it last answered, and removes the group.
fn timed_out(words: &UpArgs, home: &Home, dir: &GroupDir, group: &Group) -> Result<Outcome, Failure> {
    let name = &group.name;
    let status = dir.status()?;
    let waiting = status.as_ref().and_then(GroupStatus::unready);
    let why = waiting.map_or_else(|| "it is not ready".to_owned(), |container| container.why_unready(group));
    let failure = Failure::with_code(format!("group {name} is not ready after {}: {why}", words.timeout), 1);
    if words.keep {
        return Err(failure
            .hint(format!("`cudock groups {name}` shows its containers; `cudock down {name}` ends it")));
    }
    if let Some(container) = waiting {
        let request = LogRequest { tail: Some(LAST_LINES), ..LogRequest::default() };
        anstream::eprintln!("{} {name}/{}:", styled(BOLD, "last lines of"), container.name);
        group::logs(home, dir, request)?;
    }
    group::down(home, name, None)?;
    Err(failure.hint("the group was removed; --keep leaves it running, --timeout TIME waits longer"))
}

fn not_ready(home: &Home, name: &str, why: &str) -> Failure {
    let failure = Failure::with_code(format!("group {name} is not ready: {why}"), 1);
    let container =
        why.split(':').next().filter(|container| home.find(&group::container_name(name, container)).is_ok());
    let failure = match container {
        Some(container) => failure.hint(format!("`cudock logs {name}/{container}` shows what it wrote")),
        None => failure.hint(format!("`cudock groups {name}` shows its containers")),
    };
    failure.hint(format!("`cudock down {name}` ends it"))
}

/// `cudock down`.
pub(crate) fn down(words: &DownArgs) -> Result<Outcome, Failure> {
    let name = match (&words.name, &words.file) {
        (Some(name), _) => {
            group::flags::check_name(name)?;
            name.clone()
        }
        (None, Some(file)) => read::read(file)?.1.group.name,
        (None, None) => return Err(Failure::input("no group").hint("cudock down NAME, or -f FILE")),
    };
    rootless::become_root()?;
    group::down(&home()?, &name, words.time)?;
    line(name);
    Ok(Outcome::Yes)
}

/// `cudock groups`.
pub(crate) fn groups(words: &GroupsArgs, format: Format) -> Result<Outcome, Failure> {
    rootless::become_root()?;
    let mut groups = group::list(&home()?)?;
    if let Some(name) = &words.name {
        groups.retain(|group| group.name == *name);
        if groups.is_empty() {
            return Err(cudock_runtime::RuntimeError::UnknownGroup(name.clone()).into());
        }
    }
    match format {
        Format::Text => print::list(&groups, words.name.is_some()),
        Format::Json => json(&serde_json::json!({ "schema": 1, "groups": groups })),
    }
    Ok(Outcome::Yes)
}

/// The hidden verb that supervises a group.
pub(crate) fn supervise(words: &SuperviseArgs) -> Result<Outcome, Failure> {
    let dir = GroupDir::at(&words.group);
    let handover: Handover = reexec::inherited(words.handed)?;
    let lock = GroupLock::from(reexec::take_over(words.lock));
    let ready = words.ready.map(reexec::take_over);
    if !words.attached {
        reexec::leave_session();
    }
    let name = dir.name();
    match group::supervise(&dir, lock, &handover, Connection { attached: words.attached, ready }) {
        Ok(GroupState::Failed) => {
            if words.attached {
                anstream::eprintln!("{} `cudock groups {name}` says why", styled(BOLD, "the group failed:"));
            }
            Ok(Outcome::No)
        }
        Ok(_) => Ok(Outcome::Yes),
        // Whoever waits for `ready` prints it.
        Err(error) if words.ready.is_some() => Ok(Outcome::Program(cudock_runtime::exit_code(&error))),
        Err(error) => Err(error.into()),
    }
}
