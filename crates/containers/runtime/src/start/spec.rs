//! Builds the OCI runtime specification of a container, as a pure function.
//!
//! Two things are left out on purpose: variables, which may be secrets, since the specification becomes a file; and the
//! seccomp filter, which [`crate::start::executor`] installs just before the program starts.

use std::path::Path;

use cudock_confine::defaults::{READ_ONLY_PATHS, masked_paths};
use cudock_inject::Edits;
use serde_json::{Value, json};

use crate::cgroup::mounts::{self, Hierarchy};
use crate::container::config::{ContainerConfig, Ipc, Limits, NetworkMode, Rlimit};
use crate::start::user::Identity;

/// Inputs of the specification besides the config.
#[derive(Debug)]
pub(crate) struct SpecInputs<'a> {
    pub(crate) identity: &'a Identity,
    pub(crate) edits: Option<&'a Edits>,
    pub(crate) root: &'a Path,
    /// The network namespace to join.
    pub(crate) network: Option<&'a Path>,
    /// Device nodes besides the GPUs'.
    pub(crate) devices: &'a [SpecDevice],
    pub(crate) cgroup: &'a str,
    pub(crate) rlimits: &'a [Rlimit],
    /// The cgroup v1 hierarchies.
    pub(crate) hierarchies: &'a [Hierarchy],
    pub(crate) processors: u32,
    pub(crate) swap: bool,
    pub(crate) user_namespace: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SpecDevice {
    pub(crate) path: String,
    pub(crate) block: bool,
    pub(crate) major: u32,
    pub(crate) minor: u32,
    pub(crate) mode: u32,
    pub(crate) gid: u32,
    /// Allowed access: any of `r`, `w` and `m`.
    pub(crate) access: String,
}

pub(crate) fn specification(config: &ContainerConfig, inputs: &SpecInputs<'_>) -> Value {
    let capabilities = &config.security.capabilities;
    let rlimits: Vec<Value> = inputs
        .rlimits
        .iter()
        .map(|Rlimit { name, soft, hard }| json!({"type": format!("RLIMIT_{}", name.to_uppercase()), "soft": soft, "hard": hard}))
        .collect();
    let mut spec = json!({
        "ociVersion": "1.0.2",
        "root": {"path": inputs.root, "readonly": config.security.read_only},
        "hostname": config.hostname(),
        "annotations": config.annotations,
        "process": {
            "terminal": config.process.tty,
            "user": {
                "uid": inputs.identity.uid,
                "gid": inputs.identity.gid,
                "additionalGids": inputs.identity.groups,
            },
            "args": config.process.args,
            // Passed in memory. Without HOME, libcontainer would look for it in files of the image.
            "env": [format!("HOME={}", inputs.identity.home)],
            // Our own code changes to the working directory, since libcontainer would follow any link there.
            "cwd": "/",
            "capabilities": {
                "bounding": capabilities,
                "effective": capabilities,
                "permitted": capabilities,
                "inheritable": [],
                "ambient": [],
            },
            "rlimits": rlimits,
            "noNewPrivileges": config.security.no_new_privileges,
        },
        "mounts": standard_mounts(config, inputs),
        "linux": {
            "namespaces": namespaces(config, inputs),
            "devices": devices(inputs),
            "cgroupsPath": inputs.cgroup,
            "resources": resources(&config.limits, inputs),
            "maskedPaths": masked_paths(0..inputs.processors),
            "readonlyPaths": read_only_paths(inputs),
            "sysctl": config.sysctls,
        },
    });
    if inputs.sets_own_limits()
        && let Some(linux) = spec.get_mut("linux").and_then(Value::as_object_mut)
    {
        linux.remove("resources");
    }
    spec
}

impl SpecInputs<'_> {
    /// Whether limits are set by us: libcontainer also sets device rules, which users may not do on cgroup v1, not even in a
    /// cgroup they own.
    pub(crate) fn sets_own_limits(&self) -> bool {
        self.user_namespace && !self.hierarchies.is_empty()
    }
}

fn read_only_paths(inputs: &SpecInputs<'_>) -> Vec<&'static str> {
    // On cgroup v1 this is a tmpfs in which the hierarchies are mounted.
    let groups = (!inputs.hierarchies.is_empty() && !inputs.user_namespace).then_some("/sys/fs/cgroup");
    READ_ONLY_PATHS.into_iter().chain(groups).collect()
}

fn namespaces(config: &ContainerConfig, inputs: &SpecInputs<'_>) -> Vec<Value> {
    let mut namespaces: Vec<Value> =
        ["pid", "ipc", "uts", "mount", "cgroup"].iter().map(|kind| json!({"type": kind})).collect();
    if config.ipc == Ipc::Host {
        namespaces.retain(|namespace| namespace.get("type") != Some(&json!("ipc")));
    }
    match (&config.network.mode, inputs.network) {
        (NetworkMode::Host, _) => {}
        (_, Some(path)) => namespaces.push(json!({"type": "network", "path": path})),
        (_, None) => namespaces.push(json!({"type": "network"})),
    }
    namespaces
}

fn standard_mounts(config: &ContainerConfig, inputs: &SpecInputs<'_>) -> Vec<Value> {
    // Mounting sysfs needs ownership of the network namespace.
    let bind_sys = inputs.user_namespace && config.network.mode == NetworkMode::Host;
    let sys = if bind_sys {
        json!({"destination": "/sys", "type": "bind", "source": "/sys",
               "options": ["rbind", "nosuid", "noexec", "nodev", "rro"]})
    } else {
        json!({"destination": "/sys", "type": "sysfs", "source": "sysfs",
               "options": ["nosuid", "noexec", "nodev", "ro"]})
    };
    let mut pts = vec!["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"];
    // Group 5, tty, may not be mapped in a user namespace.
    if !inputs.user_namespace {
        pts.push("gid=5");
    }
    let mut mounts = vec![
        json!({"destination": "/proc", "type": "proc", "source": "proc",
               "options": ["nosuid", "noexec", "nodev"]}),
        json!({"destination": "/dev", "type": "tmpfs", "source": "tmpfs",
               "options": ["nosuid", "strictatime", "mode=755", "size=65536k"]}),
        json!({"destination": "/dev/pts", "type": "devpts", "source": "devpts", "options": pts}),
        sys,
    ];
    mounts.extend(ipc_mounts(config, inputs));
    mounts.extend(group_mounts(inputs, bind_sys));
    mounts
}

/// POSIX queues and shared memory: the container's own, or the host's.
fn ipc_mounts(config: &ContainerConfig, inputs: &SpecInputs<'_>) -> Vec<Value> {
    let queues = json!({"destination": "/dev/mqueue", "type": "mqueue", "source": "mqueue",
                        "options": ["nosuid", "noexec", "nodev"]});
    if config.ipc == Ipc::Host {
        let shared = json!({"destination": "/dev/shm", "type": "bind", "source": "/dev/shm",
                            "options": ["rbind", "nosuid", "noexec", "nodev"]});
        // Mounting queues needs ownership of the IPC namespace.
        return if inputs.user_namespace { vec![shared] } else { vec![queues, shared] };
    }
    let size = format!("size={}", config.limits.shm.unwrap_or(64 << 20));
    let shared = json!({"destination": "/dev/shm", "type": "tmpfs", "source": "shm",
                        "options": ["nosuid", "noexec", "nodev", "mode=1777", size]});
    vec![queues, shared]
}

/// The container's own cgroups, read-only. Programs read their limits there.
fn group_mounts(inputs: &SpecInputs<'_>, bind_sys: bool) -> Vec<Value> {
    if inputs.hierarchies.is_empty() {
        let mount = json!({"destination": "/sys/fs/cgroup", "type": "cgroup", "source": "cgroup",
                           "options": ["nosuid", "noexec", "nodev", "relatime", "ro"]});
        return if bind_sys { Vec::new() } else { vec![mount] };
    }
    // Cgroup v1 cannot be mounted in user namespaces. Elsewhere the hierarchies with limits are enough: mounting all of
    // them would let the container write to them, and takes a quarter of the start.
    if inputs.user_namespace {
        return Vec::new();
    }
    let mut mounts = vec![json!({"destination": "/sys/fs/cgroup", "type": "tmpfs", "source": "tmpfs",
                                 "options": ["nosuid", "noexec", "nodev", "mode=755", "size=16k"]})];
    for hierarchy in inputs.hierarchies {
        let limits = ["memory", "cpu", "cpuset", "pids"].iter().any(|name| hierarchy.controls(name));
        if let Some(name) = hierarchy.point.file_name().filter(|_| limits) {
            mounts.push(json!({
                // Where programs look for it, wherever it is on this machine.
                "destination": Path::new(mounts::USUAL).join(name), "type": "bind",
                "source": hierarchy.point.join(inputs.cgroup.trim_start_matches('/')),
                "options": ["bind", "ro", "nosuid", "noexec", "nodev"],
            }));
        }
    }
    mounts
}

pub(crate) fn all_devices(inputs: &SpecInputs<'_>) -> Vec<SpecDevice> {
    let gpu_devices = inputs.edits.iter().flat_map(|edits| &edits.devices).map(|node| SpecDevice {
        path: node.container.display().to_string(),
        block: false,
        major: node.major,
        minor: node.minor,
        mode: node.mode,
        gid: node.gid,
        access: "rw".to_owned(),
    });
    gpu_devices.chain(inputs.devices.iter().cloned()).collect()
}

fn devices(inputs: &SpecInputs<'_>) -> Vec<Value> {
    let node = |device: SpecDevice| {
        json!({
            "path": device.path,
            "type": if device.block { "b" } else { "c" },
            "major": device.major,
            "minor": device.minor,
            "fileMode": device.mode & 0o777,
            "uid": 0,
            "gid": if inputs.user_namespace { 0 } else { device.gid },
        })
    };
    all_devices(inputs).into_iter().map(node).collect()
}

fn resources(limits: &Limits, inputs: &SpecInputs<'_>) -> Value {
    let mut rules = vec![json!({"allow": false, "access": "rwm"})];
    for device in all_devices(inputs) {
        rules.push(json!({
            "allow": true,
            "type": if device.block { "b" } else { "c" },
            "major": device.major,
            "minor": device.minor,
            "access": device.access,
        }));
    }
    let period = 100_000_u64;
    let quota = limits.cpu_millis.map(|millis| (millis.saturating_mul(period) / 1000).max(1000));
    let memory = present([
        ("limit", limits.memory.map(Value::from)),
        ("swap", limits.memory_swap.filter(|_| inputs.swap).map(Value::from)),
        ("reservation", limits.memory_reservation.map(Value::from)),
    ]);
    let cpu = present([
        ("period", quota.map(|_| Value::from(period))),
        ("quota", quota.map(Value::from)),
        ("cpus", limits.cpuset.clone().map(Value::from)),
        ("mems", limits.cpuset_mems.clone().map(Value::from)),
        ("shares", limits.cpu_shares.map(Value::from)),
    ]);
    let pids = limits.pids.map(|limit| json!({"limit": limit}));
    let resources =
        present([("devices", Some(rules.into())), ("memory", memory), ("pids", pids), ("cpu", cpu)]);
    resources.unwrap_or_default()
}

/// An object of the fields that are set; `None` if none is.
fn present<const N: usize>(fields: [(&str, Option<Value>); N]) -> Option<Value> {
    let set = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let object: serde_json::Map<String, Value> = set.collect();
    (!object.is_empty()).then_some(Value::Object(object))
}
