//! Settings that only ONNX Runtime has.

use std::path::PathBuf;

/// Settings that only ONNX Runtime has.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own, to be measured alone")]
pub struct OnnxSettings {
    /// libonnxruntime.so; its provider libraries are in the same directory.
    pub library: PathBuf,
    /// Sessions shared by the lanes; with more than one, copies of one batch overlap with the computation of another.
    pub sessions: usize,
    /// Whether convolutions use the channels-last layout.
    pub nhwc: bool,
    /// Row counts for which the kernel launches are captured as CUDA graphs and replayed; others run as usual. A
    /// capture stops every other lane for a moment, so [`cudock_engine::warm_up`] does it before there are requests. If
    /// it fails, the engine dies and should be restarted without.
    pub graphs: Vec<usize>,
    /// Whether the memory shared with the engine is pinned, so that the device reads it directly.
    pub pinned: bool,
    /// Whether inputs and outputs have fixed buffers in device memory, to and from which each lane copies while another
    /// lane's batch is computed. Otherwise the engine copies before and after the computation, and nothing is captured
    /// (`graphs`).
    pub io_binding: bool,
    /// Whether convolutions try every algorithm once per shape and keep the fastest. Pays off for few batch sizes.
    pub exhaustive: bool,
    /// Directory in which TensorRT caches the engines it builds, which takes minutes.
    pub engine_cache: Option<PathBuf>,
    /// Whether the model is converted to fp16.
    pub fp16: bool,
}

impl OnnxSettings {
    /// One session. What a GPU needs beyond its provider (I/O binding, pinned memory) is enabled.
    pub fn new(library: impl Into<PathBuf>) -> Self {
        Self {
            library: library.into(),
            sessions: 1,
            nhwc: false,
            graphs: Vec::new(),
            pinned: true,
            io_binding: true,
            exhaustive: false,
            engine_cache: None,
            fp16: false,
        }
    }
}
