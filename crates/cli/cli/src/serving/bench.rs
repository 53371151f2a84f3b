//! The arguments of `cudock bench`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use cudock_loadgen::engine_bench::EngineBench;
use cudock_loadgen::payload::{BenchProtocol, ShapeOfRow};
use cudock_loadgen::{Arrivals, Load, LoadSettings, RequestOptions};
use cudock_project::{DeviceChoice, TimeSpan};
use cudock_tune::{AxisFilter, TuneOptions};

use cudock_project::choice;

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools, reason = "independent switches")]
#[command(after_help = "Examples:
  cudock bench http://localhost:8000
  cudock bench http://localhost:8000 -c 32,128 --protocol oip-binary --rows 1,4,16
  cudock bench http://localhost:8000 --rate 1000,2000,4000 --duration 20s --plot load.svg
  cudock bench http://localhost:8000 --target-p99 50ms
  cudock bench http://localhost:9000/predictions/m --body request.json --header 'Authorization: Bearer KEY'
  cudock bench --model model.onnx --batch 1,8,32,128
  cudock bench --tune model.onnx --target-p99 20ms
  cudock bench --tune examples/digits --time 60s --write")]
pub struct BenchArgs {
    /// Send requests to this server: http://host:port, optionally with a path
    #[arg(value_name = "URL", required_unless_present_any = ["model", "tune"], conflicts_with_all = ["model", "tune"])]
    pub url: Option<String>,

    /// Run a closed loop with N clients, each of which waits for its response [default: 1,8,32,128]
    #[arg(long, short, value_name = "N,N", value_delimiter = ',')]
    pub clients: Vec<usize>,

    /// Run an open loop with R requests per second, independent of responses
    #[arg(long, value_name = "R,R", value_delimiter = ',')]
    pub rate: Vec<f64>,

    /// Set the distribution of arrivals in an open loop
    #[arg(long, default_value = "poisson", value_parser = choice(ARRIVALS))]
    pub arrivals: Arrivals,

    /// Search for the highest rate with this 99th percentile latency; with --tune, for the best settings
    #[arg(long, value_name = "TIME", visible_alias = "latency-target")]
    pub target_p99: Option<TimeSpan>,

    /// Measure for this time [default: 5s; 1s with --model and --tune]
    #[arg(long, value_name = "TIME")]
    pub duration: Option<TimeSpan>,

    /// Warm up for this time before measuring [default: 1s; 200ms with --model, 300ms with --tune]
    #[arg(long, value_name = "TIME")]
    pub warm_up: Option<TimeSpan>,

    /// Wait this long for late responses after a run
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub grace: TimeSpan,

    /// Use this protocol
    #[arg(long, default_value = "predict", value_parser = choice(PROTOCOLS))]
    pub protocol: BenchProtocol,

    /// Send requests with N rows; several values are mixed equally
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "1")]
    pub rows: Vec<usize>,

    /// Use this model of the server
    #[arg(long, value_name = "NAME")]
    pub model_name: Option<String>,

    /// Set the shape of one row, as 3,224,224 or NAME=3,224,224, if the server has no metadata
    #[arg(long, value_name = "[NAME=]D,D")]
    pub shape: Vec<ShapeOfRow>,

    /// Set the element type, if the server has no metadata: FP32, INT64, …
    #[arg(long, value_name = "TYPE", requires = "shape")]
    pub dtype: Option<String>,

    /// Send this file instead of generated bodies
    #[arg(long, value_name = "FILE", conflicts_with_all = ["shape", "dtype"])]
    pub body: Option<PathBuf>,

    /// Add a header to every request, as 'Name: value' (repeatable)
    #[arg(long, value_name = "HEADER")]
    pub header: Vec<String>,

    /// Generate N different bodies
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub bodies: usize,

    /// Compare every Nth response with the response to the same request alone; 0 to disable
    #[arg(long, value_name = "N", default_value_t = LoadSettings::CHECK_EVERY)]
    pub check_every: u64,

    /// Seed the random bodies and arrivals
    #[arg(long, value_name = "N", default_value_t = LoadSettings::SEED)]
    pub seed: u64,

    /// Limit the connections of an open loop
    #[arg(long, value_name = "N", default_value_t = LoadSettings::CONNECTIONS)]
    pub connections: usize,

    /// Generate load with N threads [default: 1; up to 4 with --tune]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,

    /// Plot latency and rate to an SVG file; with --tune, throughput against latency
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    pub plot: Option<PathBuf>,

    /// Measure this model in this process, without a server
    #[arg(long, value_name = "FILE", conflicts_with = "tune")]
    pub model: Option<PathBuf>,

    /// Run the model on this device [default: cpu with --model, that of serve with --tune]
    #[arg(long, value_enum)]
    pub device: Option<DeviceChoice>,

    /// Use an installed ONNX Runtime, not the network
    #[arg(long)]
    pub offline: bool,

    #[command(flatten)]
    pub engine: EngineArgs,

    #[command(flatten)]
    pub tuning: TuneArgs,
}

impl BenchArgs {
    /// The requests of a load.
    pub fn requests(&self) -> RequestOptions<'_> {
        RequestOptions {
            protocol: self.protocol,
            model_name: self.model_name.as_deref(),
            shapes: &self.shape,
            dtype: self.dtype.as_deref(),
            body: self.body.as_deref(),
            headers: &self.header,
            rows: &self.rows,
            bodies: self.bodies,
            seed: self.seed,
        }
    }

    /// A load on the server at that address.
    pub fn load(&self, address: SocketAddr, load: Load) -> LoadSettings {
        LoadSettings {
            address,
            load,
            warm_up: self.warm_up.map_or(LoadSettings::WARM_UP, |span| span.0),
            duration: self.duration.map_or(LoadSettings::DURATION, |span| span.0),
            grace: self.grace.0,
            threads: self.threads.unwrap_or(1),
            connections: self.connections,
            check_every: self.check_every,
            seed: self.seed,
        }
    }

    /// The measurement of a model without a server.
    pub fn engine_bench(&self) -> EngineBench<'_> {
        EngineBench {
            batches: &self.engine.batch,
            rows: self.rows.first().copied().unwrap_or(1),
            shapes: &self.shape,
            seed: self.seed,
            warm_up: self.warm_up.map_or(EngineBench::WARM_UP, |span| span.0),
            duration: self.duration.map_or(EngineBench::DURATION, |span| span.0),
        }
    }

    /// The search of settings for the model at that path.
    pub fn tune<'a>(&'a self, path: &'a Path) -> TuneOptions<'a> {
        TuneOptions {
            path,
            device: self.device,
            requests: self.requests(),
            target_p99: self.target_p99.map(|span| span.0),
            time: self.tuning.time.map(|span| span.0),
            clients: &self.clients,
            duration: self.duration.map(|span| span.0),
            warm_up: self.warm_up.map(|span| span.0),
            threads: self.threads,
            axes: &self.tuning.axis,
            is_exhaustive: self.tuning.grid,
            is_written: self.tuning.write,
        }
    }
}

/// Arguments for a model without a server.
#[derive(Debug, Args)]
#[command(next_help_heading = "With --model")]
#[allow(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct EngineArgs {
    /// Run batches of N rows
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "1,2,4,8,16,32,64,128")]
    pub batch: Vec<usize>,

    /// Use the GPU with this index
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub gpu: u32,

    /// Set the threads of a CPU engine [default: one for each available processor]
    #[arg(long, value_name = "N")]
    pub engine_threads: Option<usize>,

    /// Keep N batches in the engine: the next is copied while one runs [default: the number of sessions]
    #[arg(long, value_name = "N")]
    pub lanes: Option<usize>,

    /// Run batches in N parallel sessions
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub sessions: usize,

    /// Run convolutions in NHWC layout
    #[arg(long)]
    pub nhwc: bool,

    /// Record each batch size once and replay it (CUDA graphs)
    #[arg(long)]
    pub graphs: bool,

    /// Do not pin the memory the GPU reads from
    #[arg(long, hide = true)]
    pub no_pinned: bool,

    /// Do not bind tensors to the device beforehand
    #[arg(long, hide = true)]
    pub no_io_binding: bool,
}

/// Arguments for a search.
#[derive(Debug, Args)]
#[command(next_help_heading = "With --tune")]
pub struct TuneArgs {
    /// Search the settings with which this model file or project is served fastest
    #[arg(long, value_name = "PATH")]
    pub tune: Option<PathBuf>,

    /// Search for at most this time, of which a third or more goes to a final between the best [default: 180s]
    #[arg(long, value_name = "TIME", requires = "tune")]
    pub time: Option<TimeSpan>,

    /// Write the best settings to cudock.toml
    #[arg(long, requires = "tune")]
    pub write: bool,

    /// Search this setting only, optionally among these values; repeatable
    #[arg(long, value_name = "KEY[=V,V]", requires = "tune")]
    pub axis: Vec<AxisFilter>,

    /// Measure every combination at every number of clients instead of searching
    #[arg(long, requires = "tune")]
    pub grid: bool,

    /// Load model files that run code, such as pickles
    #[arg(long, requires = "tune")]
    pub trust: bool,
}

/// Distributions of arrivals.
const ARRIVALS: &[(&str, &str, Arrivals)] = &[
    ("poisson", "As from independent clients", Arrivals::Poisson),
    ("constant", "At equal intervals", Arrivals::Constant),
];

/// Protocols of requests.
const PROTOCOLS: &[(&str, &str, BenchProtocol)] = &[
    ("predict", "POST /predict with {\"input\": …}", BenchProtocol::Predict),
    ("oip", "Open Inference Protocol with JSON", BenchProtocol::Oip),
    ("oip-binary", "Open Inference Protocol with binary tensors", BenchProtocol::OipBinary),
    ("raw", "POST /predict with the bytes of the rows", BenchProtocol::Raw),
    ("npy", "POST /predict with a .npy file", BenchProtocol::Npy),
];
