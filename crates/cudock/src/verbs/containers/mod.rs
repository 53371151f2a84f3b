//! The verbs that run containers: `run`, `ps`, `logs`, `exec`, `stop`, `rm`, `wait`, `inspect-container`; those in [`life`],
//! `stats` and `volume`; and the hidden ones beside them.

mod args;
mod docker_flags;
mod failure;
mod group_names;
mod hidden;
mod home;
mod image;
mod life;
mod life_args;
mod print;
mod request;
mod stats;
mod volume;

use cudock_image::{Access, Pull};
use cudock_runtime::RuntimeError;
use cudock_runtime::engine::builtin::Builtin;
use cudock_runtime::engine::{Engine, LogRequest, other};
use cudock_runtime::exec::ExecRequest;
use cudock_runtime::flags;
use cudock_runtime::{headstart, rootless};

pub(crate) use self::args::{
    EngineArgs, EngineChoice, ExecArgs, InspectContainerArgs, LogsArgs, NetworkChoice, PruneArgs, PsArgs,
    RmArgs, RunArgs, StopArgs, WaitArgs,
};
pub(crate) use self::hidden::{JoinArgs, MonitorArgs, MonitorCli, forward, join, monitor};
pub(crate) use self::home::home;
pub(crate) use self::image::{access, announce_read, opener, platform, progress};
pub(crate) use self::life::{cp, images, kill, pull, restart, start, top};
pub(crate) use self::life_args::{
    CpArgs, ImagesArgs, KillArgs, PullArgs, RestartArgs, StartArgs, StatsArgs, TopArgs, VolumeArgs,
};
pub(crate) use self::print::ago;
pub(crate) use self::stats::stats;
pub(crate) use self::volume::volume;
use crate::failure::{Failure, Outcome};
use crate::output::{Format, json, line};
use cudock_base::format::fixed_bytes;

/// What is printed as JSON, behind the version of its form.
#[derive(serde::Serialize)]
struct Report {
    schema: u32,
    #[serde(flatten)]
    rest: serde_json::Value,
}

impl Report {
    fn of(rest: serde_json::Value) -> Self {
        Self { schema: 1, rest }
    }
}

/// The engine that was asked for.
fn engine(choice: EngineChoice, access: Access, quiet: bool) -> Result<Box<dyn Engine>, Failure> {
    match choice {
        EngineChoice::Docker => Ok(other::find("docker")?),
        EngineChoice::Podman => Ok(other::find("podman")?),
        EngineChoice::Auto | EngineChoice::Cudock => Ok(Box::new(builtin(access, quiet)?)),
    }
}

fn builtin(access: Access, quiet: bool) -> Result<Builtin, Failure> {
    rootless::become_root()?;
    Ok(Builtin { home: home()?, open: opener(access, quiet), progress: progress(quiet) })
}

fn plain_engine(words: &EngineArgs) -> Result<Box<dyn Engine>, Failure> {
    engine(words.engine, access(None, false), false)
}

/// The engine that has a container. Users other than root go to where its watcher is.
fn engine_of(words: &EngineArgs, container: Option<&String>) -> Result<Box<dyn Engine>, Failure> {
    if let Some(name) = container
        && group_names::find(words, name)?.is_some()
    {
        return Err(Failure::input(format!("{name} is a group, not a container"))
            .hint(format!("`cudock groups {name}` lists its containers, `cudock down {name}` stops it")));
    }
    let builtin = matches!(words.engine, EngineChoice::Auto | EngineChoice::Cudock);
    if let (Some(container), true, false) = (container, builtin, rootless::is_root()) {
        let watcher = home()?.find(container).and_then(|(dir, _)| dir.status()).map(|status| status.watcher);
        if let Ok(Some(watcher)) = watcher {
            rootless::join_watcher(watcher);
        }
    }
    plain_engine(words)
}

/// `cudock run`.
pub(crate) fn run(words: &RunArgs) -> Result<Outcome, Failure> {
    let platform = platform(words.platform.as_deref())?;
    if matches!(words.engine.engine, EngineChoice::Auto | EngineChoice::Cudock) && rootless::is_root() {
        headstart::begin();
    }
    let access = Access {
        platform,
        offline: words.offline,
        pull: words.pull.map(Pull::from),
        progress: progress(words.quiet),
    };
    let engine = engine(words.engine.engine, access, words.quiet)?;
    let request = request::request(words)?;
    Ok(Outcome::Program(engine.run(request)?))
}

/// `cudock ps`.
pub(crate) fn ps(words: &PsArgs, format: Format) -> Result<Outcome, Failure> {
    let containers = plain_engine(&words.engine)?.list(words.all)?;
    match format {
        Format::Text if words.quiet => containers.iter().for_each(|container| line(&container.id)),
        Format::Text => print::list(&containers),
        Format::Json => json(&Report::of(serde_json::json!({ "containers": containers }))),
    }
    Ok(Outcome::Yes)
}

/// `cudock logs`.
pub(crate) fn logs(words: &LogsArgs) -> Result<Outcome, Failure> {
    let tail = match words.tail.as_deref() {
        None | Some("all") => None,
        Some(text) => Some(text.parse().map_err(|_| {
            Failure::input(format!("--tail {text} is not a number of lines"))
                .hint("--tail 100, or --tail all")
        })?),
    };
    let moment = |flag, text: &Option<String>| {
        text.as_deref()
            .map(|text| flags::point_in_time(flag, text, cudock_runtime::status::now()))
            .transpose()
    };
    let request = LogRequest {
        follow: words.follow,
        tail,
        timestamps: words.timestamps,
        since: moment("--since", &words.since)?,
        until: moment("--until", &words.until)?,
    };
    if let Some(group) = group_names::find(&words.engine, &words.container)? {
        cudock_runtime::group::logs(&home()?, &group, request)?;
        return Ok(Outcome::Yes);
    }
    engine_of(&words.engine, Some(&words.container))?.logs(&words.container, request)?;
    Ok(Outcome::Yes)
}

/// `cudock exec`.
pub(crate) fn exec(words: &ExecArgs) -> Result<Outcome, Failure> {
    let request = ExecRequest {
        args: words.command.clone(),
        environment: flags::variables(&words.env, &[])?,
        user: words.user.clone(),
        cwd: words.workdir.clone(),
        tty: words.tty,
        stdin: words.interactive,
    };
    let container = group_names::only_container(&words.engine, &words.container)?;
    Ok(Outcome::Program(engine_of(&words.engine, Some(&container))?.exec(&container, &request)?))
}

/// `cudock stop`.
pub(crate) fn stop(words: &StopArgs) -> Result<Outcome, Failure> {
    let engine = engine_of(&words.engine, words.containers.first())?;
    each(&words.containers, engine.stop_all(&words.containers, words.time))
}

/// `cudock rm`.
pub(crate) fn rm(words: &RmArgs) -> Result<Outcome, Failure> {
    let engine = engine_of(&words.engine, words.containers.first())?;
    let containers = if words.all {
        engine.list(true)?.into_iter().map(|container| container.name).collect()
    } else {
        words.containers.clone()
    };
    let removed = containers.iter().map(|container| engine.remove(container, words.force)).collect();
    each(&containers, removed)
}

/// Names the containers for which it went well. The first error comes last, after all others.
fn each(containers: &[String], results: Vec<Result<(), RuntimeError>>) -> Result<Outcome, Failure> {
    let mut failures = Vec::new();
    for (container, result) in containers.iter().zip(results) {
        match result {
            Ok(()) => line(container),
            Err(error) => failures.push(Failure::from(error)),
        }
    }
    let mut failures = failures.into_iter();
    let Some(first) = failures.next() else { return Ok(Outcome::Yes) };
    failures.for_each(|failure| failure.print());
    Err(first)
}

/// `cudock prune`.
pub(crate) fn prune(format: Format) -> Result<Outcome, Failure> {
    let engine = builtin(access(None, false), false)?;
    let pruned = engine.prune()?;
    let groups = engine.home.prune_groups()?;
    match format {
        Format::Text => {
            line(format!("removed {} layers, {}", pruned.layers, fixed_bytes(pruned.bytes)));
            if groups > 0 {
                line(format!("removed control groups of {groups} containers"));
            }
        }
        Format::Json => json(&Report::of(serde_json::json!({
            "layers": pruned.layers, "bytes": pruned.bytes, "control_groups": groups,
        }))),
    }
    Ok(Outcome::Yes)
}

/// `cudock wait`.
pub(crate) fn wait(words: &WaitArgs, format: Format) -> Result<Outcome, Failure> {
    let engine = plain_engine(&words.engine)?;
    let mut ended = serde_json::Map::new();
    for container in &words.containers {
        let code = match group_names::find(&words.engine, container)? {
            Some(group) => cudock_runtime::group::wait(&home()?, &group)?,
            None => engine.wait(container)?,
        };
        if format == Format::Text {
            line(code.to_string());
        }
        ended.insert(container.clone(), code.into());
    }
    if format != Format::Text {
        json(&Report::of(serde_json::json!({ "exit_codes": ended })));
    }
    Ok(Outcome::Yes)
}

/// `cudock inspect-container`.
pub(crate) fn inspect(words: &InspectContainerArgs) -> Result<Outcome, Failure> {
    let engine = engine_of(&words.engine, words.containers.first())?;
    let known: Result<Vec<_>, _> = words.containers.iter().map(|name| engine.inspect(name)).collect();
    let mut known = known?;
    match (known.pop(), known.is_empty()) {
        (Some(only), true) => json(&Report::of(only)),
        (last, _) => {
            known.extend(last);
            json(&Report::of(serde_json::json!({ "containers": known })));
        }
    }
    Ok(Outcome::Yes)
}
