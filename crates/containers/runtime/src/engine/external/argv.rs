//! Command lines of docker and podman for a request, as pure functions.
//!
//! No argument holds the value of a variable, since every user can list processes. Values are passed in files and in the
//! environment ([`super::inputs`]).

use std::ffi::{OsStr, OsString};
use std::path::Path;

use cudock_inject::Edits;

use super::gpu;
use super::inputs::InputRefs;
use super::kind::EngineKind;
use super::labels::{GPUS, GROUP, LABEL};
use crate::container::config::{
    Ipc, Limits, LogConfig, MountConfig, NetworkConfig, NetworkMode, Propagation, Restart, Seccomp, Security,
};
use crate::container::exec::ExecRequest;
use crate::engine::{Pull, RunRequest};
use crate::error::RuntimeError;

/// The prefix of a directory in place of an image.
const DIRECTORY: &str = "rootfs:";

pub(super) fn run(
    kind: EngineKind,
    request: &RunRequest,
    gpus: Option<&Edits>,
    refs: &InputRefs,
) -> Result<Vec<OsString>, RuntimeError> {
    let config = &request.config;
    let mut argv = Argv { kind, args: vec!["run".into()] };
    argv.switch("--detach", request.detach);
    argv.switch("--rm", config.remove);
    argv.switch("--interactive", config.process.stdin);
    argv.switch("--tty", config.process.tty);
    argv.switch("--init", config.process.init);
    argv.optional("--cidfile", request.cidfile.as_ref());
    argv.optional("--pull", request.pull.map(Pull::name));
    argv.optional("--platform", request.platform.as_ref());
    argv.optional("--name", Some(&config.name).filter(|name| !name.is_empty()));
    argv.limits(&config.limits);
    if config.ipc == Ipc::Host {
        argv.option("--ipc", "host");
    }
    for (name, value) in &config.sysctls {
        argv.option("--sysctl", format!("{name}={value}"));
    }
    argv.network(&config.network)?;
    if let Some(ports) = &request.publish_all {
        argv.switch("--publish-all", true);
        for port in ports {
            argv.option("--expose", port);
        }
    }
    argv.security(&config.security, refs);
    argv.log(config.log);
    argv.restart(config.restart);
    argv.optional("--stop-signal", Some(&config.stop_signal).filter(|signal| !signal.is_empty()));
    argv.option("--stop-timeout", config.stop_seconds.to_string());
    argv.optional("--user", request.user.as_ref());
    for group in &config.process.groups {
        argv.option("--group-add", argv.listed(group));
    }
    argv.optional("--workdir", request.cwd.as_ref());
    argv.variables(refs);
    for mount in &config.mounts {
        argv.mount(mount);
    }
    if let Some(edits) = gpus {
        argv.gpus(edits);
    }
    for (name, value) in &config.labels {
        argv.option("--label", format!("{name}={value}"));
    }
    for (name, value) in &config.annotations {
        argv.option("--annotation", format!("{name}={value}"));
    }
    // Ours come last and so override the user's.
    argv.option("--label", format!("{LABEL}=1"));
    argv.optional("--label", config.gpus.as_ref().map(|gpus| format!("{GPUS}={}", gpus.devices)).as_ref());
    argv.optional("--label", config.group.as_ref().map(|group| format!("{GROUP}={group}")).as_ref());
    argv.image_and_command(request)?;
    Ok(argv.args)
}

pub(super) fn exec(kind: EngineKind, id: &str, request: &ExecRequest, refs: &InputRefs) -> Vec<OsString> {
    let mut argv = Argv { kind, args: vec!["exec".into()] };
    argv.switch("--interactive", request.stdin);
    argv.switch("--tty", request.tty);
    argv.optional("--user", request.user.as_ref());
    argv.optional("--workdir", request.cwd.as_ref());
    argv.variables(refs);
    argv.args.push(id.into());
    argv.args.extend(request.args.iter().map(OsString::from));
    argv.args
}

/// The root directory, if the request has one in place of an image.
pub(super) fn rootfs(request: &RunRequest) -> Option<&Path> {
    request.config.image.strip_prefix(DIRECTORY).map(Path::new)
}

struct Argv {
    kind: EngineKind,
    args: Vec<OsString>,
}

impl Argv {
    fn switch(&mut self, name: &str, on: bool) {
        if on {
            self.args.push(name.into());
        }
    }

    /// Adds `--name=value`, so that a value can begin with a dash.
    fn option(&mut self, name: &str, value: impl AsRef<OsStr>) {
        self.args.push([OsStr::new(name), value.as_ref()].join(OsStr::new("=")));
    }

    fn optional(&mut self, name: &str, value: Option<impl AsRef<OsStr>>) {
        if let Some(value) = value {
            self.option(name, value);
        }
    }

    /// The value of an option that podman parses as a comma-separated list.
    fn listed(&self, value: impl AsRef<OsStr>) -> OsString {
        match self.kind {
            EngineKind::Docker => value.as_ref().to_owned(),
            EngineKind::Podman => quoted(value.as_ref()),
        }
    }

    fn limits(&mut self, limits: &Limits) {
        // Every field, so that a new one is not forgotten here.
        let Limits {
            memory,
            cpu_millis,
            cpuset,
            pids,
            shm,
            rlimits,
            memory_swap,
            memory_reservation,
            cpu_shares,
            cpuset_mems,
            oom_score_adj,
        } = limits;
        self.optional("--memory", memory.map(|bytes| format!("{bytes}b")));
        self.optional("--cpus", cpu_millis.map(|millis| format!("{}.{:03}", millis / 1000, millis % 1000)));
        self.optional("--cpuset-cpus", cpuset.as_ref());
        self.optional("--cpuset-mems", cpuset_mems.as_ref());
        self.optional("--cpu-shares", cpu_shares.map(|shares| shares.to_string()));
        self.optional("--memory-swap", memory_swap.map(|bytes| bytes.to_string()));
        self.optional("--memory-reservation", memory_reservation.map(|bytes| format!("{bytes}b")));
        self.optional("--oom-score-adj", oom_score_adj.map(|score| score.to_string()));
        // Podman has a limit of its own by default.
        self.option("--pids-limit", pids.unwrap_or(-1).to_string());
        self.optional("--shm-size", shm.map(|bytes| format!("{bytes}b")));
        let number = |value: u64| i64::try_from(value).unwrap_or(-1).to_string();
        for limit in rlimits {
            let soft = limit.soft.min(limit.hard);
            self.option("--ulimit", format!("{}={}:{}", limit.name, number(soft), number(limit.hard)));
        }
    }

    /// A network with outbound access is the engine's default one. `none` allows no published ports, so with ports it is the
    /// default one, too.
    fn network(&mut self, network: &NetworkConfig) -> Result<(), RuntimeError> {
        // Every field, so that a new one is not forgotten here.
        let NetworkConfig { mode, publish, hostname, hosts, dns } = network;
        let alone = *mode == NetworkMode::None && publish.is_empty();
        match mode {
            NetworkMode::None if alone => self.option("--network", "none"),
            NetworkMode::None | NetworkMode::Pasta => {}
            NetworkMode::Host => self.option("--network", "host"),
            NetworkMode::Join(path) if self.kind == EngineKind::Podman => {
                self.option("--network", pair("ns:", path));
            }
            NetworkMode::Join(_) => return Err(unsupported(self.kind, "join an existing network namespace")),
        }
        for port in publish {
            self.option("--publish", port);
        }
        self.optional("--hostname", hostname.as_ref());
        for (name, address) in hosts {
            self.option("--add-host", format!("{name}:{address}"));
        }
        if !alone {
            // Podman rejects name servers for a container without a network.
            for server in dns {
                self.option("--dns", server);
            }
        }
        Ok(())
    }

    fn security(&mut self, security: &Security, refs: &InputRefs) {
        // Every field, so that a new one is not forgotten here.
        let Security { capabilities, no_new_privileges, seccomp, read_only, devices } = security;
        self.option("--cap-drop", "ALL");
        for name in capabilities {
            self.option("--cap-add", name.strip_prefix("CAP_").unwrap_or(name));
        }
        if *no_new_privileges {
            self.option("--security-opt", "no-new-privileges");
        }
        match (seccomp, &refs.seccomp_file) {
            (Seccomp::Unconfined, _) => self.option("--security-opt", "seccomp=unconfined"),
            (Seccomp::Profile(_), Some(file)) => self.option("--security-opt", pair("seccomp=", file)),
            (Seccomp::Default | Seccomp::Profile(_), _) => {}
        }
        if *read_only {
            self.args.push("--read-only".into());
            if self.kind == EngineKind::Podman {
                // By default podman mounts a tmpfs on /tmp and other directories.
                self.args.push("--read-only-tmpfs=false".into());
            }
        }
        for device in devices {
            self.device(&device.host, &device.container, &device.access);
        }
    }

    fn device(&mut self, host: &Path, container: &Path, access: &str) {
        let parts = [host.as_os_str(), container.as_os_str(), access.as_ref()];
        self.option("--device", self.listed(parts.join(OsStr::new(":"))));
    }

    /// The default is left to the engine, which has its own.
    fn log(&mut self, log: LogConfig) {
        match log {
            LogConfig::None => self.option("--log-driver", "none"),
            LogConfig::Kept { max_bytes, max_files } if log != LogConfig::default() => {
                if max_bytes < u64::MAX {
                    self.option("--log-opt", format!("max-size={max_bytes}"));
                }
                // Podman keeps one file.
                if self.kind == EngineKind::Docker {
                    self.option("--log-opt", format!("max-file={max_files}"));
                }
            }
            LogConfig::Kept { .. } => {}
        }
    }

    fn restart(&mut self, restart: Restart) {
        match restart {
            Restart::No => {}
            Restart::OnFailure { attempts: None } => self.option("--restart", "on-failure"),
            Restart::OnFailure { attempts: Some(attempts) } => {
                self.option("--restart", format!("on-failure:{attempts}"));
            }
            // With `always` a stopped container starts again with the engine.
            Restart::Always => self.option("--restart", "unless-stopped"),
        }
    }

    fn variables(&mut self, refs: &InputRefs) {
        self.optional("--env-file", refs.env_file.as_ref());
        for name in &refs.env_names {
            self.option("--env", name);
        }
    }

    fn mount(&mut self, mount: &MountConfig) {
        match mount {
            MountConfig::Bind { source, target, read_only, propagation, .. } => {
                self.bind(source, target, *read_only, *propagation);
            }
            MountConfig::Volume { name, target, read_only, copy, .. } => {
                let mut fields =
                    vec!["type=volume".into(), pair("source=", Path::new(name)), pair("target=", target)];
                fields.extend(read_only.then(|| "readonly".into()));
                fields.extend((!copy && self.kind == EngineKind::Docker).then(|| "volume-nocopy".into()));
                self.option("--mount", record(&fields));
            }
            // Docker's long form cannot say that programs may be executed.
            MountConfig::Tmpfs { target, size, mode, no_exec: false } => {
                let size = size.map_or_else(String::new, |size| format!(",size={size}"));
                let options = format!(":exec,mode={:o}{size}", mode.unwrap_or(0o1777));
                self.option("--tmpfs", [target.as_os_str(), OsStr::new(&options)].join(OsStr::new("")));
            }
            MountConfig::Tmpfs { target, size, mode, no_exec: true } => {
                let mut fields = vec!["type=tmpfs".into(), pair("target=", target)];
                fields.extend(size.map(|size| format!("tmpfs-size={size}").into()));
                fields.push(format!("tmpfs-mode={:o}", mode.unwrap_or(0o1777)).into());
                if self.kind == EngineKind::Podman {
                    // By default podman copies the image's files into it.
                    fields.push("notmpcopyup".into());
                }
                self.option("--mount", record(&fields));
            }
        }
    }

    fn bind(&mut self, source: &Path, target: &Path, read_only: bool, propagation: Propagation) {
        let mut fields = vec!["type=bind".into(), pair("source=", source), pair("target=", target)];
        fields.extend(read_only.then(|| "readonly".into()));
        if propagation == Propagation::Slave {
            fields.push("bind-propagation=rslave".into());
        }
        self.option("--mount", record(&fields));
    }

    fn gpus(&mut self, edits: &Edits) {
        for node in &edits.devices {
            self.device(&node.host, &node.container, "rw");
        }
        for mount in &edits.mounts {
            let read_only = mount.options.iter().any(|option| option == "ro");
            self.bind(&mount.host, &mount.container, read_only, Propagation::Private);
        }
        for (host, container) in gpu::linked(edits) {
            self.bind(host, container, true, Propagation::Private);
        }
        for group in &edits.additional_gids {
            self.option("--group-add", group.to_string());
        }
    }

    fn image_and_command(&mut self, request: &RunRequest) -> Result<(), RuntimeError> {
        if let Some(directory) = rootfs(request) {
            if self.kind == EngineKind::Docker {
                return Err(unsupported(self.kind, "run a directory in place of an image"));
            }
            // `:O` keeps the container's changes out of the directory.
            let root = [directory.as_os_str(), OsStr::new("O")].join(OsStr::new(":"));
            self.args.extend(["--rootfs".into(), "--".into(), root]);
            self.args.extend(request.entrypoint.iter().flatten().map(OsString::from));
        } else {
            let rest = self.entry_point(request.entrypoint.as_deref());
            self.args.extend(["--".into(), OsString::from(&request.config.image)]);
            self.args.extend(rest);
        }
        self.args.extend(request.command.iter().map(OsString::from));
        Ok(())
    }

    /// Overrides the image's entry point. Returns the arguments that must come before the command.
    fn entry_point(&mut self, program: Option<&[String]>) -> Vec<OsString> {
        match (program, self.kind) {
            (None, _) => Vec::new(),
            (Some([]), _) => {
                self.option("--entrypoint", "");
                Vec::new()
            }
            (Some([first, rest @ ..]), EngineKind::Docker) => {
                self.option("--entrypoint", first);
                rest.iter().map(OsString::from).collect()
            }
            (Some(program), EngineKind::Podman) => {
                // Podman tries to parse the value as a JSON list, and a program may be called `[`.
                self.option("--entrypoint", serde_json::Value::from(program).to_string());
                Vec::new()
            }
        }
    }
}

fn unsupported(kind: EngineKind, action: &str) -> RuntimeError {
    RuntimeError::Host {
        what: format!("{} cannot {action}", kind.name()),
        hint: "leave --engine out: cudock's own engine can".to_owned(),
    }
}

fn pair(name: &str, value: &Path) -> OsString {
    [OsStr::new(name), value.as_os_str()].join(OsStr::new(""))
}

/// Fields as one record of CSV, which is the format of `--mount`.
fn record(fields: &[OsString]) -> OsString {
    let fields: Vec<OsString> = fields.iter().map(|field| quoted(field)).collect();
    fields.join(OsStr::new(","))
}

/// A field of such a record, quoted if necessary.
fn quoted(field: &OsStr) -> OsString {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let bytes = field.as_bytes();
    if !bytes.iter().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r')) {
        return field.to_owned();
    }
    let mut text = vec![b'"'];
    for &byte in bytes {
        text.extend(if byte == b'"' { &b"\"\""[..] } else { std::slice::from_ref(&byte) });
    }
    text.push(b'"');
    OsString::from_vec(text)
}
