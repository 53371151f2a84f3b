//! `[gateway]` and the flags of `cudock gateway`: one struct is read from both.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{ByteSize, FILE_NAME, HostName, Project, ProjectError, RateLimit, TimeSpan};

// Not a doc comment: clap would show it as the description of `cudock gateway`.
//
// Every setting of a gateway, combined from flags and `cudock.toml` by `or`; what neither sets is `None` and gets its
// default in `cudock-gateway`.
#[derive(Clone, Debug, Default, PartialEq, Args, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GatewayOptions {
    /// Forward requests to this server; repeatable
    #[arg(long, value_name = "URL", env = "INFERENCE_URL", value_delimiter = ',')]
    pub to: Option<Vec<String>>,

    /// Listen on this address; repeatable [default: 127.0.0.1:8080, or 0.0.0.0:$PORT]
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "port")]
    #[schemars(extend("items" = {"type": "string", "pattern": ":[0-9]{1,5}$"}))]
    pub listen: Option<Vec<SocketAddr>>,

    /// Allow this host name on the loopback address, and trust its web pages; repeatable
    #[arg(long = "allow-host", value_name = "NAME")]
    pub allow_hosts: Option<Vec<HostName>>,

    /// Batch POST requests to this path; others are passed on as they are [default: /predict]
    #[arg(long, value_name = "PATH")]
    pub path: Option<String>,

    /// Find the rows of a request under this key [default: input]
    #[arg(long, value_name = "KEY")]
    pub input_key: Option<String>,

    /// Split the list under this key of an answer; repeatable [default: prediction]
    #[arg(long = "output-key", value_name = "KEY")]
    pub output_keys: Option<Vec<String>>,

    /// Copy the list or object under this key of an answer to each request of a batch; repeatable
    #[arg(long = "shared-key", value_name = "KEY")]
    pub shared_keys: Option<Vec<String>>,

    /// Copy this header of an answer to each request of a batch; repeatable
    #[arg(long = "shared-header", value_name = "NAME")]
    pub shared_headers: Option<Vec<String>>,

    /// Set the number of list levels in one row: 0 for a number or text, 1 for a list of numbers, 3 for an image [default: 1]
    #[arg(long, value_name = "N")]
    pub row_rank: Option<usize>,

    /// Let requests share a batch although this header differs; repeatable
    #[arg(long = "ignore-header", value_name = "NAME")]
    pub ignore_headers: Option<Vec<String>>,

    /// Limit the rows of a batch [default: 32]
    #[arg(long, value_name = "ROWS")]
    pub max_batch: Option<usize>,

    /// Limit the time a row waits for others while the server is idle [default: 2ms]
    #[arg(long, value_name = "TIME")]
    pub max_wait: Option<TimeSpan>,

    /// Set the number of batches in one server at once [default: 1]
    #[arg(long, value_name = "N")]
    pub concurrency: Option<usize>,

    /// Respond within this time; batches and queue are kept as small as that needs
    #[arg(long, value_name = "TIME")]
    pub latency_target: Option<TimeSpan>,

    /// Limit the queued rows of each server; further requests get 429 [default: 4096]
    #[arg(long, value_name = "ROWS")]
    pub queue_rows: Option<usize>,

    /// Limit the queue time; requests that would wait longer get 429 [default: 5s]
    #[arg(long, value_name = "TIME")]
    pub queue_time: Option<TimeSpan>,

    /// Give a server this long to answer, and between two parts of an answer [default: 5m]
    #[arg(long, value_name = "TIME")]
    pub timeout: Option<TimeSpan>,

    /// Hold requests this long while no server can be reached [default: 60s]
    #[arg(long, value_name = "TIME")]
    pub hold: Option<TimeSpan>,

    /// Check the health of servers by this path, which must answer 2xx [default: /health, if there is one]
    #[arg(long, value_name = "PATH")]
    pub health_path: Option<String>,

    /// Stop using a busy server that answers neither requests nor health checks for this long [default: 30s]
    #[arg(long, value_name = "TIME")]
    pub health_timeout: Option<TimeSpan>,

    /// Send a POST again if the connection is lost, although the server may have processed it
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub retry_posts: Option<bool>,

    /// Run this command while requests are held, to start a server; split at spaces, without a shell
    #[arg(long, value_name = "COMMAND", value_delimiter = ' ')]
    pub wake: Option<Vec<String>>,

    /// Run this command after --idle-after without a request, to stop a server
    #[arg(long, value_name = "COMMAND", value_delimiter = ' ')]
    pub idle_stop: Option<Vec<String>>,

    /// Run --idle-stop after this time without a request [default: 15m]
    #[arg(long, value_name = "TIME")]
    pub idle_after: Option<TimeSpan>,

    /// Verify servers with https by the certificates in this PEM file [default: the public authorities]
    #[arg(long, value_name = "FILE")]
    pub upstream_ca: Option<PathBuf>,

    /// Limit the size of a request body [default: 64MiB]
    #[arg(long, value_name = "SIZE")]
    pub max_body: Option<ByteSize>,

    /// Limit the memory of requests and answers held at once; further requests get 429 [default: 1GiB]
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

    /// Limit the requests of each API key, or of each address without keys, such as 100/s:20; further ones get 429
    #[arg(long, value_name = "RATE[:BURST]")]
    pub rate_limit: Option<RateLimit>,

    /// Send traces to this OpenTelemetry collector, over HTTP [default: that of the environment]
    #[arg(long, value_name = "URL")]
    pub otlp_endpoint: Option<String>,
}

impl GatewayOptions {
    /// These options, and for each that is not set that of `fallback`.
    #[must_use]
    pub fn or(self, fallback: Self) -> Self {
        combine!(self, fallback,
            to listen allow_hosts path input_key output_keys shared_keys shared_headers row_rank ignore_headers max_batch max_wait
            concurrency latency_target queue_rows queue_time timeout hold health_path health_timeout retry_posts wake
            idle_stop idle_after upstream_ca max_body memory connections io_threads client_timeout drain_timeout
            rate_limit otlp_endpoint
        )
    }

    /// The options in the `cudock.toml` of a directory; none if there is no such file.
    pub fn in_directory(directory: &Path) -> Result<Self, ProjectError> {
        if !directory.join(FILE_NAME).exists() {
            return Ok(Self::default());
        }
        let mut options = Project::open(directory)?.manifest.gateway;
        options.upstream_ca = options.upstream_ca.map(|path| directory.join(path));
        Ok(options)
    }
}
