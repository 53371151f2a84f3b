//! A request in the words of an engine's command line: a pure function.
//!
//! No word holds a variable's value: the list of processes is for everyone to read. Variables travel beside the words
//! ([`super::variables`]).

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use cudock_inject::Edits;

use super::gpu;
use crate::engine::{Pull, Request};
use crate::error::RuntimeError;
use crate::exec::ExecRequest;
use crate::plan::{Ipc, Limits, MountPlan, NetworkMode, NetworkPlan, Restart, Seccomp, Security};

/// The label of every container that this program had an engine make.
pub(super) const LABEL: &str = "dev.cudock";
/// The label with the GPUs as they were asked for.
pub(super) const GPUS: &str = "dev.cudock.gpus";
/// The label with the group.
pub(super) const GROUP: &str = "dev.cudock.group";

/// How the command marks a directory in the place of an image.
const DIRECTORY: &str = "rootfs:";

/// Whose command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Docker,
    Podman,
}

impl Kind {
    /// The engine, and its program.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
        }
    }
}

/// What is handed over beside the words, by what the words call it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Beside {
    /// The file with variables.
    pub(super) variables: Option<PathBuf>,
    /// Variables that the engine's command takes from its own environment.
    pub(super) named: Vec<String>,
    /// The file with the filter of system calls.
    pub(super) filter: Option<PathBuf>,
}

/// The words of `run`, without the program's own name.
pub(super) fn run(
    kind: Kind,
    request: &Request,
    gpus: Option<&Edits>,
    beside: &Beside,
) -> Result<Vec<OsString>, RuntimeError> {
    let plan = &request.plan;
    let mut words = Words { kind, list: vec!["run".into()] };
    words.switch("--detach", request.detach);
    words.switch("--rm", plan.remove);
    words.switch("--interactive", plan.process.stdin);
    words.switch("--tty", plan.process.tty);
    words.switch("--init", plan.process.init);
    words.some("--cidfile", request.cidfile.as_ref());
    words.some("--pull", request.pull.map(Pull::name));
    words.some("--platform", request.platform.as_ref());
    words.some("--name", Some(&plan.name).filter(|name| !name.is_empty()));
    words.limits(&plan.limits);
    if plan.ipc == Ipc::Host {
        words.add("--ipc", "host");
    }
    for (name, value) in &plan.sysctls {
        words.add("--sysctl", format!("{name}={value}"));
    }
    words.network(&plan.network)?;
    words.security(&plan.security, beside);
    words.restart(plan.restart);
    words.some("--stop-signal", Some(&plan.stop_signal).filter(|signal| !signal.is_empty()));
    words.add("--stop-timeout", plan.stop_seconds.to_string());
    words.some("--user", request.user.as_ref());
    for group in &plan.process.groups {
        words.add("--group-add", words.listed(group));
    }
    words.some("--workdir", request.cwd.as_ref());
    words.variables(beside);
    for mount in &plan.mounts {
        words.mount(mount);
    }
    if let Some(edits) = gpus {
        words.gpus(edits);
    }
    for (name, value) in &plan.labels {
        words.add("--label", format!("{name}={value}"));
    }
    // Ours come last and so count, whatever the user's are.
    words.add("--label", format!("{LABEL}=1"));
    words.some("--label", plan.gpus.as_ref().map(|gpus| format!("{GPUS}={}", gpus.devices)).as_ref());
    words.some("--label", plan.group.as_ref().map(|group| format!("{GROUP}={group}")).as_ref());
    words.image_and_command(request)?;
    Ok(words.list)
}

/// The words of `exec`.
pub(super) fn exec(kind: Kind, id: &str, request: &ExecRequest, beside: &Beside) -> Vec<OsString> {
    let mut words = Words { kind, list: vec!["exec".into()] };
    words.switch("--interactive", request.stdin);
    words.switch("--tty", request.tty);
    words.some("--user", request.user.as_ref());
    words.some("--workdir", request.cwd.as_ref());
    words.variables(beside);
    words.list.push(id.into());
    words.list.extend(request.args.iter().map(OsString::from));
    words.list
}

/// The directory that is to be the root, where the request has one in place of an image.
pub(super) fn directory(request: &Request) -> Option<&Path> {
    request.plan.image.strip_prefix(DIRECTORY).map(Path::new)
}

struct Words {
    kind: Kind,
    list: Vec<OsString>,
}

impl Words {
    fn switch(&mut self, name: &str, on: bool) {
        if on {
            self.list.push(name.into());
        }
    }

    /// `--name=value`, which no value can be mistaken in, whatever it begins with.
    fn add(&mut self, name: &str, value: impl AsRef<OsStr>) {
        let mut word = OsString::from(name);
        word.push("=");
        word.push(value);
        self.list.push(word);
    }

    fn some(&mut self, name: &str, value: Option<impl AsRef<OsStr>>) {
        if let Some(value) = value {
            self.add(name, value);
        }
    }

    /// A value of an option that podman reads as a list with commas.
    fn listed(&self, value: impl AsRef<OsStr>) -> OsString {
        match self.kind {
            Kind::Docker => value.as_ref().to_owned(),
            Kind::Podman => quoted(value.as_ref()),
        }
    }

    fn limits(&mut self, limits: &Limits) {
        self.some("--memory", limits.memory.map(|bytes| format!("{bytes}b")));
        self.some(
            "--cpus",
            limits.cpu_millis.map(|millis| format!("{}.{:03}", millis / 1000, millis % 1000)),
        );
        self.some("--cpuset-cpus", limits.cpuset.as_ref());
        self.some("--cpuset-mems", limits.cpuset_mems.as_ref());
        self.some("--cpu-shares", limits.cpu_shares.map(|shares| shares.to_string()));
        self.some("--memory-swap", limits.memory_swap.map(|bytes| bytes.to_string()));
        self.some("--memory-reservation", limits.memory_reservation.map(|bytes| format!("{bytes}b")));
        self.some("--oom-score-adj", limits.oom_score_adj.map(|score| score.to_string()));
        // Without it podman has a limit of its own.
        self.add("--pids-limit", limits.pids.unwrap_or(-1).to_string());
        self.some("--shm-size", limits.shm.map(|bytes| format!("{bytes}b")));
        let number = |value: u64| i64::try_from(value).unwrap_or(-1).to_string();
        for limit in &limits.rlimits {
            let soft = limit.soft.min(limit.hard);
            self.add("--ulimit", format!("{}={}:{}", limit.name, number(soft), number(limit.hard)));
        }
    }

    /// A network with a way out is the engine's own, whatever it is made with. One without has no way in either, so
    /// where ports are published it is the engine's own, too.
    fn network(&mut self, network: &NetworkPlan) -> Result<(), RuntimeError> {
        let alone = network.mode == NetworkMode::None && network.publish.is_empty();
        match &network.mode {
            NetworkMode::None if alone => self.add("--network", "none"),
            NetworkMode::None | NetworkMode::Pasta => {}
            NetworkMode::Host => self.add("--network", "host"),
            NetworkMode::Join(path) if self.kind == Kind::Podman => {
                let mut word = OsString::from("ns:");
                word.push(path);
                self.add("--network", word);
            }
            NetworkMode::Join(_) => return Err(cannot(self.kind, "join a network namespace that exists")),
        }
        for port in &network.publish {
            self.add("--publish", port);
        }
        self.some("--hostname", network.hostname.as_ref());
        for (name, address) in &network.hosts {
            self.add("--add-host", format!("{name}:{address}"));
        }
        if !alone {
            // Where nobody can be asked, podman refuses to be told whom to ask.
            for server in &network.dns {
                self.add("--dns", server);
            }
        }
        Ok(())
    }

    fn security(&mut self, security: &Security, beside: &Beside) {
        self.add("--cap-drop", "ALL");
        for name in &security.capabilities {
            self.add("--cap-add", name.strip_prefix("CAP_").unwrap_or(name));
        }
        if security.no_new_privileges {
            self.add("--security-opt", "no-new-privileges");
        }
        match (&security.seccomp, &beside.filter) {
            (Seccomp::Unconfined, _) => self.add("--security-opt", "seccomp=unconfined"),
            (Seccomp::Profile(_), Some(file)) => {
                let mut word = OsString::from("seccomp=");
                word.push(file);
                self.add("--security-opt", word);
            }
            (Seccomp::Default | Seccomp::Profile(_), _) => {}
        }
        if security.read_only {
            self.list.push("--read-only".into());
            if self.kind == Kind::Podman {
                // It would put memory over /tmp and others unasked.
                self.list.push("--read-only-tmpfs=false".into());
            }
        }
        for device in &security.devices {
            self.device(&device.host, &device.container, &device.access);
        }
    }

    fn device(&mut self, host: &Path, container: &Path, access: &str) {
        let mut word = host.as_os_str().to_owned();
        word.push(":");
        word.push(container);
        word.push(":");
        word.push(access);
        self.add("--device", self.listed(word));
    }

    fn restart(&mut self, restart: Restart) {
        match restart {
            Restart::No => {}
            Restart::OnFailure { attempts: None } => self.add("--restart", "on-failure"),
            Restart::OnFailure { attempts: Some(most) } => {
                self.add("--restart", format!("on-failure:{most}"));
            }
            // What engines call `always` brings back what was stopped when the engine itself is started again.
            Restart::Always => self.add("--restart", "unless-stopped"),
        }
    }

    fn variables(&mut self, beside: &Beside) {
        self.some("--env-file", beside.variables.as_ref());
        for name in &beside.named {
            self.add("--env", name);
        }
    }

    fn mount(&mut self, mount: &MountPlan) {
        match mount {
            MountPlan::Bind { source, target, read_only } => self.bind(source, target, *read_only),
            MountPlan::Volume { name, target, read_only, copy, .. } => {
                let mut fields =
                    vec!["type=volume".into(), pair("source=", Path::new(name)), pair("target=", target)];
                fields.extend(read_only.then(|| "readonly".into()));
                fields.extend((!copy && self.kind == Kind::Docker).then(|| "volume-nocopy".into()));
                self.add("--mount", record(&fields));
            }
            MountPlan::Tmpfs { target, size, mode } => {
                let mut fields = vec!["type=tmpfs".into(), pair("target=", target)];
                fields.extend(size.map(|size| format!("tmpfs-size={size}").into()));
                fields.push(format!("tmpfs-mode={:o}", mode.unwrap_or(0o1777)).into());
                if self.kind == Kind::Podman {
                    // It would fill the memory with what the image has there.
                    fields.push("notmpcopyup".into());
                }
                self.add("--mount", record(&fields));
            }
        }
    }

    fn bind(&mut self, source: &Path, target: &Path, read_only: bool) {
        let mut fields = vec!["type=bind".into(), pair("source=", source), pair("target=", target)];
        if read_only {
            fields.push("readonly".into());
        }
        self.add("--mount", record(&fields));
    }

    fn gpus(&mut self, edits: &Edits) {
        for node in &edits.devices {
            self.device(&node.host, &node.container, "rw");
        }
        for mount in &edits.mounts {
            self.bind(&mount.host, &mount.container, mount.options.iter().any(|option| option == "ro"));
        }
        for (host, container) in gpu::linked(edits) {
            self.bind(host, container, true);
        }
        for group in &edits.additional_gids {
            self.add("--group-add", group.to_string());
        }
    }

    fn image_and_command(&mut self, request: &Request) -> Result<(), RuntimeError> {
        if let Some(directory) = directory(request) {
            if self.kind == Kind::Docker {
                return Err(cannot(self.kind, "run a directory in place of an image"));
            }
            // The container's changes go elsewhere: the directory is not written to.
            let mut root = directory.as_os_str().to_owned();
            root.push(":O");
            self.list.extend(["--rootfs".into(), "--".into(), root]);
            self.list.extend(request.entrypoint.iter().flatten().map(OsString::from));
        } else {
            let rest = self.entry_point(request.entrypoint.as_deref());
            self.list.extend(["--".into(), OsString::from(&request.plan.image)]);
            self.list.extend(rest);
        }
        self.list.extend(request.command.iter().map(OsString::from));
        Ok(())
    }

    /// Adds the program in place of the image's. Returns what must come before the command.
    fn entry_point(&mut self, program: Option<&[String]>) -> Vec<OsString> {
        match (program, self.kind) {
            (None, _) => Vec::new(),
            (Some([]), _) => {
                self.add("--entrypoint", "");
                Vec::new()
            }
            (Some([first, rest @ ..]), Kind::Docker) => {
                self.add("--entrypoint", first);
                rest.iter().map(OsString::from).collect()
            }
            (Some(program), Kind::Podman) => {
                // It tries to read whatever is here as a list; a program may be called `[`.
                self.add("--entrypoint", serde_json::Value::from(program).to_string());
                Vec::new()
            }
        }
    }
}

fn cannot(kind: Kind, what: &str) -> RuntimeError {
    RuntimeError::Host {
        what: format!("{} cannot {what}", kind.name()),
        hint: "leave --engine out: cudock itself can".to_owned(),
    }
}

fn pair(name: &str, value: &Path) -> OsString {
    let mut field = OsString::from(name);
    field.push(value);
    field
}

/// Fields as one line of comma-separated values, which is how engines read `--mount`.
fn record(fields: &[OsString]) -> OsString {
    let mut line = OsString::new();
    for (index, field) in fields.iter().enumerate() {
        if index > 0 {
            line.push(",");
        }
        line.push(quoted(field));
    }
    line
}

/// A field of such a line, in quotation marks where it needs them.
fn quoted(field: &OsStr) -> OsString {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let bytes = field.as_bytes();
    if !bytes.iter().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r')) {
        return field.to_owned();
    }
    let mut whole = vec![b'"'];
    for &byte in bytes {
        whole.extend(if byte == b'"' { &b"\"\""[..] } else { std::slice::from_ref(&byte) });
    }
    whole.push(b'"');
    OsString::from_vec(whole)
}
