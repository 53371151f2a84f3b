//! The words of `cudock bench`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use cudock_load::Arrivals;
use cudock_load::payload::{Protocol, ShapeOfRow};
use cudock_project::TimeSpan;

/// Put load on a model server and tell how it bears it, or measure a model without a server
///
/// URL is a server that speaks `POST /predict` or the Open Inference Protocol v2. Requests are made up by what the
/// server says of its model. With --rate latency counts from the time a request was meant to be sent, so a server that
/// stalls cannot hide it. With --model the engine runs in this process: the limit that no server passes. See
/// docs/bench.md.
#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
#[command(after_help = "Examples:
  cudock bench http://localhost:8000
  cudock bench http://localhost:8000 -c 32,128 --protocol oip-binary --rows 1,4,16
  cudock bench http://localhost:8000 --rate 1000,2000,4000 --duration 20s --plot load.svg
  cudock bench http://localhost:8000 --target-p99 50ms
  cudock bench http://localhost:9000/predictions/m --body request.json --header 'Authorization: Bearer KEY'
  cudock bench --model model.onnx --batch 1,8,32,128")]
pub(crate) struct BenchArgs {
    /// The server: http://host:port, or with the path that takes requests
    #[arg(value_name = "URL", required_unless_present = "model", conflicts_with = "model")]
    pub(crate) url: Option<String>,

    /// Closed loop: so many clients, each of which sends when it has its answer [default: 1,8,32,128]
    #[arg(long, short, value_name = "N,N", value_delimiter = ',')]
    pub(crate) clients: Vec<usize>,

    /// Open loop: so many requests a second, whatever the server does
    #[arg(long, value_name = "R,R", value_delimiter = ',')]
    pub(crate) rate: Vec<f64>,

    /// How the requests of an open loop follow each other
    #[arg(long, value_enum, default_value_t = ArrivalsWord::Poisson)]
    pub(crate) arrivals: ArrivalsWord,

    /// Search for the highest rate at which 99 % of the answers take no longer
    #[arg(long, value_name = "TIME")]
    pub(crate) target_p99: Option<TimeSpan>,

    /// How long a run counts [default: 5s; 1s with --model]
    #[arg(long, value_name = "TIME")]
    pub(crate) duration: Option<TimeSpan>,

    /// Load before a run counts [default: 1s; 200ms with --model]
    #[arg(long, value_name = "TIME")]
    pub(crate) warm_up: Option<TimeSpan>,

    /// How long late answers are waited for after a run
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub(crate) grace: TimeSpan,

    /// How the model is asked
    #[arg(long, value_enum, default_value_t = ProtocolWord::Predict)]
    pub(crate) protocol: ProtocolWord,

    /// Rows of a request; with several, as many requests of each
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "1")]
    pub(crate) rows: Vec<usize>,

    /// Which of the server's models
    #[arg(long, value_name = "NAME")]
    pub(crate) model_name: Option<String>,

    /// Shape of one row, as 3,224,224 or NAME=3,224,224, where the server does not say
    #[arg(long, value_name = "[NAME=]D,D")]
    pub(crate) shape: Vec<ShapeOfRow>,

    /// Type of the elements, where the server does not say: FP32, INT64, …
    #[arg(long, value_name = "TYPE", requires = "shape")]
    pub(crate) dtype: Option<String>,

    /// Send this file instead of made-up bodies
    #[arg(long, value_name = "FILE", conflicts_with_all = ["shape", "dtype"])]
    pub(crate) body: Option<PathBuf>,

    /// A header of every request, as 'Name: value'; may be given several times
    #[arg(long, value_name = "HEADER")]
    pub(crate) header: Vec<String>,

    /// How many different bodies are sent
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub(crate) bodies: usize,

    /// Compare every so many answers with what the server said when it was asked alone; 0 compares none
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub(crate) check_every: u64,

    /// Draws bodies and arrivals
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Most connections of an open loop
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub(crate) connections: usize,

    /// Threads that put on the load
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) threads: usize,

    /// Draw latency and rate into an SVG file
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    pub(crate) plot: Option<PathBuf>,

    /// Measure this model in this process, without a server
    #[arg(long, value_name = "FILE")]
    pub(crate) model: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

/// The words for a model without a server.
#[derive(Debug, Args)]
#[command(next_help_heading = "With --model")]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(crate) struct EngineArgs {
    /// Rows of a batch
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "1,2,4,8,16,32,64,128")]
    pub(crate) batch: Vec<usize>,

    /// What runs the model
    #[arg(long, value_enum, default_value_t = EngineDevice::Cpu)]
    pub(crate) device: EngineDevice,

    /// Number of the GPU
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) gpu: u32,

    /// Threads of a CPU engine [default: one for each processor this process may use]
    #[arg(long, value_name = "N")]
    pub(crate) engine_threads: Option<usize>,

    /// Batches with the engine at once: the next is copied while one runs [default: as many as sessions]
    #[arg(long, value_name = "N")]
    pub(crate) lanes: Option<usize>,

    /// Sessions that run batches side by side
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) sessions: usize,

    /// Run convolutions with channels last
    #[arg(long)]
    pub(crate) nhwc: bool,

    /// Record each size of batch once and replay it (CUDA graphs)
    #[arg(long)]
    pub(crate) graphs: bool,

    /// Do not pin the memory the GPU reads from
    #[arg(long, hide = true)]
    pub(crate) no_pinned: bool,

    /// Do not bind tensors to the device beforehand
    #[arg(long, hide = true)]
    pub(crate) no_io_binding: bool,

    /// Fetch nothing: use the ONNX Runtime that is installed
    #[arg(long)]
    pub(crate) offline: bool,
}

/// How requests follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ArrivalsWord {
    /// As independent clients send them
    Poisson,
    /// At equal distances
    Constant,
}

impl From<ArrivalsWord> for Arrivals {
    fn from(word: ArrivalsWord) -> Self {
        match word {
            ArrivalsWord::Poisson => Self::Poisson,
            ArrivalsWord::Constant => Self::Constant,
        }
    }
}

/// How a model is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProtocolWord {
    /// POST /predict with {"input": …}
    Predict,
    /// Open Inference Protocol with JSON
    Oip,
    /// Open Inference Protocol with binary tensors
    OipBinary,
    /// POST /predict with the bytes of the rows
    Raw,
    /// POST /predict with a .npy file
    Npy,
}

impl From<ProtocolWord> for Protocol {
    fn from(word: ProtocolWord) -> Self {
        match word {
            ProtocolWord::Predict => Self::Predict,
            ProtocolWord::Oip => Self::Oip,
            ProtocolWord::OipBinary => Self::OipBinary,
            ProtocolWord::Raw => Self::Raw,
            ProtocolWord::Npy => Self::Npy,
        }
    }
}

/// What runs a model without a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineDevice {
    /// The CPU
    Cpu,
    /// A GPU through CUDA
    Cuda,
    /// A GPU through TensorRT
    Tensorrt,
}
