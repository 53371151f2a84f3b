//! Plans of `cudock run` for command lines from the documentation of popular images, compared with
//! docker's.

use std::ffi::OsString;

use clap::Parser;
use clap::error::{ContextKind, ContextValue};
use cudock_cli::{Cli, Verb, docker};
use cudock_runtime::container::config::{
    ContainerConfig, Ipc, MountConfig, NetworkMode, Propagation, Restart, Rlimit, Seccomp,
};
use cudock_runtime::container::home::Home;
use cudock_runtime::engine::RunRequest;
use cudock_testkit::docker_lines::{DockerLine, Shell, docker_lines};

use super::request_in;

/// Shared memory, and the limit on processes, which docker does not have by default.
const SHM: u64 = 64 << 20;

/// The request that a line makes, or the error of `cudock run`.
fn request(arguments: &[String], shell: &Shell, home: &Home) -> Result<RunRequest, String> {
    let arguments = ["cudock", "run"].map(str::to_owned).into_iter().chain(arguments.iter().cloned());
    let cli = Cli::try_parse_from(arguments.map(OsString::from)).map_err(|error| {
        let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else {
            return error.to_string();
        };
        format!("{:?}", crate::failure::Failure::from(docker::unknown_flag(flag, &[])))
    })?;
    let Verb::Run(args) = cli.verb else { panic!("{:?}", cli.verb) };
    request_in(&args, &shell.directory, Some(home)).map_err(|failure| format!("{failure:?}"))
}

#[test]
fn up_starts_an_image_as_run_without_flags_does() {
    let parsed = Cli::try_parse_from(["cudock", "run", "team/app:1"]).unwrap();
    let Verb::Run(args) = parsed.verb else { panic!("not run") };
    let directory = tempfile::tempdir().unwrap();
    let parsed = request_in(&args, directory.path(), None).unwrap();
    let mut plain = RunRequest::of_image("team/app:1").unwrap();
    assert_eq!(plain.config.name.split('-').next(), Some("app"));
    plain.config.id.clone_from(&parsed.config.id);
    plain.config.name.clone_from(&parsed.config.name);
    plain.config.created = parsed.config.created;
    assert_eq!(format!("{plain:?}"), format!("{parsed:?}"));
}

#[test]
fn documented_command_lines_make_the_containers_that_docker_makes_or_are_refused_with_an_alternative() {
    if cudock_testkit::require_program("pasta").is_none() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let shell = Shell { home: directory.path().join("home"), directory: directory.path().to_owned() };
    let home = Home::at(directory.path().join("data"));
    let mut wrong = Vec::new();
    for line in docker_lines() {
        let arguments = existing(&line, &shell, line.words(&shell));
        let outcome = match (&line.refused, request(&arguments, &shell, &home)) {
            // Only a start finds it.
            (Some(flag), Ok(_)) if flag == "/sys" => Ok(()),
            (Some(flag), Err(error)) => refused(&line, flag, &error),
            (Some(flag), Ok(_)) => Err(format!("{flag} was not refused")),
            (None, Ok(request)) => same(&line, &arguments, &shell, &request),
            (None, Err(error)) => Err(error),
        };
        wrong.extend(outcome.err().map(|error| format!("{}\n    {}\n    {error}", line.source, line.line)));
    }
    assert!(wrong.is_empty(), "{} lines:\n{}", wrong.len(), wrong.join("\n"));
}

/// The arguments with sources below the shell's directory for those that must exist.
fn existing(line: &DockerLine, shell: &Shell, arguments: Vec<String>) -> Vec<String> {
    let mut arguments = arguments;
    for source in line.existing.iter().filter(|source| source.starts_with('/')) {
        let own = shell.directory.join(source.trim_matches('/'));
        std::fs::create_dir_all(&own).unwrap();
        for word in &mut arguments {
            *word = word.replace(&format!("source={source},"), &format!("source={},", own.display()));
        }
    }
    arguments
}

fn refused(line: &DockerLine, flag: &str, error: &str) -> Result<(), String> {
    let instead = line.instead.as_deref().unwrap();
    if error.contains(flag) && error.contains(instead) {
        Ok(())
    } else {
        Err(format!("not {flag}, {instead}: {error}"))
    }
}

/// Compares one thing.
#[allow(clippy::needless_pass_by_value, reason = "both are often made for it")]
fn compare<T: PartialEq + std::fmt::Debug>(what: &str, ours: T, dockers: T) -> Result<(), String> {
    if ours == dockers { Ok(()) } else { Err(format!("{what}: {ours:?}, in docker {dockers:?}")) }
}

fn same(line: &DockerLine, arguments: &[String], shell: &Shell, request: &RunRequest) -> Result<(), String> {
    let config = &request.config;
    compare("image", &config.image, &line.image)?;
    compare("command", &request.command, &line.command)?;
    compare("entrypoint", request.entrypoint.clone(), line.entrypoint.clone().map(|program| vec![program]))?;
    let switches = [config.remove, request.detach, config.process.tty, config.process.stdin];
    compare("switches", switches, [line.rm, line.detach, line.tty, line.stdin])?;
    if let Some(name) = &line.name {
        compare("name", &config.name, name)?;
    }
    compare("user", request.user.clone(), line.user.as_ref().map(|user| shell.expand(user)))?;
    compare("workdir", &request.cwd, &line.workdir)?;
    let passed_on = line.passed_on(arguments);
    let given = line.env.iter().filter_map(|variable| variable.split_once('='));
    let given = given.map(|(name, value)| (name.to_owned(), shell.expand(value)));
    // Those that are passed on by name are not set in this process.
    let given: Vec<_> =
        given.filter(|(name, _)| !passed_on.iter().any(|(passed, _)| passed == name)).collect();
    compare("env", request.private.environment.clone(), given)?;
    compare("pull", request.pull.map(cudock_runtime::engine::Pull::name), line.pull.as_deref())?;
    compare("publish all", request.publish_all.is_some(), line.publish_all)?;
    let gpus = config.gpus.as_ref().map(|gpus| gpus.devices.trim_matches('"').to_owned());
    compare("gpus", gpus, line.gpus.clone())?;
    let restart = line.restart.as_deref().map_or(Restart::No, |_| Restart::Always);
    compare("restart", config.restart, restart)?;
    same_files(line, shell, config)?;
    same_limits(line, config)
}

fn same_files(line: &DockerLine, shell: &Shell, config: &ContainerConfig) -> Result<(), String> {
    let mounts: Vec<(String, String, bool)> = config
        .mounts
        .iter()
        .map(|mount| match mount {
            MountConfig::Bind {
                source,
                target,
                create,
                read_only: false,
                propagation: Propagation::Private,
            } => (source.display().to_string(), target.display().to_string(), *create),
            MountConfig::Volume { name, target, read_only: false, copy: true, .. } => {
                (name.clone(), target.display().to_string(), false)
            }
            other => (format!("{other:?}"), String::new(), false),
        })
        .collect();
    let bind = |text: &String| {
        let (source, target) = shell.mount(text);
        let must_exist = line.existing.contains(&source) || line.line.contains("--mount");
        let own = shell.directory.join(source.trim_matches('/')).display().to_string();
        (if line.existing.contains(&source) { own } else { source }, target, !must_exist)
    };
    let volume = |text: &String| {
        let (name, target) = text.split_once(':').unwrap();
        (name.to_owned(), target.to_owned(), false)
    };
    compare("mounts", mounts, line.binds.iter().map(bind).chain(line.volumes.iter().map(volume)).collect())?;
    let devices =
        config.security.devices.iter().map(|device| device.host.display().to_string()).collect::<Vec<_>>();
    compare("devices", devices, line.devices.clone())
}

fn same_limits(line: &DockerLine, config: &ContainerConfig) -> Result<(), String> {
    compare("ports", &config.network.publish, &line.ports)?;
    let shared = line.network.as_deref() == Some("host");
    compare("network", &config.network.mode, if shared { &NetworkMode::Host } else { &NetworkMode::Pasta })?;
    let hosts =
        config.network.hosts.iter().map(|(name, address)| format!("{name}:{address}")).collect::<Vec<_>>();
    compare("hosts", hosts, line.hosts.clone())?;
    let ipc = if line.ipc.as_deref() == Some("host") { Ipc::Host } else { Ipc::Private };
    compare("ipc", config.ipc, ipc)?;
    compare("shared memory", config.limits.shm, Some(line.shm.unwrap_or(SHM)))?;
    let limit = |text: &String| {
        let (name, value) = text.split_once('=').unwrap();
        let value = if value == "unlimited" { u64::MAX } else { value.parse().unwrap() };
        Rlimit { name: name.to_owned(), soft: value, hard: value }
    };
    compare("ulimits", config.limits.rlimits.clone(), line.ulimits.iter().map(limit).collect())?;
    let mut capabilities = cudock_runtime::capabilities(&[], &[]);
    capabilities.extend(line.cap_add.iter().map(|name| format!("CAP_{name}")));
    let sorted = |mut names: Vec<String>| {
        names.sort();
        names.dedup();
        names
    };
    compare("capabilities", sorted(config.security.capabilities.clone()), sorted(capabilities))?;
    let seccomp = if line.seccomp.is_some() { Seccomp::Unconfined } else { Seccomp::Default };
    compare("seccomp", &config.security.seccomp, &seccomp)?;
    compare("groups", &config.process.groups, &line.groups)
}
