//! Engines that run containers: cudock itself, docker or podman.

pub mod builtin;
pub mod external;
mod image_config;

use std::collections::BTreeMap;
use std::path::PathBuf;

use cudock_gpu_test::DeviceReport;
pub use cudock_image::Pull;
use cudock_image::ResolvedImage;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::container::config::{
    ContainerConfig, Ipc, Limits, LogConfig, NetworkConfig, Private, ProcessConfig, Restart,
};
use crate::container::exec::ExecRequest;
use crate::container::home::new_id;
pub use crate::container::log::LogRequest;
use crate::container::status::now;
use crate::container::usage::Process;
use crate::error::RuntimeError;
use crate::files::copy::CopyRequest;
use crate::files::tree::Copied;
use crate::flags::{self, SecurityFlags};

#[derive(Debug, Clone)]
pub struct RunRequest {
    /// The container, without what the image decides, which the engine fills in.
    pub config: ContainerConfig,
    pub private: Private,
    /// Replaces the image's entry point.
    pub entrypoint: Option<Vec<String>>,
    pub command: Vec<String>,
    pub cwd: Option<String>,
    pub user: Option<String>,
    /// Whether to return as soon as it runs.
    pub detach: bool,
    /// The file to write its id to, which must not exist yet.
    pub cidfile: Option<PathBuf>,
    /// Ports to publish on free ports of this machine, with those that the image exposes; `None` if they are not published.
    pub publish_all: Option<Vec<String>>,
    /// When to pull the image; the engine's default if `None`.
    pub pull: Option<Pull>,
    /// The platform of a multi-platform image, such as linux/arm64.
    pub platform: Option<String>,
}

impl RunRequest {
    /// The request of `cudock run IMAGE`, where every setting is the default.
    pub fn of_image(image: &str) -> Result<Self, RuntimeError> {
        let id = new_id()?;
        let config = ContainerConfig {
            name: flags::default_name(image, &id),
            id,
            created: now(),
            image: image.to_owned(),
            digest: None,
            layers: Vec::new(),
            process: ProcessConfig::default(),
            mounts: Vec::new(),
            gpus: None,
            verify_gpu: false,
            limits: Limits { pids: Some(Limits::PIDS), shm: Some(Limits::SHM), ..Limits::default() },
            network: NetworkConfig { mode: flags::automatic_network(), ..NetworkConfig::default() },
            security: flags::security(&SecurityFlags::default(), Vec::new())?,
            restart: Restart::No,
            stop_signal: String::new(),
            stop_seconds: ContainerConfig::STOP_SECONDS,
            remove: false,
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            log: LogConfig::default(),
            group: None,
            ipc: Ipc::default(),
            sysctls: BTreeMap::new(),
        };
        Ok(Self {
            config,
            private: Private::default(),
            entrypoint: None,
            command: Vec::new(),
            cwd: None,
            user: None,
            detach: false,
            cidfile: None,
            publish_all: None,
            pull: None,
            platform: None,
        })
    }
}

/// The source of a container's root file system.
#[derive(Debug, Clone)]
pub enum RunImage {
    /// The root of a file system, in place of an image.
    Rootfs(PathBuf),
    /// A resolved image. This one is started, even if its name is reassigned meanwhile.
    Found(ResolvedImage),
    /// The config's name, which docker or podman looks up.
    Named,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Summary {
    pub id: String,
    pub name: String,
    pub image: String,
    pub command: String,
    /// created, running, restarting, exited, lost.
    pub state: String,
    /// When it was created, in milliseconds since 1970.
    pub created: u64,
    pub started: Option<u64>,
    pub exit_code: Option<i32>,
    pub out_of_memory: bool,
    pub restarts: u32,
    /// Whether it is ready, for containers of a group.
    pub ready: Option<bool>,
    pub ports: Vec<String>,
    /// The value of `--gpus`.
    pub gpus: Option<String>,
    pub group: Option<String>,
}

/// The operations of an engine. Containers are given by name or by a prefix of the id.
pub trait Engine {
    fn name(&self) -> &'static str;
    /// Finds the image that a name stands for.
    fn find_image(&self, name: &str) -> Result<RunImage, RuntimeError>;
    /// Runs a container and returns its exit code. A detached one returns 0 after its id is printed.
    fn run(&self, request: RunRequest, image: &RunImage) -> Result<i32, RuntimeError>;
    /// Computes on the GPUs from inside a container like the requested one, in which nothing else runs. Fails unless all of
    /// them compute.
    fn verify_gpus(&self, _request: &RunRequest, _image: &RunImage) -> Result<DeviceReport, RuntimeError> {
        let text = format!("the GPUs of a container cannot be verified with --engine {}", self.name());
        Err(RuntimeError::Request(text))
    }
    fn list(&self, all: bool) -> Result<Vec<Summary>, RuntimeError>;
    fn logs(&self, name: &str, request: LogRequest) -> Result<(), RuntimeError>;
    /// Runs another process in a container and returns its exit code.
    fn exec(&self, name: &str, request: &ExecRequest) -> Result<i32, RuntimeError>;
    /// Stops a container, and kills it after `seconds`.
    fn stop(&self, name: &str, seconds: Option<u32>) -> Result<(), RuntimeError>;
    /// Stops several containers, concurrently if the engine can. One result for each.
    fn stop_all(&self, names: &[String], seconds: Option<u32>) -> Vec<Result<(), RuntimeError>> {
        names.iter().map(|name| self.stop(name, seconds)).collect()
    }
    fn remove(&self, name: &str, force: bool) -> Result<(), RuntimeError>;
    /// Waits until a container has exited and returns its exit code.
    fn wait(&self, name: &str) -> Result<i32, RuntimeError>;
    /// Everything known about a container, as JSON.
    fn inspect(&self, name: &str) -> Result<Value, RuntimeError>;
    /// Sends a signal to a container's first process.
    fn kill(&self, name: &str, signal: &str) -> Result<(), RuntimeError>;
    /// Starts a container that has exited, with its variables, whose values are not stored. Returns its exit code if
    /// attached, else 0.
    fn start(&self, name: &str, variables: &[(String, String)], attach: bool) -> Result<i32, RuntimeError>;
    fn restart(&self, name: &str, seconds: Option<u32>) -> Result<(), RuntimeError>;
    fn copy(&self, name: &str, request: &CopyRequest) -> Result<Copied, RuntimeError>;
    fn processes(&self, name: &str) -> Result<Vec<Process>, RuntimeError>;
}
