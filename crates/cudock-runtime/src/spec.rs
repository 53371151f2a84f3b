//! The container in the words of the OCI runtime specification: a pure function of the plan and what was found out.
//!
//! Two things are left out on purpose. Variables may be secrets, and this text becomes a file. The filter of system
//! calls is installed by our own code just before the program starts ([`crate::executor`]).

use std::path::{Path, PathBuf};

use cudock_confine::defaults::{READ_ONLY_PATHS, masked_paths};
use cudock_inject::Edits;
use serde_json::{Value, json};

use crate::plan::{Ipc, Limits, NetworkMode, Plan};
use crate::user::Identity;

/// What is known at the start of a container beside its plan.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) identity: &'a Identity,
    pub(crate) edits: Option<&'a Edits>,
    /// Where the root is mounted.
    pub(crate) root: &'a Path,
    /// A network namespace to join.
    pub(crate) network: Option<&'a Path>,
    /// Device nodes beside the GPUs'.
    pub(crate) devices: &'a [Device],
    /// Where its control groups are.
    pub(crate) cgroup: &'a str,
    /// Limits that this process may hand down.
    pub(crate) rlimits: &'a [(String, u64, u64)],
    /// The directories of version 1's control groups.
    pub(crate) hierarchies: &'a [PathBuf],
    /// How many processors this machine has.
    pub(crate) processors: u32,
    /// Whether the kernel counts swap.
    pub(crate) swap: bool,
    /// In a user namespace, some things are mounted otherwise.
    pub(crate) user_namespace: bool,
}

/// A device node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Device {
    pub(crate) path: String,
    pub(crate) block: bool,
    pub(crate) major: u32,
    pub(crate) minor: u32,
    pub(crate) mode: u32,
    pub(crate) gid: u32,
    /// Of `r`, `w` and `m`.
    pub(crate) access: String,
}

/// The container as a specification.
pub(crate) fn specification(plan: &Plan, facts: &Facts<'_>) -> Value {
    let mut groups = facts.identity.groups.clone();
    groups.extend(facts.edits.iter().flat_map(|edits| edits.additional_gids.iter().copied()));
    groups.sort_unstable();
    groups.dedup();
    let capabilities = &plan.security.capabilities;
    let rlimits: Vec<Value> = facts
        .rlimits
        .iter()
        .map(|(name, soft, hard)| json!({"type": format!("RLIMIT_{}", name.to_uppercase()), "soft": soft, "hard": hard}))
        .collect();
    let mut whole = json!({
        "ociVersion": "1.0.2",
        "root": {"path": facts.root, "readonly": plan.security.read_only},
        "hostname": plan.hostname(),
        "process": {
            "terminal": plan.process.tty,
            "user": {
                "uid": facts.identity.uid,
                "gid": facts.identity.gid,
                "additionalGids": groups,
            },
            "args": plan.process.args,
            // Ours is handed over in memory. Without this one libcontainer would look for it, in files of the image.
            "env": [format!("HOME={}", facts.identity.home)],
            // Our own code goes to the directory to start in, since libcontainer would follow any link there.
            "cwd": "/",
            "capabilities": {
                "bounding": capabilities,
                "effective": capabilities,
                "permitted": capabilities,
                "inheritable": [],
                "ambient": [],
            },
            "rlimits": rlimits,
            "noNewPrivileges": plan.security.no_new_privileges,
        },
        "mounts": usual_mounts(plan, facts),
        "linux": {
            "namespaces": namespaces(plan, facts),
            "devices": devices(facts),
            "cgroupsPath": facts.cgroup,
            "resources": resources(&plan.limits, facts),
            "maskedPaths": masked_paths(0..facts.processors),
            "readonlyPaths": read_only_paths(facts),
            "sysctl": plan.sysctls,
        },
    });
    if facts.sets_own_limits()
        && let Some(linux) = whole.get_mut("linux").and_then(Value::as_object_mut)
    {
        linux.remove("resources");
    }
    whole
}

impl Facts<'_> {
    /// Whether limits are ours to set: with limits, libcontainer sets rules for devices, too, and in version 1 of control
    /// groups those are not for users, not even in a group they own.
    pub(crate) fn sets_own_limits(&self) -> bool {
        self.user_namespace && !self.hierarchies.is_empty()
    }
}

fn read_only_paths(facts: &Facts<'_>) -> Vec<&'static str> {
    // In version 1 this is a directory of ours, in which the hierarchies are mounted.
    let groups = (!facts.hierarchies.is_empty() && !facts.user_namespace).then_some("/sys/fs/cgroup");
    READ_ONLY_PATHS.into_iter().chain(groups).collect()
}

fn namespaces(plan: &Plan, facts: &Facts<'_>) -> Vec<Value> {
    let mut namespaces: Vec<Value> =
        ["pid", "ipc", "uts", "mount", "cgroup"].iter().map(|kind| json!({"type": kind})).collect();
    if plan.ipc == Ipc::Host {
        namespaces.retain(|namespace| namespace.get("type") != Some(&json!("ipc")));
    }
    match (&plan.network.mode, facts.network) {
        (NetworkMode::Host, _) => {}
        (_, Some(path)) => namespaces.push(json!({"type": "network", "path": path})),
        (_, None) => namespaces.push(json!({"type": "network"})),
    }
    namespaces
}

fn usual_mounts(plan: &Plan, facts: &Facts<'_>) -> Vec<Value> {
    // Only who owns a network namespace may mount its view of /sys.
    let bind_sys = facts.user_namespace && plan.network.mode == NetworkMode::Host;
    let sys = if bind_sys {
        json!({"destination": "/sys", "type": "bind", "source": "/sys",
               "options": ["rbind", "nosuid", "noexec", "nodev", "rro"]})
    } else {
        json!({"destination": "/sys", "type": "sysfs", "source": "sysfs",
               "options": ["nosuid", "noexec", "nodev", "ro"]})
    };
    let mut pts = vec!["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"];
    // Group 5, tty, is not ours to give where only one group is mapped.
    if !facts.user_namespace {
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
    mounts.extend(ipc_mounts(plan, facts));
    mounts.extend(group_mounts(facts, bind_sys));
    mounts
}

/// POSIX queues and shared memory: the container's own, or the host's.
fn ipc_mounts(plan: &Plan, facts: &Facts<'_>) -> Vec<Value> {
    let queues = json!({"destination": "/dev/mqueue", "type": "mqueue", "source": "mqueue",
                        "options": ["nosuid", "noexec", "nodev"]});
    if plan.ipc == Ipc::Host {
        let shared = json!({"destination": "/dev/shm", "type": "bind", "source": "/dev/shm",
                            "options": ["rbind", "nosuid", "noexec", "nodev"]});
        // Only who owns an IPC namespace may mount its queues.
        return if facts.user_namespace { vec![shared] } else { vec![queues, shared] };
    }
    let size = format!("size={}", plan.limits.shm.unwrap_or(64 << 20));
    let shared = json!({"destination": "/dev/shm", "type": "tmpfs", "source": "shm",
                        "options": ["nosuid", "noexec", "nodev", "mode=1777", size]});
    vec![queues, shared]
}

/// The container's own control groups, to be read. Programs look there for how much they may use.
fn group_mounts(facts: &Facts<'_>, bind_sys: bool) -> Vec<Value> {
    if facts.hierarchies.is_empty() {
        let mount = json!({"destination": "/sys/fs/cgroup", "type": "cgroup", "source": "cgroup",
                           "options": ["nosuid", "noexec", "nodev", "relatime", "ro"]});
        return if bind_sys { Vec::new() } else { vec![mount] };
    }
    // Version 1 is not for user namespaces. Elsewhere the few that tell limits are enough; mounting all of them would
    // let a container write to them, and takes a quarter of the whole start.
    if facts.user_namespace {
        return Vec::new();
    }
    let mut mounts = vec![json!({"destination": "/sys/fs/cgroup", "type": "tmpfs", "source": "tmpfs",
                                 "options": ["nosuid", "noexec", "nodev", "mode=755", "size=16k"]})];
    for hierarchy in facts.hierarchies {
        let name = hierarchy.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.split(',').any(|name| matches!(name, "memory" | "cpu" | "cpuset" | "pids")) {
            mounts.push(json!({
                "destination": hierarchy, "type": "bind",
                "source": hierarchy.join(facts.cgroup.trim_start_matches('/')),
                "options": ["bind", "ro", "nosuid", "noexec", "nodev"],
            }));
        }
    }
    mounts
}

/// Every device node the container has, the GPUs' and those it was given.
pub(crate) fn all_devices(facts: &Facts<'_>) -> Vec<Device> {
    let of_gpus = facts.edits.iter().flat_map(|edits| &edits.devices).map(|node| Device {
        path: node.container.display().to_string(),
        block: false,
        major: node.major,
        minor: node.minor,
        mode: node.mode,
        gid: node.gid,
        access: "rw".to_owned(),
    });
    of_gpus.chain(facts.devices.iter().cloned()).collect()
}

fn devices(facts: &Facts<'_>) -> Vec<Value> {
    let node = |device: Device| {
        json!({
            "path": device.path,
            "type": if device.block { "b" } else { "c" },
            "major": device.major,
            "minor": device.minor,
            "fileMode": device.mode & 0o777,
            "uid": 0,
            "gid": if facts.user_namespace { 0 } else { device.gid },
        })
    };
    all_devices(facts).into_iter().map(node).collect()
}

fn resources(limits: &Limits, facts: &Facts<'_>) -> Value {
    let mut rules = vec![json!({"allow": false, "access": "rwm"})];
    for device in all_devices(facts) {
        rules.push(json!({
            "allow": true,
            "type": if device.block { "b" } else { "c" },
            "major": device.major,
            "minor": device.minor,
            "access": device.access,
        }));
    }
    let mut resources = json!({"devices": rules});
    let mut set = |name: &str, value: Value| {
        if let Some(map) = resources.as_object_mut() {
            map.insert(name.to_owned(), value);
        }
    };
    let mut memory = serde_json::Map::new();
    memory.extend(limits.memory.map(|limit| ("limit".to_owned(), json!(limit))));
    memory.extend(limits.memory_swap.filter(|_| facts.swap).map(|swap| ("swap".to_owned(), json!(swap))));
    memory.extend(limits.memory_reservation.map(|bytes| ("reservation".to_owned(), json!(bytes))));
    if !memory.is_empty() {
        set("memory", Value::Object(memory));
    }
    if let Some(pids) = limits.pids {
        set("pids", json!({"limit": pids}));
    }
    let mut cpu = serde_json::Map::new();
    if let Some(millis) = limits.cpu_millis {
        let period = 100_000_u64;
        cpu.insert("period".to_owned(), json!(period));
        cpu.insert("quota".to_owned(), json!((millis.saturating_mul(period) / 1000).max(1000)));
    }
    if let Some(cpuset) = &limits.cpuset {
        cpu.insert("cpus".to_owned(), json!(cpuset));
    }
    cpu.extend(limits.cpuset_mems.as_ref().map(|nodes| ("mems".to_owned(), json!(nodes))));
    cpu.extend(limits.cpu_shares.map(|shares| ("shares".to_owned(), json!(shares))));
    if !cpu.is_empty() {
        set("cpu", Value::Object(cpu));
    }
    resources
}
