//! The verbs for groups: `up`, `down`, `groups`, and the hidden `supervise`.

mod args;
mod print;
mod read;
mod request;

use std::path::Path;

use clap::Parser;
use cudock_group::restart::GroupState;
use cudock_runtime::engine::builtin::Builtin;
use cudock_runtime::group::{self, Connection, GroupDir, GroupLock, Handover, Started};
use cudock_runtime::home::Home;
use cudock_runtime::{reexec, rootless};

pub(crate) use self::args::{DownArgs, GroupsArgs, SuperviseArgs, UpArgs};
use self::read::Source;
use crate::cli::{Cli, Verb};
use crate::failure::{Failure, Outcome};
use crate::output::{BOLD, Format, json, line, styled};
use crate::verbs::containers::{Wish, home, opener};
use crate::verbs::serve;

/// `cudock up`.
pub(crate) fn up(words: &UpArgs) -> Result<Outcome, Failure> {
    match read::source(words.folder.as_deref(), words.file.as_deref())? {
        Source::Project(folder) => serve_project(&folder, words),
        Source::Group(file) => up_group(words, &file),
    }
}

/// Serves a project exactly as `cudock serve` does.
fn serve_project(folder: &Path, words: &UpArgs) -> Result<Outcome, Failure> {
    if words.detach || words.name.is_some() || !words.publish.is_empty() || !words.volume.is_empty() {
        return Err(Failure::input(format!("{} is a project to serve, not a group", folder.display()))
            .hint("`cudock serve` has the options for it; -f FILE runs a group"));
    }
    let mut again = vec!["cudock".into(), "serve".into(), folder.as_os_str().to_owned()];
    if let Some(port) = words.port {
        again.extend(["--port".into(), port.to_string().into()]);
    }
    if words.offline {
        again.push("--offline".into());
    }
    match Cli::parse_from(again).verb {
        Verb::Serve(words) => serve::run(&words),
        _ => Err(Failure::input("nothing to serve")),
    }
}

fn up_group(words: &UpArgs, file: &Path) -> Result<Outcome, Failure> {
    if words.port.is_some() {
        return Err(Failure::input(format!("--port is for projects, and {} is a group", file.display()))
            .hint("-p HOST:CONTAINER publishes a port of a group"));
    }
    let (text, mut reading) = read::group(file)?;
    if let Some(name) = &words.name {
        reading.group.name = request::checked_name(name)?;
    }
    let settings = request::settings(words, &reading.group)?;
    read::check_volumes(file, &reading.group, &settings)?;
    // Who is not root goes on as root of a namespace: the words are said again there, so notes come after.
    rootless::become_root()?;
    let home = home()?;
    read::print_notes(file, &reading, &settings);
    request::stand_beside(file)?;
    let engine = Builtin {
        home,
        open: opener(Wish { platform: None, offline: words.offline }),
        progress: Box::new(crate::verbs::progress::Lines::default()),
    };
    let (dir, lock) = group::make(&engine, &reading.group, &settings)?;
    let name = reading.group.name;
    let handover = Handover::new(text, name.clone(), engine.home.root().to_owned(), &settings);
    if !words.detach {
        // Comes back only with an error: the supervisor takes this process over.
        return Err(group::take_over(&dir, &lock, &handover)?.into());
    }
    match group::start_detached(&dir, lock, &handover)? {
        Started::Ready => {
            line(&name);
            Ok(Outcome::Yes)
        }
        Started::NotReady(why) => Err(not_ready(&engine.home, &name, &why)),
    }
}

fn not_ready(home: &Home, name: &str, why: &str) -> Failure {
    let failure = Failure::program(format!("group {name} is not ready: {why}"), 1);
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
        (Some(name), _) => request::checked_name(name)?,
        (None, Some(file)) => read::group(file)?.1.group.name,
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
        _ => json(&serde_json::json!({ "schema": 1, "groups": groups })),
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
