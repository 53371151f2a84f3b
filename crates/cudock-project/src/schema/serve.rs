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

impl Serve {
    /// The settings of one model of several: its own, else those of the server.
    #[must_use]
    pub fn over(self, server: &Self) -> Self {
        Self {
            gpus: self.gpus.or_else(|| server.gpus.clone()),
            gpu_memory: self.gpu_memory.or(server.gpu_memory),
            threads: self.threads.or(server.threads),
            lanes: self.lanes.or(server.lanes),
            sessions: self.sessions.or(server.sessions),
            nhwc: self.nhwc.or(server.nhwc),
            graphs: self.graphs.or(server.graphs),
            exhaustive: self.exhaustive.or(server.exhaustive),
            batch: self.batch.or(server.batch),
            max_batch: self.max_batch.or(server.max_batch),
            max_wait: self.max_wait.or(server.max_wait),
            preferred: self.preferred.or_else(|| server.preferred.clone()),
            pad_rows: self.pad_rows.or(server.pad_rows),
            pad_sizes: self.pad_sizes.or_else(|| server.pad_sizes.clone()),
            latency_target: self.latency_target.or(server.latency_target),
            queue_rows: self.queue_rows.or(server.queue_rows),
            queue_time: self.queue_time.or(server.queue_time),
            engine_timeout: self.engine_timeout.or(server.engine_timeout),
            try_model: TryModel { range: self.try_model.range.or(server.try_model.range) },
            ..server.clone()
        }
    }

    /// A key that is about the whole server and cannot be set for one model.
    pub fn server_key(&self) -> Option<&'static str> {
        let keys = [
            ("listen", self.listen.is_some()),
            ("device", self.device.is_some()),
            ("max_body", self.max_body.is_some()),
            ("memory", self.memory.is_some()),
            ("client_timeout", self.client_timeout.is_some()),
            ("drain_timeout", self.drain_timeout.is_some()),
            ("watch", self.watch.is_some()),
        ];
        keys.into_iter().find(|(_, is_set)| *is_set).map(|(key, _)| key)
    }
}

/// For the page's form.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TryModel {
    /// Values of blank paper and of ink, for models that take a small image.
    pub range: Option<(f64, f64)>,
}
