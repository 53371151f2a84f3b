//! From a group as it was read to containers of this machine.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use cudock_confine::CapabilityChange;
use cudock_group::{Container, Group, Os, VariableValue};

use super::dir::{GroupDir, GroupLock};
use super::{gpus, volumes};
use crate::capabilities::capabilities;
use crate::engine::Request;
use crate::engine::builtin::Builtin;
use crate::error::RuntimeError;
use crate::home::new_id;
use crate::launch::check_seccomp;
use crate::plan::{
    GpuPlan, Ipc, Limits, NetworkMode, NetworkPlan, Plan, Private, ProcessPlan, Restart, Seccomp, Security,
};
use crate::status::now;

/// What was asked for beside the file.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The network of the group, and the ports of this machine that lead into it.
    pub network: NetworkPlan,
    /// Directories of this machine in the place of volumes.
    pub volumes: BTreeMap<String, PathBuf>,
    /// Where the driver's files are, if not where they are found.
    pub driver_root: Option<PathBuf>,
    /// Where the device nodes are, if not below the driver's root.
    pub device_root: Option<PathBuf>,
    /// Whether containers that ask for GPUs run without any.
    pub without_gpus: bool,
}

/// Processes and threads of a container, where the file has no word for it.
const MOST_PROCESSES: i64 = 16_384;

/// Seconds between asking a container to end and ending it.
const STOP_SECONDS: u32 = 10;

/// A supervisor takes no longer to end when its group has.
const LETTING_GO: Duration = Duration::from_secs(10);

/// No container starts with less memory.
const LEAST_MEMORY: u64 = 6 << 20;

/// Makes the containers of a group: their images are found and unpacked, and each has its directory. What an earlier group
/// of the same name left is removed first. Whoever holds the result is to start its supervisor.
pub fn make(
    engine: &Builtin,
    group: &Group,
    settings: &Settings,
) -> Result<(GroupDir, GroupLock), RuntimeError> {
    check(group)?;
    let home = &engine.home;
    let dir = GroupDir::of(home, &group.name);
    let Some(lock) = lock(&dir)? else {
        return Err(RuntimeError::Request(format!(
            "group `{name}` runs already: `cudock down {name}` ends it, --name gives this one another name",
            name = group.name,
        )));
    };
    match make_held(engine, group, settings, &dir, &lock) {
        Ok(()) => Ok((dir, lock)),
        Err(error) => {
            // What is wrong with the group is worth more than what is wrong with clearing it away.
            let _ = dir.remove(home, lock);
            Err(error)
        }
    }
}

/// Takes hold of a group. A supervisor whose group has ended is about to let go.
fn lock(dir: &GroupDir) -> Result<Option<GroupLock>, RuntimeError> {
    let began = Instant::now();
    loop {
        let lock = dir.lock()?;
        let ends = || dir.status().map(|status| status.is_some_and(|status| !status.state.is_alive()));
        if lock.is_some() || !ends()? || began.elapsed() > LETTING_GO {
            return Ok(lock);
        }
    }
}

fn make_held(
    engine: &Builtin,
    group: &Group,
    settings: &Settings,
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
        held.push(engine.complete(request).map_err(|error| of_container(&request.plan.name, error))?);
    }
    for (request, held) in requests.iter().zip(&held) {
        held.shape_root(&engine.home.create(&request.plan)?)?;
    }
    Ok(())
}

/// Says which container a bad request is about.
fn of_container(name: &str, error: RuntimeError) -> RuntimeError {
    match error {
        RuntimeError::Request(text) => RuntimeError::Request(format!("container {name}: {text}")),
        other => other,
    }
}

/// The name a group's container has among all containers.
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
            "container `{}` asks for `privileged`, which would give it this machine: name the capabilities it needs",
            container.name,
        )));
    }
    Ok(())
}

fn request(
    group: &Group,
    container: &Container,
    dir: &GroupDir,
    settings: &Settings,
    gpus: Option<&GpuPlan>,
) -> Result<Request, RuntimeError> {
    let private = private(container);
    let plan = Plan {
        id: new_id()?,
        name: container_name(&group.name, &container.name),
        created: now(),
        image: image(&container.image),
        layers: Vec::new(),
        process: ProcessPlan {
            given: private.environment.iter().map(|(name, _)| name.clone()).collect(),
            ..ProcessPlan::default()
        },
        mounts: volumes::mounts(group, container, dir, &settings.volumes)?,
        gpus: gpus.cloned(),
        verify_gpu: false,
        limits: limits(container)?,
        network: network(group, dir, settings),
        security: security(container)?,
        // The supervisor decides.
        restart: Restart::No,
        stop_signal: String::new(),
        stop_seconds: STOP_SECONDS,
        remove: false,
        labels: BTreeMap::new(),
        group: Some(group.name.clone()),
        ipc: Ipc::Private,
        sysctls: BTreeMap::new(),
    };
    // A command takes the place of the image's entry point, too.
    let entrypoint = (!container.command.is_empty()).then(Vec::new);
    Ok(Request {
        plan,
        private,
        entrypoint,
        command: container.command.clone(),
        cwd: None,
        user: user(container),
        detach: true,
        cidfile: None,
        pull: None,
        platform: None,
    })
}

/// A directory in the place of an image is kept by its whole path, for whoever starts the container stands elsewhere.
fn image(words: &str) -> String {
    match words.strip_prefix("rootfs:").map(std::path::absolute) {
        Some(Ok(directory)) => format!("rootfs:{}", directory.display()),
        _ => words.to_owned(),
    }
}

/// The variables of a container: none of them is written down, since some are secrets.
pub(super) fn private(container: &Container) -> Private {
    let environment = container.environment.iter().filter_map(|variable| {
        let value = match &variable.value {
            VariableValue::Plain(value) => value.clone(),
            VariableValue::Secure(value) => value.expose().clone(),
            // Noted when the file was read.
            VariableValue::Reference(_) => return None,
        };
        Some((variable.name.clone(), value))
    });
    Private { environment: environment.collect() }
}

fn limits(container: &Container) -> Result<Limits, RuntimeError> {
    let memory = container.resources.as_ref().map(cudock_group::Resources::memory_cap_bytes);
    if memory.is_some_and(|memory| memory < LEAST_MEMORY) {
        return Err(RuntimeError::Request(format!(
            "container `{}`: no container starts with less than 6 MiB of memory",
            container.name
        )));
    }
    let cpu_millis = container.resources.as_ref().map(|resources| u64::from(resources.cpu_cap_millis()));
    Ok(Limits { memory, cpu_millis, pids: Some(MOST_PROCESSES), ..Limits::default() })
}

fn network(group: &Group, dir: &GroupDir, settings: &Settings) -> NetworkPlan {
    let mode = match settings.network.mode {
        NetworkMode::Host => NetworkMode::Host,
        _ => NetworkMode::Join(dir.network()),
    };
    let servers = group.dns.iter().flat_map(|dns| &dns.servers);
    NetworkPlan {
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
    let asked = container.security.clone().unwrap_or_default();
    let changes = |words: &[String]| -> Result<Vec<CapabilityChange>, RuntimeError> {
        words
            .iter()
            .map(|word| {
                let wrong = |error| RuntimeError::Request(format!("container `{}`: {error}", container.name));
                word.parse::<CapabilityChange>().map_err(wrong)
            })
            .collect()
    };
    let seccomp = match asked.seccomp {
        None => Seccomp::Default,
        Some(bytes) => Seccomp::Profile(String::from_utf8_lossy(&bytes).into_owned()),
    };
    let security = Security {
        capabilities: capabilities(&changes(&asked.add)?, &changes(&asked.drop)?),
        // Also where the file allows it: the filter of system calls is installed only under this.
        no_new_privileges: true,
        seccomp,
        read_only: false,
        devices: Vec::new(),
    };
    check_seccomp(&security)
        .map_err(|error| RuntimeError::Request(format!("container `{}`: {error}", container.name)))?;
    Ok(security)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may fail loudly")]

    use super::*;

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

    fn made(settings: &Settings) -> Request {
        let group = cudock_group::read(TEXT).unwrap().group;
        let dir = GroupDir::at("/data/groups/g");
        request(&group, &group.containers[0], &dir, settings, None).unwrap()
    }

    #[test]
    fn a_container_gets_what_the_file_says_and_no_secret_is_in_its_plan() {
        let request = made(&Settings::default());
        let plan = &request.plan;
        assert_eq!(plan.name, "g.a");
        assert_eq!(plan.group.as_deref(), Some("g"));
        assert_eq!((request.entrypoint.as_deref(), request.command.len()), (Some([].as_slice()), 2));
        assert_eq!((plan.limits.cpu_millis, plan.limits.memory), (Some(2000), Some(1 << 30)));
        assert_eq!(request.user.as_deref(), Some("7:8"));
        assert!(plan.security.no_new_privileges);
        assert!(!plan.security.capabilities.iter().any(|name| name == "CAP_CHOWN"));
        assert_eq!(plan.network.mode, NetworkMode::Join("/data/groups/g/netns".into()));
        assert_eq!(plan.hostname(), "g");
        assert_eq!(request.private.environment.len(), 2);
        assert!(!serde_json::to_string(plan).unwrap().contains("s3cret"));
    }

    #[test]
    fn a_volume_is_a_directory_of_the_group_unless_one_is_given() {
        let bind = |source: &str, target: &str, read_only| MountPlanOf { source, target, read_only }.plan();
        let mounts = made(&Settings::default()).plan.mounts;
        assert_eq!(mounts[0], bind("/data/groups/g/volumes/v", "/v", true));
        assert_eq!(mounts[1], bind("/data/groups/g/secrets/k", "/k", false));
        let volumes = BTreeMap::from([("v".to_owned(), PathBuf::from("/data"))]);
        let mounts = made(&Settings { volumes, ..Settings::default() }).plan.mounts;
        assert_eq!(mounts[0], bind("/data", "/v", true));
    }

    struct MountPlanOf<'a> {
        source: &'a str,
        target: &'a str,
        read_only: bool,
    }

    impl MountPlanOf<'_> {
        fn plan(&self) -> crate::plan::MountPlan {
            let (source, target) = (self.source.into(), self.target.into());
            crate::plan::MountPlan::Bind { source, target, read_only: self.read_only }
        }
    }

    #[test]
    fn privileged_containers_and_windows_are_refused() {
        let wild = TEXT.replace("allowPrivilegeEscalation: false", "privileged: true");
        let error = check(&cudock_group::read(&wild).unwrap().group).unwrap_err().to_string();
        assert!(error.contains("`a` asks for `privileged`"), "{error}");
        let windows =
            TEXT.replace("properties:\n  containers", "properties:\n  osType: Windows\n  containers");
        assert!(check(&cudock_group::read(&windows).unwrap().group).is_err());
    }
}
