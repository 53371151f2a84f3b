//! Docker and podman, driven through their commands.
//!
//! Containers get the same confinement and the same GPUs as cudock's own, as far as a command line can express them, and the
//! label `dev.cudock=1`: other containers are neither listed nor touched.
//!
//! Differences to cudock's own engine: the default seccomp profile is the engine's; a network with outbound access or
//! published ports is the engine's default one; `--rootfs` needs podman; and the engine stores variables, which its
//! `inspect` shows.

mod argv;
#[cfg(test)]
mod argv_tests;
mod client;
mod gpu;
mod inputs;
mod kind;
mod labels;
mod summary;
mod variables;

use std::ffi::OsString;
use std::io;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use cudock_base::Timestamp;
use serde_json::Value;

use self::client::{EngineClient, stderr_summary};
use self::inputs::CommandInputs;
use self::kind::EngineKind;
use self::labels::LABEL;
use crate::container::config::Seccomp;
use crate::container::exec::ExecRequest;
use crate::container::usage::Process;
use crate::engine::{Engine, LogRequest, RunImage, RunRequest, Summary};
use crate::error::RuntimeError;
use crate::files::copy::{Copied, CopyRequest, Direction};
use crate::supervise::signal::parse_signal;

/// How long the engine that was chosen may take for a short command.
const TIMEOUT: Duration = Duration::from_secs(20);
/// How long an engine that was not chosen may take.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(3);

/// The engine of this name: docker or podman.
pub fn find(name: &str) -> Result<Box<dyn Engine>, RuntimeError> {
    let kind = match name {
        "docker" => EngineKind::Docker,
        "podman" => EngineKind::Podman,
        _ => {
            return Err(RuntimeError::Request(format!("unknown engine `{name}`: expected docker or podman")));
        }
    };
    let Some(client) = EngineClient::search(kind) else {
        return Err(RuntimeError::Host {
            what: format!("{name} not found in PATH"),
            hint: format!("install {name}, or leave --engine out: cudock runs containers itself"),
        });
    };
    let reason = match client.output_within(TIMEOUT, ["ps", "--quiet", "--last=1"])? {
        Some(output) if output.status.success() => return Ok(Box::new(ExternalEngine { client })),
        Some(output) => stderr_summary(&output),
        None => format!("timed out after {} seconds", TIMEOUT.as_secs()),
    };
    let hint = match kind {
        EngineKind::Docker => {
            "start its daemon (systemctl start docker), or join its group, or leave --engine out"
        }
        EngineKind::Podman => {
            "run `podman info` for details, or leave --engine out: cudock runs containers itself"
        }
    };
    Err(RuntimeError::Host { what: format!("{name} is not available: {reason}"), hint: hint.to_owned() })
}

/// An installed engine that has the image, if any.
pub fn find_with_image(image: &str) -> Option<Box<dyn Engine>> {
    let not_a_name = image.is_empty() || image.starts_with(['.', '/', '-']) || image.starts_with("rootfs:");
    if not_a_name {
        return None;
    }
    [EngineKind::Docker, EngineKind::Podman].into_iter().filter_map(EngineClient::search).find_map(|client| {
        let output = client
            .output_within(SEARCH_TIMEOUT, ["image", "inspect", "--format={{.Id}}", "--", image])
            .ok()??;
        let engine: Box<dyn Engine> = Box::new(ExternalEngine { client });
        output.status.success().then_some(engine)
    })
}

struct ExternalEngine {
    client: EngineClient,
}

impl Engine for ExternalEngine {
    fn name(&self) -> &'static str {
        self.client.kind.name()
    }

    fn find_image(&self, _name: &str) -> Result<RunImage, RuntimeError> {
        Ok(RunImage::Named)
    }

    fn run(&self, mut request: RunRequest, _image: &RunImage) -> Result<i32, RuntimeError> {
        let kind = self.client.kind;
        if request.config.verify_gpu {
            return Err(RuntimeError::Host {
                what: format!("--verify-gpu is not supported with --engine {}", self.name()),
                hint: "leave --engine out to verify the GPUs; both map in the same ones".to_owned(),
            });
        }
        crate::volumes::create_sources(&request.config.mounts)?;
        if kind == EngineKind::Podman {
            // Podman has no privileged daemon, so it can raise limits only as far as this process can.
            request.config.limits.rlimits = crate::start::limits::rlimits(&request.config.limits)?;
        }
        let image = match &request.config.gpus {
            Some(_) if argv::rootfs(&request).is_none() => self.image_environment(&request.config.image)?,
            _ => Vec::new(),
        };
        let edits = gpu::edits(&request, &image)?;
        for warning in edits.iter().flat_map(|edits| &edits.warnings) {
            eprintln!("warning: {warning}");
        }
        let variables = gpu::variables(&request, &image, edits.as_ref());
        let mut inputs = CommandInputs::new(kind, &variables)?;
        if let Seccomp::Profile(text) = &request.config.security.seccomp {
            inputs.add_profile(text)?;
        }
        let args = argv::run(kind, &request, edits.as_ref(), &inputs.refs)?;
        self.client.run_attached(inputs.apply(self.client.command(args)), "cannot run the container")
    }

    fn list(&self, all: bool) -> Result<Vec<Summary>, RuntimeError> {
        let filter = format!("--filter=label={LABEL}=1");
        let mut args = vec!["ps", "--quiet", "--no-trunc", &filter];
        args.extend(all.then_some("--all"));
        let output = self.output("cannot list containers", args)?;
        let ids: Vec<String> =
            String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect();
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let args = ["container", "inspect"].into_iter().map(str::to_owned).chain(ids);
        // The exit code is not checked: a container may have been removed in between, and the others are still listed.
        let output = self.client.output(args)?;
        let mut summaries = Vec::new();
        for value in self.values(&output, "cannot list containers")? {
            summaries.extend(self.parse_summary(&value, "cannot list containers")?);
        }
        summaries.sort_by_key(|container| std::cmp::Reverse(container.created));
        Ok(summaries)
    }

    fn logs(&self, name: &str, request: LogRequest) -> Result<(), RuntimeError> {
        let (_, container) = self.find_container(name)?;
        let mut args = vec!["logs".to_owned()];
        args.extend(request.follow.then(|| "--follow".to_owned()));
        args.extend(request.timestamps.then(|| "--timestamps".to_owned()));
        args.extend(request.tail.map(|lines| format!("--tail={lines}")));
        args.extend(request.since.map(|since| format!("--since={}", Timestamp::from_millis(since))));
        args.extend(request.until.map(|until| format!("--until={}", Timestamp::from_millis(until))));
        args.push(container.id);
        let mut command = self.client.command(args);
        command.stdin(Stdio::null());
        self.run_checked(command, "cannot read the container's log")
    }

    fn exec(&self, name: &str, request: &ExecRequest) -> Result<i32, RuntimeError> {
        let (_, container) = self.find_container(name)?;
        if container.state != "running" {
            return Err(RuntimeError::State { name: container.name, is: container.state, needed: "running" });
        }
        let inputs = CommandInputs::new(self.client.kind, &request.environment)?;
        let args = argv::exec(self.client.kind, &container.id, request, &inputs.refs);
        self.client
            .run_attached(inputs.apply(self.client.command(args)), "cannot run a process in the container")
    }

    fn stop(&self, name: &str, seconds: Option<u32>) -> Result<(), RuntimeError> {
        let (_, container) = self.find_container(name)?;
        let mut args = vec!["stop".to_owned()];
        // The long option has a different name in each engine.
        args.extend(seconds.map(|seconds| format!("-t={seconds}")));
        args.push(container.id);
        self.output("cannot stop the container", args).map(drop)
    }

    fn remove(&self, name: &str, force: bool) -> Result<(), RuntimeError> {
        let (_, container) = self.find_container(name)?;
        if !force && matches!(container.state.as_str(), "running" | "restarting") {
            return Err(RuntimeError::State { name: container.name, is: container.state, needed: "stopped" });
        }
        let mut args = vec!["rm", "--volumes"];
        args.extend(force.then_some("--force"));
        // Docker kills at once; podman sends the stop signal first and waits.
        args.extend((force && self.client.kind == EngineKind::Podman).then_some("--time=0"));
        args.push(&container.id);
        self.output("cannot remove the container", args).map(drop)
    }

    fn wait(&self, name: &str) -> Result<i32, RuntimeError> {
        let action = "cannot wait for the container";
        let (_, container) = self.find_container(name)?;
        let output = self.output(action, ["wait", &container.id])?;
        let text = String::from_utf8_lossy(&output.stdout);
        text.trim().parse().map_err(|_| self.failed(action, &format!("unexpected output `{}`", text.trim())))
    }

    fn inspect(&self, name: &str) -> Result<Value, RuntimeError> {
        self.find_container(name).map(|(value, _)| value)
    }

    fn kill(&self, name: &str, signal: &str) -> Result<(), RuntimeError> {
        let (_, container) = self.find_container(name)?;
        let number = parse_signal(signal)?.get();
        self.output("cannot send the signal", ["kill", &format!("--signal={number}"), &container.id])
            .map(drop)
    }

    fn start(&self, name: &str, variables: &[(String, String)], attach: bool) -> Result<i32, RuntimeError> {
        let (_, container) = self.find_container(name)?;
        if !variables.is_empty() {
            let text = format!("{} stores variables itself: leave -e and --env-file out", self.name());
            return Err(RuntimeError::Request(text));
        }
        if attach {
            let command = self.client.command(["start", "--attach", &container.id]);
            return self.client.run_attached(command, "cannot start the container");
        }
        self.output("cannot start the container", ["start", &container.id]).map(|_| 0)
    }

    fn restart(&self, name: &str, seconds: Option<u32>) -> Result<(), RuntimeError> {
        let (_, container) = self.find_container(name)?;
        let mut args = vec!["restart".to_owned()];
        args.extend(seconds.map(|seconds| format!("-t={seconds}")));
        args.push(container.id);
        self.output("cannot restart the container", args).map(drop)
    }

    fn copy(&self, name: &str, request: &CopyRequest) -> Result<Copied, RuntimeError> {
        let (_, container) = self.find_container(name)?;
        let inside = format!("{}:{}", container.id, request.inside);
        let mut args = vec!["cp".to_owned()];
        args.extend(request.archive.then(|| "--archive".to_owned()));
        // Podman always follows a link as the source.
        let follows = request.follow_link && self.client.kind == EngineKind::Docker;
        args.extend(follows.then(|| "--follow-link".to_owned()));
        args.push("--".to_owned());
        args.extend(match request.direction {
            Direction::In => [request.outside.clone(), inside],
            Direction::Out => [inside, request.outside.clone()],
        });
        self.output("cannot copy", args).map(|_| Copied::default())
    }

    fn processes(&self, _: &str) -> Result<Vec<Process>, RuntimeError> {
        Err(RuntimeError::Host {
            what: format!("`cudock top` is not supported with --engine {}", self.name()),
            hint: format!("use `{} top NAME`", self.name()),
        })
    }
}

impl ExternalEngine {
    /// A container of ours by its name or a prefix of its id.
    fn find_container(&self, name: &str) -> Result<(Value, Summary), RuntimeError> {
        let action = "cannot inspect the container";
        let output = self.client.output(["container", "inspect", "--", name])?;
        if !output.status.success() {
            let reason = stderr_summary(&output);
            let lower = reason.to_lowercase();
            let has = |phrases: &[&str]| phrases.iter().any(|phrase| lower.contains(phrase));
            if has(&["no such container", "no such object", "no container with"]) {
                return Err(RuntimeError::Unknown(name.to_owned()));
            }
            if has(&["more than find_container", "multiple ids"]) {
                return Err(RuntimeError::Ambiguous(name.to_owned()));
            }
            return Err(self.failed(action, &reason));
        }
        let first = self.values(&output, action)?.into_iter().next();
        let value = first.ok_or_else(|| RuntimeError::Unknown(name.to_owned()))?;
        let summary =
            self.parse_summary(&value, action)?.ok_or_else(|| RuntimeError::Unknown(name.to_owned()))?;
        Ok((value, summary))
    }

    /// The environment of an image, which is pulled if it is missing: its GPU requirements must be known before it runs.
    fn image_environment(&self, image: &str) -> Result<Vec<(String, String)>, RuntimeError> {
        let action = "cannot inspect the image";
        let args = ["image", "inspect", "--format={{json .Config.Env}}", "--", image];
        let mut output = self.client.output(args)?;
        if !output.status.success() {
            let mut command = self.client.command(["pull", "--", image]);
            command.stdin(Stdio::null()).stdout(Stdio::from(io::stderr()));
            self.run_checked(command, "cannot fetch the image")?;
            output = self.output(action, args)?;
        }
        let lines: Option<Vec<String>> = serde_json::from_slice(&output.stdout)
            .map_err(|error| self.failed(action, &error.to_string()))?;
        let pair =
            |line: &String| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        Ok(lines.iter().flatten().filter_map(pair).collect())
    }

    /// The output of a command that must succeed.
    fn output(
        &self,
        action: &'static str,
        args: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Result<Output, RuntimeError> {
        let output = self.client.output(args)?;
        if output.status.success() { Ok(output) } else { Err(self.failed(action, &stderr_summary(&output))) }
    }

    /// Runs a command that must succeed, with our own outputs.
    fn run_checked(&self, command: Command, action: &'static str) -> Result<(), RuntimeError> {
        match self.client.run_attached(command, action)? {
            0 => Ok(()),
            code => Err(self.failed(action, &format!("exited with code {code}"))),
        }
    }

    fn values(&self, output: &Output, action: &'static str) -> Result<Vec<Value>, RuntimeError> {
        serde_json::from_slice(&output.stdout).map_err(|error| self.failed(action, &error.to_string()))
    }

    fn parse_summary(&self, value: &Value, action: &'static str) -> Result<Option<Summary>, RuntimeError> {
        summary::parse(value).map_err(|error| self.failed(action, &format!("unexpected output: {error}")))
    }

    fn failed(&self, action: &'static str, reason: &str) -> RuntimeError {
        RuntimeError::system(action, io::Error::other(format!("{}: {reason}", self.name())))
    }
}
