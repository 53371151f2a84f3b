//! `[serve]` and the flags of `cudock serve`: one struct is read from both.

pub(in crate::schema) mod inputs;
pub(in crate::schema) mod routes;
pub(in crate::schema) mod tensor;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::Deserialize;

use super::serve::inputs::{ImageOptions, ScoreFunction, TextOptions};
use super::serve::routes::{Dialect, HostName, RateLimit};
use super::serve::tensor::TensorDeclaration;
use crate::{ByteSize, TimeSpan};

/// The device that runs a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ValueEnum, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[value(rename_all = "lower")]
pub enum DeviceChoice {
    /// A GPU if there is one
    #[default]
    Auto,
    /// The CPU
    Cpu,
    /// A GPU through CUDA
    Cuda,
    /// A GPU through TensorRT
    TensorRt,
}

impl DeviceChoice {
    /// Replaces `auto` with a device of this machine.
    #[must_use]
    pub fn resolve(self, has_gpu: impl FnOnce() -> bool) -> Self {
        match self {
            Self::Auto if has_gpu() => Self::Cuda,
            Self::Auto => Self::Cpu,
            chosen => chosen,
        }
    }

    /// Whether it is a GPU for certain.
    pub fn is_gpu(self) -> bool {
        matches!(self, Self::Cuda | Self::TensorRt)
    }
}

/// The precision in which a model computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[value(rename_all = "lower")]
pub enum Precision {
    /// That of the model
    Fp32,
    /// Half precision
    Fp16,
    /// Half precision with the range of fp32
    Bf16,
}

impl Precision {
    pub fn name(self) -> &'static str {
        match self {
            Self::Fp32 => "fp32",
            Self::Fp16 => "fp16",
            Self::Bf16 => "bf16",
        }
    }
}

// Not a doc comment: clap would show it as the description of `cudock serve`.
//
// Every setting of a server or a model. Flags and `cudock.toml` are read into this struct and combined by `or`; what
// neither sets is `None` and gets its default in `cudock-serve`. `serde(skip)` marks settings without a key,
// `arg(skip)` those without a flag.
#[derive(Clone, Debug, Default, PartialEq, Args, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ServeOptions {
    /// Listen on this address; repeatable [default: 127.0.0.1:8000]
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "port")]
    #[schemars(extend("items" = {"type": "string", "pattern": ":[0-9]{1,5}$"}))]
    pub listen: Option<Vec<SocketAddr>>,

    /// Allow this host name on the loopback address, and trust its web pages; repeatable
    #[arg(long = "allow-host", value_name = "NAME")]
    pub allow_hosts: Option<Vec<HostName>>,

    /// Run the model on this device [default: a GPU if there is one]
    #[arg(long, value_enum)]
    pub device: Option<DeviceChoice>,

    /// Run an engine on each of the GPUs with these indices
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    pub gpus: Option<Vec<u32>>,

    /// Limit the device memory of an engine, such as 8GiB
    #[arg(long, value_name = "SIZE")]
    pub gpu_memory: Option<ByteSize>,

    /// Set the number of threads of a CPU engine [default: one per processor that this process may use]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,

    /// Set the number of batches in an engine at once: one is copied while another runs [default: 1 on CPU, 2 on a GPU]
    #[arg(long, value_name = "N")]
    pub lanes: Option<usize>,

    /// Set the number of sessions of an engine, which run batches in parallel [default: 1]
    #[arg(long, value_name = "N")]
    pub sessions: Option<usize>,

    /// Run convolutions in channels-last layout
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub nhwc: Option<bool>,

    /// Capture batches of the preferred sizes once and replay them (CUDA graphs)
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub graphs: Option<bool>,

    /// Try every convolution algorithm once per batch size; slow to start, pays off with --preferred
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub exhaustive: Option<bool>,

    /// Cache the engines that TensorRT builds in this directory
    #[arg(long, value_name = "DIR")]
    #[serde(skip)]
    pub engine_cache: Option<PathBuf>,

    /// Do not pin the memory the GPU reads from
    #[arg(long, hide = true, num_args = 0, default_missing_value = "true")]
    #[serde(skip)]
    pub no_pinned: Option<bool>,

    /// Do not bind tensors to the device beforehand
    #[arg(long, hide = true, num_args = 0, default_missing_value = "true")]
    #[serde(skip)]
    pub no_io_binding: Option<bool>,

    /// Whether requests may share a batch; decided by the model's shapes if absent.
    #[arg(skip)]
    pub batch: Option<bool>,

    /// Limit the rows of a batch [default: 32 on CPU, 128 on a GPU]
    #[arg(long, value_name = "ROWS")]
    pub max_batch: Option<usize>,

    /// Limit the time a row waits for others while the device is idle [default: 2ms]
    #[arg(long, value_name = "TIME")]
    pub max_wait: Option<TimeSpan>,

    /// Prefer batches of these row counts
    #[arg(long, value_name = "ROWS,ROWS", value_delimiter = ',')]
    pub preferred: Option<Vec<usize>>,

    /// Pad batches to the next preferred size
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub pad_rows: Option<bool>,

    /// Pad dynamic dimensions of a row to these sizes, so that rows of many lengths share batches
    #[arg(long, value_name = "SIZE,SIZE", value_delimiter = ',')]
    pub pad_sizes: Option<Vec<usize>>,

    /// Respond within this time; batches and queue are kept as small as that needs
    #[arg(long, value_name = "TIME")]
    pub latency_target: Option<TimeSpan>,

    /// Limit the queued rows; further requests get 429 [default: 4096]
    #[arg(long, value_name = "ROWS")]
    pub queue_rows: Option<usize>,

    /// Limit the queue time; requests that would wait longer get 429 [default: 1s]
    #[arg(long, value_name = "TIME")]
    pub queue_time: Option<TimeSpan>,

    /// Replace an engine that takes longer than this for one batch [default: 60s]
    #[arg(long, value_name = "TIME")]
    pub engine_timeout: Option<TimeSpan>,

    /// Limit the size of a request body [default: 64MiB]
    #[arg(long, value_name = "SIZE")]
    pub max_body: Option<ByteSize>,

    /// Limit the memory of requests and responses held at once; further requests get 429 [default: 1GiB]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<ByteSize>,

    /// Limit the number of connections; idle ones make room for new ones [default: 10000]
    #[arg(long, value_name = "N")]
    #[serde(skip)]
    pub connections: Option<usize>,

    /// Set the number of threads that read and write connections [default: by the number of processors]
    #[arg(long, value_name = "N")]
    #[serde(skip)]
    pub io_threads: Option<usize>,

    /// Close connections that are idle or stalled for this long [default: 30s]
    #[arg(long, value_name = "TIME")]
    pub client_timeout: Option<TimeSpan>,

    /// Give running requests this long to finish after SIGTERM [default: 30s]
    #[arg(long, value_name = "TIME")]
    pub drain_timeout: Option<TimeSpan>,

    /// Compute in this precision [default: that of the model]
    #[arg(long, value_enum)]
    pub precision: Option<Precision>,

    /// Run Python models with this interpreter [default: that of the environment]
    #[arg(long, value_name = "FILE")]
    pub python: Option<PathBuf>,

    /// Use this class of a Python model, as model.py:Model
    #[arg(long, value_name = "FILE:CLASS")]
    pub class: Option<String>,

    /// Load files that run code, such as pickles
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub trust: Option<bool>,

    /// Compile PyTorch models with torch.compile: for each preferred size, or for any without them
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub compile: Option<bool>,

    /// Replace an engine that takes more host memory than this
    #[arg(long, value_name = "SIZE")]
    pub engine_memory: Option<ByteSize>,

    /// Declare an input of a Python model that does not describe it; repeatable
    #[arg(long = "input", value_name = "NAME:TYPE[SIZES]")]
    pub inputs: Option<Vec<TensorDeclaration>>,

    /// Outputs of a Python model; found by running it if absent.
    #[arg(skip)]
    pub outputs: Option<Vec<TensorDeclaration>>,

    /// Limit the memory of all loaded models; models are loaded when requested, and the least recently used unloaded
    #[arg(long, value_name = "SIZE", visible_alias = "gpu-memory-budget")]
    pub model_memory: Option<ByteSize>,

    /// Load models at their first request instead of at the start; implied by --model-memory
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub on_demand: Option<bool>,

    /// Unload a model that has had no request for this long; the next request loads it again
    #[arg(long, value_name = "TIME")]
    pub idle_unload: Option<TimeSpan>,

    /// Load these models at the start and never unload them
    #[arg(long, value_name = "NAME,NAME")]
    pub keep_loaded: Option<KeepLoaded>,

    /// Fail instead of running on the CPU if no GPU can be used
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub require_gpu: Option<bool>,

    /// How images become a tensor.
    #[arg(skip)]
    pub image: Option<ImageOptions>,

    /// How texts become tensors.
    #[arg(skip)]
    pub text: Option<TextOptions>,

    /// Path of a file with the name of each class on its line, relative to this file: responses get labels.
    #[arg(skip)]
    pub labels: Option<PathBuf>,

    /// Number of labels for each row, best first; 5 if absent.
    #[arg(skip)]
    #[schemars(extend("minimum" = 1))]
    pub top: Option<usize>,

    /// What is done to scores before labels are added; nothing if absent.
    #[arg(skip)]
    pub scores: Option<ScoreFunction>,

    /// Reload model files when they change (SIGHUP and the repository API do it at once)
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub watch: Option<bool>,

    /// Settings of the form on the server's page.
    #[arg(skip)]
    #[serde(rename = "try")]
    pub try_model: Option<TryModel>,

    /// Also answer clients of these model servers
    #[arg(long, value_name = "NAME,NAME", value_enum, value_delimiter = ',')]
    pub routes: Option<Vec<Dialect>>,

    /// Limit the requests of each API key, or of each address without keys, such as 100/s:20; further ones get 429
    #[arg(long, value_name = "RATE[:BURST]")]
    pub rate_limit: Option<RateLimit>,

    /// Send traces and metrics to this OpenTelemetry collector, over HTTP [default: that of the environment]
    #[arg(long, value_name = "URL")]
    pub otlp_endpoint: Option<String>,
}

impl ServeOptions {
    /// These options, and for each that is not set that of `fallback`.
    #[must_use]
    pub fn or(self, fallback: Self) -> Self {
        combine!(self, fallback,
            listen allow_hosts device gpus gpu_memory threads lanes sessions nhwc graphs exhaustive engine_cache no_pinned
            no_io_binding batch max_batch max_wait preferred pad_rows pad_sizes latency_target queue_rows queue_time
            engine_timeout max_body memory connections io_threads client_timeout drain_timeout precision
            python class trust compile engine_memory inputs outputs model_memory on_demand idle_unload keep_loaded
            require_gpu image text labels top scores watch try_model routes rate_limit otlp_endpoint
        )
    }

    /// These options, with paths relative to `directory`, that of their file.
    #[must_use]
    pub fn with_paths_in(mut self, directory: &Path) -> Self {
        let tokenizer = self.text.as_mut().map(|text| &mut text.tokenizer);
        // A name without a directory is a program on `PATH`.
        let python = self.python.iter_mut().filter(|python| python.components().count() > 1);
        for path in self.labels.iter_mut().chain(tokenizer).chain(python) {
            *path = directory.join(&*path);
        }
        self
    }

    /// Of these options, those that describe a model and nothing else: its tensors and labels, and how images and texts become
    /// tensors.
    #[must_use]
    pub fn descriptive(self) -> Self {
        let Self { inputs, outputs, image, text, labels, top, scores, .. } = self;
        Self { inputs, outputs, image, text, labels, top, scores, ..Self::default() }
    }

    /// A key that applies to the whole server and cannot be set for one model.
    pub fn server_key(&self) -> Option<&'static str> {
        let keys = [
            ("listen", self.listen.is_some()),
            ("device", self.device.is_some()),
            ("max_body", self.max_body.is_some()),
            ("memory", self.memory.is_some()),
            ("client_timeout", self.client_timeout.is_some()),
            ("drain_timeout", self.drain_timeout.is_some()),
            ("model_memory", self.model_memory.is_some()),
            ("on_demand", self.on_demand.is_some()),
            ("watch", self.watch.is_some()),
            ("routes", self.routes.is_some()),
            ("rate_limit", self.rate_limit.is_some()),
            ("otlp_endpoint", self.otlp_endpoint.is_some()),
        ];
        keys.into_iter().find(|(_, is_set)| *is_set).map(|(key, _)| key)
    }
}

/// Which models stay loaded.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected true, false or a list of names of models")]
pub enum KeepLoaded {
    /// All or none of the models to which the file applies.
    All(bool),
    /// The models with these names.
    Names(Vec<String>),
}

impl KeepLoaded {
    pub fn includes(&self, name: &str) -> bool {
        match self {
            Self::All(all) => *all,
            Self::Names(names) => names.iter().any(|other| other == name),
        }
    }
}

impl FromStr for KeepLoaded {
    type Err = Infallible;

    fn from_str(names: &str) -> Result<Self, Infallible> {
        Ok(Self::Names(names.split(',').map(|name| name.trim().to_owned()).collect()))
    }
}

/// Settings of the form on the server's page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TryModel {
    /// Values of blank paper and of ink, for models that take a small image.
    pub range: Option<(f64, f64)>,
}
