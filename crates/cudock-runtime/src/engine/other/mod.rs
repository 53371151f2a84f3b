//! Docker and podman, driven by their commands: nothing of theirs is linked in, and nothing else is needed.
//!
//! Whoever has an engine keeps images and networks in it, and may want containers there, too. They are made with the
//! same confinement and the same GPUs as cudock's own, as far as a command line can say them, and carry the
//! label `dev.cudock=1`: containers that others made are neither listed nor touched.
//!
//! What differs from cudock's own: the default filter of system calls is the engine's; a network with a way out is the
//! engine's default one, and so is one with published ports; a directory in place of an image takes podman; and variables
//! are kept by the engine, where `inspect` of it shows them.

mod client;
mod gpu;
mod luggage;
mod memory;
mod moment;
mod summary;
mod variables;
mod words;
#[cfg(test)]
mod words_tests;

use std::ffi::OsString;
use std::io;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

use self::client::{Client, complaint};
use self::luggage::Luggage;
use self::words::{Kind, LABEL};
use crate::copy::{Copied, CopyRequest, Direction};
use crate::engine::{Engine, LogRequest, Request, Summary};
use crate::error::RuntimeError;
use crate::exec::ExecRequest;
use crate::plan::{Rlimit, Seccomp};
use crate::signal::parse_signal;
use crate::usage::Process;

/// An engine that does not answer a short question in this time does not answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// Where nobody asked for an engine, nobody waits for it.
const GLANCE: Duration = Duration::from_secs(3);

/// The engine of this name: docker or podman.
pub fn find(name: &str) -> Result<Box<dyn Engine>, RuntimeError> {
    let kind = match name {
        "docker" => Kind::Docker,
        "podman" => Kind::Podman,
        _ => return Err(RuntimeError::Request(format!("there is no engine `{name}`: docker, podman"))),
    };
    let Some(client) = Client::search(kind) else {
        return Err(RuntimeError::Host {
            what: format!("there is no {name} on this machine"),
            hint: format!("install {name}, or leave --engine out: cudock runs containers itself"),
        });
    };
    let why = match client.ask_within(PATIENCE, ["ps", "--quiet", "--last=1"])? {
        Some(answer) if answer.status.success() => return Ok(Box::new(Other { client })),
        Some(answer) => complaint(&answer),
        None => format!("nothing came for {} seconds", PATIENCE.as_secs()),
    };
    let hint = match kind {
        Kind::Docker => "start its daemon (systemctl start docker), or join its group, or leave --engine out",
        Kind::Podman => "`podman info` tells more; or leave --engine out: cudock runs containers itself",
    };
    Err(RuntimeError::Host { what: format!("{name} does not answer: {why}"), hint: hint.to_owned() })
}

/// An engine of this machine that has the image; none where none has, or none is here.
pub fn holding(image: &str) -> Option<Box<dyn Engine>> {
    let no_name = image.is_empty() || image.starts_with(['.', '/', '-']) || image.starts_with("rootfs:");
    if no_name {
        return None;
    }
    [Kind::Docker, Kind::Podman].into_iter().filter_map(Client::search).find_map(|client| {
        let answer =
            client.ask_within(GLANCE, ["image", "inspect", "--format={{.Id}}", "--", image]).ok()??;
        let engine: Box<dyn Engine> = Box::new(Other { client });
        answer.status.success().then_some(engine)
    })
}

/// An engine by its command.
struct Other {
    client: Client,
}

impl Engine for Other {
    fn name(&self) -> &'static str {
        self.client.kind.name()
    }

    fn run(&self, mut request: Request) -> Result<i32, RuntimeError> {
        let kind = self.client.kind;
        if request.plan.verify_gpu {
            return Err(RuntimeError::Host {
                what: format!(
                    "--verify-gpu computes inside a container, and {} has no way to do so",
                    self.name()
                ),
                hint: "leave --engine out for that; the GPUs that it maps in are the same".to_owned(),
            });
        }
        if kind == Kind::Podman {
            // It has no daemon with rights of its own: what we may not hand down it may not, either.
            let limits = crate::limits::rlimits(&request.plan.limits)?;
            let limit = |(name, soft, hard)| Rlimit { name, soft, hard };
            request.plan.limits.rlimits = limits.into_iter().map(limit).collect();
        }
        let image = match &request.plan.gpus {
            Some(_) if words::directory(&request).is_none() => self.image_environment(&request.plan.image)?,
            _ => Vec::new(),
        };
        let edits = gpu::edits(&request, &image)?;
        for warning in edits.iter().flat_map(|edits| &edits.warnings) {
            eprintln!("warning: {warning}");
        }
        let variables = gpu::variables(&request, &image, edits.as_ref());
        let mut luggage = Luggage::of(kind, &variables)?;
        if let Seccomp::Profile(text) = &request.plan.security.seccomp {
            luggage.add_filter(text)?;
        }
        let words = words::run(kind, &request, edits.as_ref(), &luggage.beside)?;
        self.client.attend(luggage.on(self.client.command(words)), "cannot run the container")
    }

    fn list(&self, all: bool) -> Result<Vec<Summary>, RuntimeError> {
        let filter = format!("--filter=label={LABEL}=1");
        let mut words = vec!["ps", "--quiet", "--no-trunc", &filter];
        words.extend(all.then_some("--all"));
        let output = self.ask("cannot list containers", words)?;
        let ids: Vec<String> =
            String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect();
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let words = ["container", "inspect"].into_iter().map(str::to_owned).chain(ids);
        // One that was removed in between is complained of; the others are there all the same.
        let said = self.client.ask(words)?;
        let mut found = Vec::new();
        for one in self.values(&said, "cannot list containers")? {
            found.extend(self.understood(&one, "cannot list containers")?);
        }
        found.sort_by_key(|container| std::cmp::Reverse(container.created));
        Ok(found)
    }

    fn logs(&self, name: &str, request: LogRequest) -> Result<(), RuntimeError> {
        let (_, container) = self.one(name)?;
        let mut words = vec!["logs".to_owned()];
        words.extend(request.follow.then(|| "--follow".to_owned()));
        words.extend(request.timestamps.then(|| "--timestamps".to_owned()));
        words.extend(request.tail.map(|lines| format!("--tail={lines}")));
        words.extend(request.since.map(|since| format!("--since={}", crate::clock::moment(since))));
        words.extend(request.until.map(|until| format!("--until={}", crate::clock::moment(until))));
        words.push(container.id);
        let mut command = self.client.command(words);
        command.stdin(Stdio::null());
        self.succeeded(command, "cannot read the container's log")
    }

    fn exec(&self, name: &str, request: &ExecRequest) -> Result<i32, RuntimeError> {
        let (_, container) = self.one(name)?;
        if container.state != "running" {
            return Err(RuntimeError::State { name: container.name, is: container.state, needed: "running" });
        }
        let luggage = Luggage::of(self.client.kind, &request.environment)?;
        let words = words::exec(self.client.kind, &container.id, request, &luggage.beside);
        self.client.attend(luggage.on(self.client.command(words)), "cannot run a process in the container")
    }

    fn stop(&self, name: &str, seconds: Option<u32>) -> Result<(), RuntimeError> {
        let (_, container) = self.one(name)?;
        let mut words = vec!["stop".to_owned()];
        // Of the long names each engine dislikes the other's.
        words.extend(seconds.map(|seconds| format!("-t={seconds}")));
        words.push(container.id);
        self.ask("cannot stop the container", words).map(drop)
    }

    fn remove(&self, name: &str, force: bool) -> Result<(), RuntimeError> {
        let (_, container) = self.one(name)?;
        if !force && matches!(container.state.as_str(), "running" | "restarting") {
            return Err(RuntimeError::State { name: container.name, is: container.state, needed: "stopped" });
        }
        let mut words = vec!["rm", "--volumes"];
        words.extend(force.then_some("--force"));
        // Docker kills at once; podman asks first, and waits.
        words.extend((force && self.client.kind == Kind::Podman).then_some("--time=0"));
        words.push(&container.id);
        self.ask("cannot remove the container", words).map(drop)
    }

    fn wait(&self, name: &str) -> Result<i32, RuntimeError> {
        let doing = "cannot wait for the container";
        let (_, container) = self.one(name)?;
        let output = self.ask(doing, ["wait", &container.id])?;
        let said = String::from_utf8_lossy(&output.stdout);
        said.trim().parse().map_err(|_| self.failed(doing, &format!("it said `{}`", said.trim())))
    }

    fn inspect(&self, name: &str) -> Result<Value, RuntimeError> {
        self.one(name).map(|(whole, _)| whole)
    }

    fn kill(&self, name: &str, signal: &str) -> Result<(), RuntimeError> {
        let (_, container) = self.one(name)?;
        let number = parse_signal(signal)?.get();
        self.ask("cannot send the signal", ["kill", &format!("--signal={number}"), &container.id]).map(drop)
    }

    fn start(&self, name: &str, given: &[(String, String)], attach: bool) -> Result<i32, RuntimeError> {
        let (_, container) = self.one(name)?;
        if !given.is_empty() {
            let text = format!("{} keeps variables itself: leave -e and --env-file out", self.name());
            return Err(RuntimeError::Request(text));
        }
        if attach {
            let command = self.client.command(["start", "--attach", &container.id]);
            return self.client.attend(command, "cannot start the container");
        }
        self.ask("cannot start the container", ["start", &container.id]).map(|_| 0)
    }

    fn restart(&self, name: &str, seconds: Option<u32>) -> Result<(), RuntimeError> {
        let (_, container) = self.one(name)?;
        let mut words = vec!["restart".to_owned()];
        words.extend(seconds.map(|seconds| format!("-t={seconds}")));
        words.push(container.id);
        self.ask("cannot restart the container", words).map(drop)
    }

    fn copy(&self, name: &str, request: &CopyRequest) -> Result<Copied, RuntimeError> {
        let (_, container) = self.one(name)?;
        let inside = format!("{}:{}", container.id, request.inside);
        let mut words = vec!["cp".to_owned()];
        words.extend(request.archive.then(|| "--archive".to_owned()));
        // Podman always follows a link that is the source itself.
        let follows = request.follow_link && self.client.kind == Kind::Docker;
        words.extend(follows.then(|| "--follow-link".to_owned()));
        words.push("--".to_owned());
        words.extend(match request.direction {
            Direction::In => [request.outside.clone(), inside],
            Direction::Out => [inside, request.outside.clone()],
        });
        self.ask("cannot copy", words).map(|_| Copied::default())
    }

    fn processes(&self, _: &str) -> Result<Vec<Process>, RuntimeError> {
        Err(RuntimeError::Host {
            what: format!("`cudock top` does not list processes of {}", self.name()),
            hint: format!("`{} top NAME` does", self.name()),
        })
    }
}

impl Other {
    /// A container of ours by its name or the beginning of its id.
    fn one(&self, name: &str) -> Result<(Value, Summary), RuntimeError> {
        let doing = "cannot look at the container";
        let output = self.client.ask(["container", "inspect", "--", name])?;
        if !output.status.success() {
            let why = complaint(&output);
            let said = why.to_lowercase();
            let has = |words: &[&str]| words.iter().any(|words| said.contains(words));
            if has(&["no such container", "no such object", "no container with"]) {
                return Err(RuntimeError::Unknown(name.to_owned()));
            }
            if has(&["more than one", "multiple ids"]) {
                return Err(RuntimeError::Ambiguous(name.to_owned()));
            }
            return Err(self.failed(doing, &why));
        }
        let first = self.values(&output, doing)?.into_iter().next();
        let whole = first.ok_or_else(|| RuntimeError::Unknown(name.to_owned()))?;
        let summary =
            self.understood(&whole, doing)?.ok_or_else(|| RuntimeError::Unknown(name.to_owned()))?;
        Ok((whole, summary))
    }

    /// The environment an image brings. It is fetched where it is not here yet: what it requires of the GPUs must be
    /// known before it runs.
    fn image_environment(&self, image: &str) -> Result<Vec<(String, String)>, RuntimeError> {
        let doing = "cannot look at the image";
        let words = ["image", "inspect", "--format={{json .Config.Env}}", "--", image];
        let mut output = self.client.ask(words)?;
        if !output.status.success() {
            let mut command = self.client.command(["pull", "--", image]);
            command.stdin(Stdio::null()).stdout(Stdio::from(io::stderr()));
            self.succeeded(command, "cannot fetch the image")?;
            output = self.ask(doing, words)?;
        }
        let lines: Option<Vec<String>> =
            serde_json::from_slice(&output.stdout).map_err(|error| self.failed(doing, &error.to_string()))?;
        let pair =
            |line: &String| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        Ok(lines.iter().flatten().filter_map(pair).collect())
    }

    /// What the engine says; an error where it cannot do what it was asked.
    fn ask(
        &self,
        doing: &'static str,
        words: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Result<Output, RuntimeError> {
        let output = self.client.ask(words)?;
        if output.status.success() { Ok(output) } else { Err(self.failed(doing, &complaint(&output))) }
    }

    /// Runs a command with our own outputs, in which it has said by then why it failed.
    fn succeeded(&self, command: Command, doing: &'static str) -> Result<(), RuntimeError> {
        match self.client.attend(command, doing)? {
            0 => Ok(()),
            code => Err(self.failed(doing, &format!("it ended with {code}"))),
        }
    }

    fn values(&self, output: &Output, doing: &'static str) -> Result<Vec<Value>, RuntimeError> {
        serde_json::from_slice(&output.stdout).map_err(|error| self.failed(doing, &error.to_string()))
    }

    fn understood(&self, said: &Value, doing: &'static str) -> Result<Option<Summary>, RuntimeError> {
        summary::summary(said)
            .map_err(|error| self.failed(doing, &format!("its answer is not understood: {error}")))
    }

    /// Ours, and behind it the engine's own words.
    fn failed(&self, doing: &'static str, why: &str) -> RuntimeError {
        RuntimeError::system(doing, io::Error::other(format!("{}: {why}", self.name())))
    }
}
