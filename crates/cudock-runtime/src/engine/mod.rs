//! Who runs containers: cudock itself, or an engine that is installed on this machine.

pub mod builtin;
pub mod other;

use std::path::PathBuf;

pub use cudock_image::Pull;
use serde::Serialize;
use serde_json::Value;

use crate::copy::CopyRequest;
use crate::error::RuntimeError;
use crate::exec::ExecRequest;
use crate::plan::{Plan, Private};
use crate::tree::Copied;
use crate::usage::Process;

/// What was asked of an engine: everything but what only the image knows.
#[derive(Debug, Clone)]
pub struct Request {
    /// Everything about the container. Its layers, the image's variables and the parts of its process that the image
    /// decides are filled in by the engine.
    pub plan: Plan,
    /// Variables that the user gave.
    pub private: Private,
    /// What is run in place of the image's entry point.
    pub entrypoint: Option<Vec<String>>,
    /// What is run in place of the image's command.
    pub command: Vec<String>,
    /// Whether the user chose the working directory.
    pub cwd: Option<String>,
    /// Whether the user chose who it runs as.
    pub user: Option<String>,
    /// Whether to come back as soon as it runs.
    pub detach: bool,
    /// A file that its id is written to, which must not exist yet.
    pub cidfile: Option<PathBuf>,
    /// Whether the image is fetched; what the engine does by default without it.
    pub pull: Option<Pull>,
    /// Which image of several, as in linux/arm64.
    pub platform: Option<String>,
}

/// A container as a list shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it was made of.
    pub image: String,
    /// What runs in it.
    pub command: String,
    /// created, running, restarting, exited, lost.
    pub state: String,
    /// When it was made, in milliseconds since 1970.
    pub created: u64,
    /// When it was last started.
    pub started: Option<u64>,
    /// What it ended with.
    pub exit_code: Option<i32>,
    /// Whether it was ended for using more memory than it may.
    pub out_of_memory: bool,
    /// How often it was started again.
    pub restarts: u32,
    /// Whether it can be asked, where someone asks after it: a group's container.
    pub ready: Option<bool>,
    /// Ports of this machine that lead into it.
    pub ports: Vec<String>,
    /// The GPUs it has, as they were asked for.
    pub gpus: Option<String>,
    /// The group it belongs to.
    pub group: Option<String>,
}

/// Which lines of a log.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogRequest {
    /// Whether to go on as it grows.
    pub follow: bool,
    /// Only so many of the last.
    pub tail: Option<usize>,
    /// Whether each line begins with its time.
    pub timestamps: bool,
    /// Only lines of this moment and later, in milliseconds since 1970.
    pub since: Option<u64>,
    /// Only lines before this moment.
    pub until: Option<u64>,
}

/// What every engine can do. Names are those of containers, or beginnings of their ids.
pub trait Engine {
    /// cudock, docker, podman.
    fn name(&self) -> &'static str;
    /// Runs a container. What it ended with, or 0 where it goes on without us; its id is printed then.
    fn run(&self, request: Request) -> Result<i32, RuntimeError>;
    /// The containers that run, or all.
    fn list(&self, all: bool) -> Result<Vec<Summary>, RuntimeError>;
    /// Prints what a container wrote.
    fn logs(&self, name: &str, request: LogRequest) -> Result<(), RuntimeError>;
    /// Runs a further process in a container. What it ended with.
    fn exec(&self, name: &str, request: &ExecRequest) -> Result<i32, RuntimeError>;
    /// Asks a container to end, and ends it after so many seconds.
    fn stop(&self, name: &str, seconds: Option<u32>) -> Result<(), RuntimeError>;
    /// Stops several, at once where the engine can. One result for each.
    fn stop_all(&self, names: &[String], seconds: Option<u32>) -> Vec<Result<(), RuntimeError>> {
        names.iter().map(|name| self.stop(name, seconds)).collect()
    }
    /// Removes a container.
    fn remove(&self, name: &str, force: bool) -> Result<(), RuntimeError>;
    /// Waits for a container's end. What it ended with.
    fn wait(&self, name: &str) -> Result<i32, RuntimeError>;
    /// Everything that is known of a container.
    fn inspect(&self, name: &str) -> Result<Value, RuntimeError>;
    /// Sends a signal to a container's first process.
    fn kill(&self, name: &str, signal: &str) -> Result<(), RuntimeError>;
    /// Starts a container again that ended, with the variables that were given to it and are not kept. What it ended
    /// with, or 0 where it goes on without us.
    fn start(&self, name: &str, given: &[(String, String)], attach: bool) -> Result<i32, RuntimeError>;
    /// Stops a container, where it runs, and starts it again.
    fn restart(&self, name: &str, seconds: Option<u32>) -> Result<(), RuntimeError>;
    /// Copies files between a container and this machine.
    fn copy(&self, name: &str, request: &CopyRequest) -> Result<Copied, RuntimeError>;
    /// The processes of a container.
    fn processes(&self, name: &str) -> Result<Vec<Process>, RuntimeError>;
}
