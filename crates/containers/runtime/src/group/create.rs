//! Creates the containers of a group.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use cudock_confine::{CapabilityChange, ConfineError};
use cudock_group::{Container, Group, Os, VariableValue};

use super::dir::{GroupDir, GroupLock};
use super::flags::GroupSettings;
use super::{gpus, volumes};
use crate::container::config::{
    ContainerConfig, GpuConfig, Ipc, Limits, LogConfig, NetworkConfig, NetworkMode, Private, ProcessConfig,
    Restart, Seccomp, Security,
};
use crate::container::home::new_id;
use crate::container::status::now;
use crate::engine::builtin::Builtin;
use crate::engine::{Engine, RunRequest};
use crate::error::RuntimeError;
use crate::flags::MIN_MEMORY;
use crate::start::capabilities::capabilities;
use crate::start::seccomp::check_seccomp;

/// How long a supervisor may take to exit after its group has ended.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// Creates the containers of a group and unpacks their images. Leftovers of an earlier group of the same name are removed
/// first. The caller must start the supervisor.
pub fn create(
    engine: &Builtin,
    group: &Group,
    settings: &GroupSettings,
) -> Result<(GroupDir, GroupLock), RuntimeError> {
    check(group)?;
    let home = &engine.home;
    let dir = GroupDir::of(home, &group.name);
    let Some(lock) = lock(&dir)? else {
        return Err(RuntimeError::Request(format!(
            "group `{name}` is already running: stop it with `cudock down {name}`, or use another --name",
            name = group.name,
        )));
    };
    match create_locked(engine, group, settings, &dir, &lock) {
        Ok(()) => Ok((dir, lock)),
        Err(error) => {
            // The first error is the one to report.
            let _ = dir.remove(home, lock);
            Err(error)
        }
    }
}

/// Locks a group. If it has ended, waits for its supervisor to exit.
fn lock(dir: &GroupDir) -> Result<Option<GroupLock>, RuntimeError> {
    let began = Instant::now();
    loop {
        let lock = dir.lock()?;
        let ended = || dir.status().map(|status| status.is_some_and(|status| !status.state.is_alive()));
        if lock.is_some() || !ended()? || began.elapsed() > LOCK_TIMEOUT {
            return Ok(lock);
        }
    }
}

fn create_locked(
    engine: &Builtin,
    group: &Group,
    settings: &GroupSettings,
    dir: &GroupDir,
    lock: &GroupLock,
) -> Result<(), RuntimeError> {
    dir.clear(&engine.home, lock)?;
    let gpus = gpus::assign(group, &engine.home, settings)?;
    let mut requests = Vec::new();
    for container in group.all_containers() {
        requests.push(request(group, container, dir, settings, gpus.get(&container.name))?);
    }
    let mut held = Vec::new();
    for request in &mut requests {
        let image = engine.find_image(&request.config.image)?;
        held.push(
            engine.complete(request, &image).map_err(|error| in_container(&request.config.name, error))?,
        );
    }
    for (request, held) in requests.iter().zip(&held) {
        let created = engine.home.create(&request.config)?;
        held.apply_root_metadata(created.dir())?;
        created.keep();
    }
    Ok(())
}

/// Adds the container to an invalid request.
fn in_container(name: &str, error: RuntimeError) -> RuntimeError {
    match error {
        RuntimeError::Request(text) => RuntimeError::Request(format!("container {name}: {text}")),
        other => other,
    }
}

/// The name of a group's container among all containers.
pub fn container_name(group: &str, container: &str) -> String {
    format!("{group}.{container}")
}

fn check(group: &Group) -> Result<(), RuntimeError> {
    if group.os == Os::Windows {
        let text = "Windows containers need a Windows host; build the images for Linux";
        return Err(RuntimeError::Request(text.to_owned()));
    }
    let privileged = |container: &&Container| {
        container.security.as_ref().is_some_and(|security| security.privileged == Some(true))
    };
    if let Some(container) = group.all_containers().find(privileged) {
        return Err(RuntimeError::Request(format!(
            "container `{}`: `privileged` is not supported: add the capabilities it needs",
            container.name,
        )));
    }
    Ok(())
}

fn request(
    group: &Group,
    container: &Container,
    dir: &GroupDir,
    settings: &GroupSettings,
    gpus: Option<&GpuConfig>,
) -> Result<RunRequest, RuntimeError> {
    let private = private(container);
    let config = ContainerConfig {
        id: new_id()?,
        name: container_name(&group.name, &container.name),
        created: now(),
        image: image(&container.image),
        digest: None,
        layers: Vec::new(),
        process: ProcessConfig {
            given: private.environment.iter().map(|(name, _)| name.clone()).collect(),
            ..ProcessConfig::default()
        },
        mounts: volumes::mounts(group, container, dir, &settings.volumes)?,
        gpus: gpus.cloned(),
        verify_gpu: false,
        limits: limits(container)?,
        network: network(group, dir, settings),
        security: security(container)?,
        // The supervisor restarts it.
        restart: Restart::No,
        stop_signal: String::new(),
        stop_seconds: ContainerConfig::STOP_SECONDS,
        remove: false,
        labels: BTreeMap::new(),
        group: Some(group.name.clone()),
        ipc: Ipc::Private,
        sysctls: BTreeMap::new(),
        annotations: BTreeMap::new(),
        log: LogConfig::default(),
    };
    // A command replaces the image's entry point, too.
    let entrypoint = (!container.command.is_empty()).then(Vec::new);
    Ok(RunRequest {
        config,
        private,
        entrypoint,
        command: container.command.clone(),
        cwd: None,
        user: user(container),
        detach: true,
        cidfile: None,
        publish_all: None,
        pull: None,
        platform: None,
    })
}

/// Makes the path of a directory in place of an image absolute, since the supervisor has another working directory.
fn image(name: &str) -> String {
    match name.strip_prefix("rootfs:").map(std::path::absolute) {
        Some(Ok(directory)) => format!("rootfs:{}", directory.display()),
        _ => name.to_owned(),
    }
}

/// The variables of a container, which are never stored, since some are secrets.
pub(super) fn private(container: &Container) -> Private {
    let environment = container.environment.iter().filter_map(|variable| {
        let value = match &variable.value {
            VariableValue::Plain(value) => value.clone(),
            VariableValue::Secure(value) => value.expose().clone(),
            // The parser has added a note about it.
            VariableValue::Reference(_) => return None,
        };
        Some((variable.name.clone(), value))
    });
    Private { environment: environment.collect() }
}

fn limits(container: &Container) -> Result<Limits, RuntimeError> {
    let memory = container.resources.as_ref().map(|resources| resources.memory_bytes);
    if memory.is_some_and(|memory| memory < MIN_MEMORY) {
        return Err(RuntimeError::Request(format!(
            "container `{}`: a container needs at least 6 MiB of memory",
            container.name
        )));
    }
    let cpu_millis = container.resources.as_ref().map(|resources| u64::from(resources.cpu_millis));
    Ok(Limits { memory, cpu_millis, pids: Some(Limits::PIDS), ..Limits::default() })
}

fn network(group: &Group, dir: &GroupDir, settings: &GroupSettings) -> NetworkConfig {
    let mode = match settings.network.mode {
        NetworkMode::Host => NetworkMode::Host,
        _ => NetworkMode::Join(dir.network()),
    };
    let servers = group.dns.iter().flat_map(|dns| &dns.servers);
    NetworkConfig {
        mode,
        publish: Vec::new(),
        hostname: Some(group.name.clone()),
        dns: servers.map(ToString::to_string).collect(),
        ..settings.network.clone()
    }
}

fn user(container: &Container) -> Option<String> {
    let security = container.security.as_ref()?;
    match (security.user, security.group) {
        (None, None) => None,
        (user, None) => user.map(|user| user.to_string()),
        (user, Some(group)) => Some(format!("{}:{group}", user.unwrap_or_default())),
    }
}

fn security(container: &Container) -> Result<Security, RuntimeError> {
    let requested = container.security.clone().unwrap_or_default();
    let invalid = |error: &dyn std::fmt::Display| {
        RuntimeError::Request(format!("container `{}`: {error}", container.name))
    };
    let changes = |names: &[String]| -> Result<Vec<CapabilityChange>, RuntimeError> {
        names.iter().map(|name| name.parse().map_err(|error: ConfineError| invalid(&error))).collect()
    };
    let seccomp = match requested.seccomp {
        None => Seccomp::Default,
        Some(bytes) => Seccomp::Profile(String::from_utf8_lossy(&bytes).into_owned()),
    };
    let security = Security {
        capabilities: capabilities(&changes(&requested.add)?, &changes(&requested.drop)?),
        // Even if the file allows escalation: the seccomp filter needs it.
        no_new_privileges: true,
        seccomp,
        read_only: false,
        devices: Vec::new(),
    };
    check_seccomp(&security).map_err(|error| invalid(&error))?;
    Ok(security)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::container::config::{MountConfig, Propagation};

    const TEXT: &str = "
name: g
properties:
  containers:
  - name: a
    properties:
      image: x
      command: [run, me]
      environmentVariables: [{name: PLAIN, value: p}, {name: TOKEN, secureValue: s3cret}]
      resources: {requests: {cpu: 0.5, memoryInGB: 1}, limits: {cpu: 2}}
      volumeMounts: [{name: v, mountPath: /v, readOnly: true}, {name: k, mountPath: /k}]
      securityContext: {allowPrivilegeEscalation: false, runAsUser: 7, runAsGroup: 8, capabilities: {drop: [CHOWN]}}
  volumes:
  - {name: v, emptyDir: {}}
  - {name: k, secret: {f: aGk=}}
";

    fn created(settings: &GroupSettings) -> RunRequest {
        let group = cudock_group::read(TEXT).unwrap().group;
        let dir = GroupDir::at("/data/groups/g");
        request(&group, &group.containers[0], &dir, settings, None).unwrap()
    }

    #[test]
    fn the_config_has_the_settings_of_the_file_and_no_secret() {
        let request = created(&GroupSettings::default());
        let config = &request.config;
        assert_eq!(config.name, "g.a");
        assert_eq!(config.group.as_deref(), Some("g"));
        assert_eq!((request.entrypoint.as_deref(), request.command.len()), (Some([].as_slice()), 2));
        assert_eq!((config.limits.cpu_millis, config.limits.memory), (Some(2000), Some(1 << 30)));
        assert_eq!(request.user.as_deref(), Some("7:8"));
        assert!(config.security.no_new_privileges);
        assert!(!config.security.capabilities.iter().any(|name| name == "CAP_CHOWN"));
        assert_eq!(config.network.mode, NetworkMode::Join("/data/groups/g/netns".into()));
        assert_eq!(config.hostname(), "g");
        assert_eq!(request.private.environment.len(), 2);
        assert!(!serde_json::to_string(config).unwrap().contains("s3cret"));
    }

    #[test]
    fn a_volume_is_a_directory_of_the_group_unless_one_is_provided() {
        let bind = |source: &str, target: &str, read_only| MountConfig::Bind {
            source: source.into(),
            target: target.into(),
            read_only,
            create: false,
            propagation: Propagation::Private,
        };
        let mounts = created(&GroupSettings::default()).config.mounts;
        assert_eq!(mounts[0], bind("/data/groups/g/volumes/v", "/v", true));
        assert_eq!(mounts[1], bind("/data/groups/g/secrets/k", "/k", false));
        let volumes = BTreeMap::from([("v".to_owned(), PathBuf::from("/data"))]);
        let mounts = created(&GroupSettings { volumes, ..GroupSettings::default() }).config.mounts;
        assert_eq!(mounts[0], bind("/data", "/v", true));
    }

    #[test]
    fn privileged_containers_and_windows_are_rejected() {
        let privileged = TEXT.replace("allowPrivilegeEscalation: false", "privileged: true");
        let error = check(&cudock_group::read(&privileged).unwrap().group).unwrap_err().to_string();
        assert!(error.contains("`a`: `privileged` is not supported"), "{error}");
        let windows =
            TEXT.replace("properties:\n  containers", "properties:\n  osType: Windows\n  containers");
        assert!(check(&cudock_group::read(&windows).unwrap().group).is_err());
    }
}
