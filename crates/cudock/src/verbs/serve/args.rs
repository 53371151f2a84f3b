//! The words of `cudock serve`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use cudock_project::{ByteSize, Span};

use crate::env;

/// Connections at once, unless the user says otherwise.
const CONNECTIONS: usize = 10_000;

/// Serve a model over HTTP and gRPC, in batches that keep the device full
///
/// WHAT is a model file, a project (a folder with a cudock.toml), or a folder of models: NAME.onnx, NAME/model.onnx or
/// NAME/VERSION/model.onnx. Speaks `POST /predict`, the Open Inference Protocol v2 over REST and gRPC on one port,
/// and shows a page with live figures at `/`. See docs/serve.md.
#[derive(Clone, Debug, Default, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
#[command(after_help = "Examples:
  cudock serve examples/digits
  cudock serve model.onnx --device cuda --max-batch 128 --preferred 1,8,32,128 --graphs
  cudock serve models/ --latency-target 50ms --watch
  cudock serve model.onnx --listen 0.0.0.0:8443 --tls-cert chain.pem --tls-key key.pem --api-keys keys.txt
  curl localhost:8000/predict -d '{\"input\": [[0.5, 1, 2]]}'")]
pub(crate) struct ServeArgs {
    /// A model file, a project, or a folder of models
    #[arg(value_name = "WHAT", default_value = ".")]
    pub(crate) what: PathBuf,

    /// Where to listen; may be given several times [default: 127.0.0.1:8000]
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "port")]
    pub(crate) listen: Vec<SocketAddr>,

    /// Port on this machine alone; 0 takes a free one
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,

    /// The name the model is served by [default: the project's or the file's]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// What runs the model [default: a GPU if there is one]
    #[arg(long, value_enum)]
    pub(crate) device: Option<DeviceWord>,

    /// Numbers of the GPUs; an engine on each
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    pub(crate) gpus: Vec<u32>,

    /// Most device memory the engine may take, as 8GiB
    #[arg(long, value_name = "SIZE")]
    pub(crate) gpu_memory: Option<ByteSize>,

    /// Threads of a CPU engine [default: one for each processor this process may use]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,

    /// Batches with the engine at once: the next is copied while one runs [default: 1 on CPU, 2 on a GPU]
    #[arg(long, value_name = "N")]
    pub(crate) lanes: Option<usize>,

    /// Sessions of an engine, which run batches side by side [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) sessions: Option<usize>,

    /// Run convolutions with channels last
    #[arg(long)]
    pub(crate) nhwc: bool,

    /// Record batches of the preferred sizes once and replay them (CUDA graphs)
    #[arg(long)]
    pub(crate) graphs: bool,

    /// Let convolutions try every algorithm once for each size of batch; slow to start, pays with --preferred
    #[arg(long)]
    pub(crate) exhaustive: bool,

    /// Folder where TensorRT keeps the engines it builds
    #[arg(long, value_name = "DIR")]
    pub(crate) engine_cache: Option<PathBuf>,

    /// Do not pin the memory the GPU reads from
    #[arg(long, hide = true)]
    pub(crate) no_pinned: bool,

    /// Do not bind tensors to the device beforehand
    #[arg(long, hide = true)]
    pub(crate) no_io_binding: bool,

    /// Most rows of a batch [default: 32 on CPU, 128 on a GPU]
    #[arg(long, value_name = "ROWS")]
    pub(crate) max_batch: Option<usize>,

    /// Longest a row waits for others while the device is free [default: 2ms]
    #[arg(long, value_name = "TIME")]
    pub(crate) max_wait: Option<Span>,

    /// Row counts that batches are made for
    #[arg(long, value_name = "ROWS,ROWS", value_delimiter = ',')]
    pub(crate) preferred: Vec<usize>,

    /// Pad batches up to the next preferred size
    #[arg(long)]
    pub(crate) pad_rows: bool,

    /// Sizes that open dimensions of a row are padded up to, so that rows of many lengths share batches
    #[arg(long, value_name = "SIZE,SIZE", value_delimiter = ',')]
    pub(crate) pad_sizes: Vec<usize>,

    /// The time answers are to take at most; batches and queue are kept as small as that needs
    #[arg(long, value_name = "TIME")]
    pub(crate) latency_target: Option<Span>,

    /// Most rows that wait; beyond them requests are refused with 429 [default: 4096]
    #[arg(long, value_name = "ROWS")]
    pub(crate) queue_rows: Option<usize>,

    /// Longest wait that is accepted; requests that would wait longer are refused with 429 [default: 1s]
    #[arg(long, value_name = "TIME")]
    pub(crate) queue_time: Option<Span>,

    /// Longest an engine may take for one batch before it is replaced [default: 60s]
    #[arg(long, value_name = "TIME")]
    pub(crate) engine_timeout: Option<Span>,

    /// Largest body [default: 64MiB]
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_body: Option<ByteSize>,

    /// Limit the memory of requests and answers held at once; beyond it requests get 429 [default: 1GiB]
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<ByteSize>,

    /// Limit connections at once; idle ones make room for new ones
    #[arg(long, value_name = "N", default_value_t = CONNECTIONS)]
    pub(crate) connections: usize,

    /// Threads that read and write connections [default: by the number of processors]
    #[arg(long, value_name = "N")]
    pub(crate) io_threads: Option<usize>,

    /// Close connections that are idle or stall for so long [default: 30s]
    #[arg(long, value_name = "TIME")]
    pub(crate) client_timeout: Option<Span>,

    /// How long requests may take to end after SIGTERM [default: 30s]
    #[arg(long, value_name = "TIME")]
    pub(crate) drain_timeout: Option<Span>,

    /// Require one of the keys in this file, one per line (`#` begins a comment)
    #[arg(long, value_name = "FILE", env = env::API_KEYS)]
    pub(crate) api_keys: Option<PathBuf>,

    /// Certificate chain, PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// Private key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,

    /// Load model files again when they change (SIGHUP and the repository API do it at once)
    #[arg(long)]
    pub(crate) watch: bool,

    /// How events are written to standard error
    #[arg(long, value_enum, default_value_t = LogWord::Text)]
    pub(crate) log: LogWord,

    /// Write an event for each request
    #[arg(long)]
    pub(crate) log_requests: bool,

    /// Fetch nothing: use the ONNX Runtime that is installed
    #[arg(long)]
    pub(crate) offline: bool,
}

impl ServeArgs {
    /// The arguments of `cudock serve DIRECTORY`.
    pub(crate) fn of_project(directory: &Path, port: Option<u16>, offline: bool) -> Self {
        Self {
            what: directory.to_owned(),
            port,
            offline,
            connections: CONNECTIONS,
            api_keys: std::env::var_os(env::API_KEYS).map(PathBuf::from),
            ..Self::default()
        }
    }
}

/// What runs a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DeviceWord {
    /// A GPU if there is one
    Auto,
    /// The CPU
    Cpu,
    /// A GPU through CUDA
    Cuda,
    /// A GPU through TensorRT
    Tensorrt,
}

/// How events are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogWord {
    /// For people
    #[default]
    Text,
    /// One object a line
    Json,
    /// Not at all
    Off,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Verb};

    #[test]
    fn up_serves_a_project_as_the_command_line_does() {
        let cli = Cli::try_parse_from(["cudock", "serve", "digits", "--port", "0", "--offline"]).unwrap();
        let Verb::Serve(parsed) = cli.verb else { panic!("not serve") };
        let built = ServeArgs::of_project(Path::new("digits"), Some(0), true);
        assert_eq!(format!("{built:?}"), format!("{parsed:?}"));
    }
}
