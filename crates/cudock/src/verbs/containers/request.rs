//! What the words of `run` mean.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cudock_confine::CapabilityChange;
use cudock_inject::Capabilities;
use cudock_netns::files::AddHost;
use cudock_netns::outbound::Found;
use cudock_runtime::RuntimeError;
use cudock_runtime::engine::{Pull, Request};
use cudock_runtime::home::new_id;
use cudock_runtime::plan::{
    DevicePlan, GpuPlan, Ipc, Limits, NetworkMode, NetworkPlan, Plan, Private, ProcessPlan, Seccomp, Security,
};
use cudock_runtime::status::now;

use super::args::{
    EngineChoice, IpcChoice, LimitArgs, NetworkArgs, NetworkChoice, PullChoice, RunArgs, SecurityArgs,
};
use super::devices::{self, Device};
use super::docker_flags::refuse_unknown;
use super::mounts::{Sources, mount, tmpfs, volume};
use super::words::{bytes, cpu_millis, cpuset, restart, ulimit, variables};
use crate::failure::{Failure, chain};

/// What is to be run: the image's words and the rest.
pub(super) fn request(words: &RunArgs) -> Result<Request, Failure> {
    let (image, command) = image_and_command(words)?;
    let here = std::env::current_dir()
        .map_err(|error| Failure::outside(format!("cannot tell the current folder: {error}")))?;
    let id = new_id()?;
    let private = Private { environment: variables(&words.process.env, &words.process.env_file)? };
    check_accepted(words)?;
    let own = matches!(words.engine.engine, EngineChoice::Auto | EngineChoice::Cudock);
    let home = own.then(super::home::home).transpose()?;
    let sources = Sources { here: &here, home: home.as_ref() };
    let mut mounts = Vec::new();
    for word in &words.files.volume {
        mounts.push(volume(word, &sources)?);
    }
    for text in &words.files.mount {
        mounts.push(mount(text, &sources)?);
    }
    for word in &words.files.tmpfs {
        mounts.push(tmpfs(word)?);
    }
    let process = ProcessPlan {
        given: private.environment.iter().map(|(name, _)| name.clone()).collect(),
        groups: words.process.group_add.clone(),
        tty: words.tty,
        stdin: words.interactive,
        init: words.process.init,
        ..ProcessPlan::default()
    };
    let stop_signal = words.stop_signal.clone().unwrap_or_default();
    if !stop_signal.is_empty() {
        cudock_runtime::signal::parse_signal(&stop_signal)?;
    }
    let network = network(&words.network)?;
    let ipc = match words.process.ipc {
        IpcChoice::Private | IpcChoice::Shareable => Ipc::Private,
        IpcChoice::Host => Ipc::Host,
    };
    let (nodes, gpu_names) = asked_devices(&words.files.device)?;
    let plan = Plan {
        name: words.name.clone().map_or_else(|| Ok(default_name(&image, &id)), checked_name)?,
        id,
        created: now(),
        image,
        layers: Vec::new(),
        process,
        mounts,
        gpus: gpus(words, &gpu_names, &private)?,
        verify_gpu: words.gpus.verify_gpu,
        limits: limits(&words.limits)?,
        sysctls: sysctls(&words.process.sysctl, ipc, &network.mode)?,
        ipc,
        network,
        security: security(&words.security, words, nodes)?,
        restart: restart(&words.restart)?,
        stop_signal,
        stop_seconds: words.stop_timeout,
        remove: words.rm,
        labels: labels(&words.label)?,
        group: None,
    };
    if words.gpus.verify_gpu && plan.gpus.is_none() {
        return Err(
            Failure::input("--verify-gpu without --gpus has nothing to verify").hint("add --gpus all")
        );
    }
    if words.rm && words.restart != "no" {
        return Err(Failure::input("--rm and --restart contradict each other"));
    }
    let entrypoint = words.process.entrypoint.clone();
    Ok(Request {
        plan,
        private,
        entrypoint: entrypoint.map(|word| if word.is_empty() { Vec::new() } else { vec![word] }),
        command,
        cwd: words.process.workdir.clone(),
        user: words.process.user.clone(),
        detach: words.detach,
        cidfile: words.cidfile.as_ref().map(|file| here.join(file)),
        pull: match words.pull {
            None => words.offline.then_some(Pull::Never),
            Some(PullChoice::Always) => Some(Pull::Always),
            Some(PullChoice::Missing) => Some(Pull::Missing),
            Some(PullChoice::Never) => Some(Pull::Never),
        },
        platform: words.platform.clone(),
    })
}

fn image_and_command(words: &RunArgs) -> Result<(String, Vec<String>), Failure> {
    let mut command = words.words.clone();
    if let Some(first) = command.first() {
        refuse_unknown(first)?;
    }
    let image = match &words.rootfs {
        Some(folder) => format!("rootfs:{}", absolute(folder)?),
        None if command.is_empty() => {
            return Err(Failure::input("no image").hint("cudock run IMAGE [COMMAND], or --rootfs DIR"));
        }
        None => command.remove(0),
    };
    if command.first().is_some_and(|word| word == "--") {
        command.remove(0);
    }
    Ok((image, command))
}

fn absolute(folder: &Path) -> Result<String, Failure> {
    let wrong = |error| Failure::input(format!("cannot read {}: {error}", folder.display()));
    let whole = folder.canonicalize().map_err(wrong)?;
    if !whole.is_dir() {
        return Err(Failure::input(format!("{} is not a folder", folder.display())));
    }
    Ok(whole.display().to_string())
}

/// The image's last name with a bit of the id: readable, and hardly ever taken.
fn default_name(image: &str, id: &str) -> String {
    let last = image.trim_end_matches('/').rsplit(['/', ':']).find(|part| !part.is_empty());
    let before_tag = image.rsplit('/').next().and_then(|part| part.split([':', '@']).next());
    let base = before_tag.filter(|part| !part.is_empty()).or(last).unwrap_or("container");
    let allowed = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let base: String = base.chars().filter(allowed).take(40).collect();
    let base = base.trim_start_matches(['-', '.', '_']);
    format!("{}-{}", if base.is_empty() { "container" } else { base }, id.get(..6).unwrap_or(id))
}

fn checked_name(name: String) -> Result<String, Failure> {
    let good = name.len() <= 128
        && name.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "_.-".contains(letter));
    if good {
        return Ok(name);
    }
    Err(Failure::input(format!("`{name}` cannot be the name of a container"))
        .hint("letters, digits, dots, dashes and underscores, beginning with a letter or digit"))
}

/// Flags that are accepted for what docker does by default, and refused for anything else.
fn check_accepted(words: &RunArgs) -> Result<(), Failure> {
    let rows = [
        (
            "--log-driver",
            &words.log_driver,
            &["json-file", "local"][..],
            "logs are kept as json-file keeps them",
        ),
        ("--cgroupns", &words.process.cgroupns, &["private"][..], "a container sees its own control groups"),
        (
            "--userns",
            &words.process.userns,
            &["host"][..],
            "root gets no user namespace, other users always one",
        ),
        (
            "--runtime",
            &words.runtime,
            &["nvidia", "runc", "io.containerd.runc.v2"][..],
            "cudock is the runtime",
        ),
    ];
    for (flag, value, accepted, why) in rows {
        if let Some(value) = value.as_ref().filter(|value| !accepted.contains(&value.as_str())) {
            return Err(Failure::input(format!("{flag} {value} is not supported: {why}"))
                .hint(format!("leave {flag} out")));
        }
    }
    if !words.sig_proxy {
        return Err(Failure::input("--sig-proxy=false is not supported: signals are always passed on")
            .hint("run it with -d, and `cudock logs -f NAME`"));
    }
    Ok(())
}

/// Nodes, and names of GPUs.
fn asked_devices(words: &[String]) -> Result<(Vec<DevicePlan>, Vec<String>), Failure> {
    let (mut nodes, mut gpus) = (Vec::new(), Vec::new());
    for word in words {
        match devices::parse(word)? {
            Device::Node(node) => nodes.push(node),
            Device::Gpu(name) => gpus.push(name),
        }
    }
    Ok((nodes, gpus))
}

fn sysctls(words: &[String], ipc: Ipc, network: &NetworkMode) -> Result<BTreeMap<String, String>, Failure> {
    let mut all = BTreeMap::new();
    for word in words {
        let wrong = || {
            Failure::input(format!("--sysctl {word} has no value")).hint("--sysctl net.core.somaxconn=1024")
        };
        let (name, value) = word.split_once('=').ok_or_else(wrong)?;
        cudock_runtime::sysctl::check(name, ipc, network)?;
        all.insert(name.to_owned(), value.to_owned());
    }
    Ok(all)
}

/// The GPUs of `--gpus`, of CDI names, or of docker's `--runtime nvidia`, which takes them from a variable.
fn gpus(words: &RunArgs, names: &[String], private: &Private) -> Result<Option<GpuPlan>, Failure> {
    let asked = words.gpus.gpus.clone().filter(|devices| !devices.is_empty());
    if asked.is_some() && !names.is_empty() {
        return Err(
            Failure::input("--gpus and --device nvidia.com/gpu=… both say which GPUs").hint("leave one out")
        );
    }
    let by_variable = || {
        let given = private.environment.iter().rev().find(|(name, _)| name == "NVIDIA_VISIBLE_DEVICES");
        match given.map(|(_, value)| value.as_str()) {
            None | Some("all") => Some("all".to_owned()),
            Some("" | "void" | "none") => None,
            Some(list) => Some(format!("\"device={list}\"")),
        }
    };
    let asked = asked.or_else(|| devices::as_gpus(names));
    let asked = match (asked, words.runtime.as_deref()) {
        (None, Some("nvidia")) => by_variable(),
        (asked, _) => asked,
    };
    let Some(devices) = asked else {
        return Ok(None);
    };
    if let Some(capabilities) = &words.gpus.driver_capabilities {
        Capabilities::parse(capabilities, "--driver-capabilities").map_err(RuntimeError::from)?;
    }
    // The watcher may stand in another folder than we do.
    let whole = |folder: &Option<PathBuf>| folder.as_deref().map(absolute).transpose();
    Ok(Some(GpuPlan {
        devices,
        capabilities: words.gpus.driver_capabilities.clone(),
        driver_root: whole(&words.gpus.driver_root)?.map(PathBuf::from),
        device_root: whole(&words.gpus.device_root)?.map(PathBuf::from),
    }))
}

fn limits(words: &LimitArgs) -> Result<Limits, Failure> {
    let memory = words.memory.as_deref().map(bytes).transpose()?;
    if memory.is_some_and(|memory| memory < 6 << 20) {
        return Err(Failure::input("no container starts with less than 6 MiB of memory").hint("-m 512m"));
    }
    let rlimits: Result<Vec<_>, Failure> = words.ulimit.iter().map(|word| ulimit(word)).collect();
    Ok(Limits {
        memory,
        cpu_millis: words.cpus.as_deref().map(cpu_millis).transpose()?,
        cpuset: words.cpuset_cpus.as_deref().map(cpuset).transpose()?,
        pids: Some(words.pids_limit).filter(|limit| *limit > 0),
        shm: Some(bytes(&words.shm_size)?),
        rlimits: rlimits?,
        memory_swap: words.memory_swap.as_deref().map(|text| memory_swap(text, memory)).transpose()?,
        memory_reservation: words.memory_reservation.as_deref().map(bytes).transpose()?,
        cpu_shares: words.cpu_shares,
        cpuset_mems: words.cpuset_mems.clone(),
        oom_score_adj: words.oom_score_adj,
    })
}

/// Memory and swap together; -1 for no limit.
fn memory_swap(text: &str, memory: Option<u64>) -> Result<i64, Failure> {
    let Some(memory) = memory else {
        return Err(Failure::input("--memory-swap counts memory and swap together, and needs --memory")
            .hint("-m 16g --memory-swap 16g allows no swap"));
    };
    if text == "-1" {
        return Ok(-1);
    }
    let both = bytes(text)?;
    if both < memory {
        return Err(Failure::input("--memory-swap is less than --memory, which it includes")
            .hint("-m 16g --memory-swap 16g allows no swap"));
    }
    i64::try_from(both).map_err(|_| Failure::input(format!("--memory-swap {text} is too large")))
}

fn network(words: &NetworkArgs) -> Result<NetworkPlan, Failure> {
    let mode = match words.network {
        NetworkChoice::None => NetworkMode::None,
        NetworkChoice::Host => NetworkMode::Host,
        NetworkChoice::Pasta => NetworkMode::Pasta,
        NetworkChoice::Auto => match Found::search(std::env::var_os("PATH").as_deref()) {
            Ok(_) => NetworkMode::Pasta,
            Err(_) => NetworkMode::None,
        },
    };
    cudock_runtime::network::publications(&words.publish)?;
    let mut hosts = Vec::new();
    for word in &words.add_host {
        let wrong = || {
            Failure::input(format!("`{word}` is not a name and its address")).hint("--add-host db:10.0.0.5")
        };
        let (name, address) = word.split_once([':', '=']).ok_or_else(wrong)?;
        AddHost::parse(&format!("{name}={address}"), Some(std::net::Ipv4Addr::LOCALHOST.into()))?;
        hosts.push((name.to_owned(), address.to_owned()));
    }
    Ok(NetworkPlan {
        mode,
        publish: words.publish.clone(),
        hostname: words.hostname.clone(),
        hosts,
        dns: words.dns.clone(),
    })
}

fn security(words: &SecurityArgs, all: &RunArgs, devices: Vec<DevicePlan>) -> Result<Security, Failure> {
    let changes = |words: &[String]| -> Result<Vec<CapabilityChange>, Failure> {
        words.iter().map(|word| word.parse().map_err(|error| Failure::input(chain(&error)))).collect()
    };
    let mut security = Security {
        capabilities: cudock_runtime::capabilities(&changes(&words.cap_add)?, &changes(&words.cap_drop)?),
        no_new_privileges: true,
        seccomp: Seccomp::Default,
        read_only: all.files.read_only,
        devices,
    };
    for option in &words.security_opt {
        match option.split_once(['=', ':']).unwrap_or((option, "true")) {
            ("no-new-privileges", "true") => security.no_new_privileges = true,
            ("no-new-privileges", "false") => security.no_new_privileges = false,
            // No label and no profile of these is ever applied.
            ("label", "disable") | ("apparmor", "unconfined") => {}
            ("seccomp", "builtin") => security.seccomp = Seccomp::Default,
            ("seccomp", "unconfined") => security.seccomp = Seccomp::Unconfined,
            ("seccomp", file) => {
                security.seccomp = Seccomp::Profile(crate::input::text(Path::new(file))?);
            }
            _ => {
                return Err(Failure::input(format!("--security-opt {option} is not supported")).hint(
                    "no-new-privileges[=false], seccomp=unconfined, seccomp=PROFILE.json, label=disable, \
                     apparmor=unconfined",
                ));
            }
        }
    }
    // Before anything exists, so that a bad profile is a bad call.
    cudock_runtime::check_seccomp(&security)?;
    Ok(security)
}

fn labels(words: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let wrong = |word: &str| Failure::input(format!("`{word}` is not a label")).hint("--label NAME=VALUE");
    words
        .iter()
        .map(|word| {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            if name.is_empty() { Err(wrong(word)) } else { Ok((name.to_owned(), value.to_owned())) }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::default_name;

    #[test]
    fn a_name_is_taken_from_the_image() {
        assert_eq!(default_name("registry.example/team/app:1.4", "0123456789abcdef"), "app-012345");
        assert_eq!(default_name("oci:./layout", "0123456789abcdef"), "layout-012345");
        assert_eq!(default_name("rootfs:/tmp/debian", "0123456789abcdef"), "debian-012345");
        assert_eq!(default_name("app@sha256:00ff", "0123456789abcdef"), "app-012345");
        assert_eq!(default_name("::", "0123456789abcdef"), "container-012345");
    }
}
