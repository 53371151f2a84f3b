//! A cloud, a registry and a user's machine.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output};

use cudock_azure_testkit::{ClientRun, CloudSettings, StandIn};
use cudock_base::Digest;
use cudock_testkit::http::{Reply, Request, Server};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{cudock, shown};

/// A cloud, a registry, and the machine of a user who uses both.
pub(super) struct World {
    pub(super) stand_in: StandIn,
    pub(super) registry: Server,
    home: TempDir,
    /// Whether `CUDOCK_OUTPUTS` is set.
    pub(super) keeps_outputs: bool,
    /// The commands that ran, with their output.
    pub(super) transcript: String,
}

impl World {
    /// `None` if `openssl` is missing.
    pub(super) fn new(settings: CloudSettings) -> Option<Self> {
        Self::with_registry(settings, |request| image(request, &json!({})))
    }

    pub(super) fn with_registry(
        settings: CloudSettings,
        registry: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> Option<Self> {
        let stand_in = StandIn::start(settings)?;
        let home = tempfile::tempdir().unwrap();
        let world = Self {
            stand_in,
            registry: Server::start(registry),
            home,
            keeps_outputs: false,
            transcript: String::new(),
        };
        world.write(
            "cudock.toml",
            "[workload]\nkind = \"job\"\nduration = \"5m\"\n\n[needs]\ngpu = [\"T4\"]\n",
        );
        Some(world)
    }

    pub(super) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.home().join(name), text).unwrap();
    }

    /// The image that every deployment runs.
    pub(super) fn image(&self) -> String {
        format!("{}/team/app:1", self.registry.host())
    }

    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let home = self.home();
        let mut command = cudock(arguments);
        command
            .current_dir(home)
            .env("HOME", home)
            .env("CUDOCK_STATE", home.join("state"))
            .env("CUDOCK_CACHE", home.join("cache"))
            .env("USER", "ada");
        if self.keeps_outputs {
            command.env("CUDOCK_OUTPUTS", self.stand_in.storage());
        }
        command
    }

    pub(super) fn run(&mut self, arguments: &[&str]) -> ClientRun {
        let mut command = self.command(arguments);
        self.run_command(&mut command, arguments)
    }

    pub(super) fn run_command(&mut self, command: &mut Command, arguments: &[&str]) -> ClientRun {
        let run = self.stand_in.run(command);
        let end = if run.was_killed { "killed".to_owned() } else { shown(&run.output) };
        let _ = writeln!(self.transcript, "$ cudock {}\n{end}", arguments.join(" "));
        run
    }

    /// Nothing is left and nothing is billed.
    pub(super) fn check_gone(&self) -> Result<(), String> {
        let (left, billed) = (self.stand_in.leftovers(), self.stand_in.billed());
        if left.is_empty() && billed.is_empty() {
            return Ok(());
        }
        Err(format!("left: {left:#?}\nbilled: {billed:?}\nreaper: {:?}", self.stand_in.workflow_runs()))
    }

    /// All entries of `cudock cost`; `None` if it does not know the deployment.
    pub(super) fn journal_entries(cost: &Output) -> Result<Option<JournalEntries>, String> {
        let Ok(report) = serde_json::from_slice::<Value>(&cost.stdout) else {
            let is_unknown = cost.status.code() == Some(2);
            return if is_unknown { Ok(None) } else { Err(format!("cost failed: {}", shown(cost))) };
        };
        let entries = report["deployments"].as_array().cloned().unwrap_or_default();
        let seconds: Option<u64> = entries.iter().map(|entry| entry["billed_seconds"].as_u64()).sum();
        let state = |entry: &&Value| entry["state"] != "gone";
        let worst = entries.iter().find(state).or(entries.first()).and_then(|entry| entry["state"].as_str());
        let is_exact = entries.iter().all(|entry| entry["exact"] == true);
        match (worst, seconds) {
            (Some(state), Some(seconds)) => {
                Ok(Some(JournalEntries { state: state.to_owned(), seconds, is_exact }))
            }
            _ => Err(format!("cost has no deployment: {report}")),
        }
    }
}

/// The report of `cudock cost` about the deployments of a name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct JournalEntries {
    pub(super) state: String,
    /// Billed.
    pub(super) seconds: u64,
    pub(super) is_exact: bool,
}

/// A registry with one image, which has no layers and this configuration.
pub(super) fn image(request: &Request, config: &Value) -> Reply {
    let config = json!({"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": []}, "config": config});
    let config = config.to_string();
    let digest = Digest::sha256_of(config.as_bytes()).to_string();
    let manifest = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "layers": [],
        "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest, "size": config.len()},
    });
    let (body, kind) = match &request.path {
        path if path.ends_with(&digest) => (config, "application/octet-stream"),
        path if path.starts_with("/v2/team/app/manifests/") => {
            (manifest.to_string(), "application/vnd.oci.image.manifest.v1+json")
        }
        _ => return Reply::new(404, ""),
    };
    let is_head = request.method == "HEAD";
    Reply::new(200, if is_head { String::new() } else { body }).with("Content-Type", kind)
}
