//! How a model is served.

use serde::Deserialize;

use crate::{ByteSize, Span};

/// What runs the operators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceChoice {
    /// A GPU if this machine has one.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// A GPU through CUDA.
    Cuda,
    /// A GPU through TensorRT.
    TensorRt,
}

/// How a model is served. A flag of the same name wins over a key.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Serve {
    /// Where to listen, as `127.0.0.1:8000`.
    pub listen: Option<Vec<String>>,
    /// What runs the operators.
    pub device: Option<DeviceChoice>,
    /// Numbers of the GPUs.
    pub gpus: Option<Vec<u32>>,
    /// Most device memory.
    pub gpu_memory: Option<ByteSize>,
    /// Threads of a CPU engine.
    pub threads: Option<usize>,
    /// Batches with the engine at once.
    pub lanes: Option<usize>,
    /// Sessions of an engine.
    pub sessions: Option<usize>,
    /// Channels last.
    pub nhwc: Option<bool>,
    /// CUDA graphs for the preferred sizes.
    pub graphs: Option<bool>,
    /// Whether convolutions try every algorithm.
    pub exhaustive: Option<bool>,
    /// Whether rows may share a batch.
    pub batch: Option<bool>,
    /// Most rows of a batch.
    pub max_batch: Option<usize>,
    /// Longest a row waits for others while the device is free.
    pub max_wait: Option<Span>,
    /// Row counts that batches are made for.
    pub preferred: Option<Vec<usize>>,
    /// Whether batches are padded up to a preferred size.
    pub pad_rows: Option<bool>,
    /// Sizes that open dimensions are padded up to.
    pub pad_sizes: Option<Vec<usize>>,
    /// The time answers are to take at most.
    pub latency_target: Option<Span>,
    /// Most rows that wait.
    pub queue_rows: Option<usize>,
    /// Longest wait that is accepted.
    pub queue_time: Option<Span>,
    /// Longest an engine may take for one batch.
    pub engine_timeout: Option<Span>,
    /// Largest body.
    pub max_body: Option<ByteSize>,
    /// Most bytes of requests held at once.
    pub memory: Option<ByteSize>,
    /// How long a client may take to send or to read.
    pub client_timeout: Option<Span>,
    /// How long requests may take to end once the server is told to.
    pub drain_timeout: Option<Span>,
    /// Whether changed model files are loaded by themselves.
    pub watch: Option<bool>,
    /// For the page's form.
    #[serde(rename = "try")]
    pub try_model: TryModel,
}

/// For the page's form.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TryModel {
    /// Values of blank paper and of ink, for models that take a small image.
    pub range: Option<(f64, f64)>,
}
