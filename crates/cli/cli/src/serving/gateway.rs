//! `cudock gateway`.

use clap::Args;
use cudock_project::GatewayOptions;

use super::server::ServerArgs;

#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  cudock gateway --to http://localhost:5000
  cudock gateway --to http://a:8000 --to http://b:8000 --max-batch 64 --latency-target 100ms
  cudock gateway --to http://localhost:5000 --row-rank 3 --output-key scores --output-key labels
  cudock gateway --to http://localhost:8000 --hold 2m --wake 'docker start model'
  curl localhost:8080/predict -H 'content-type: application/json' -d '{\"input\": [0.5, 1, 2]}'")]
pub struct GatewayArgs {
    /// Listen on this port of the loopback interface only; 0 takes a free one
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,

    #[command(flatten)]
    pub options: GatewayOptions,

    #[command(flatten)]
    pub server: ServerArgs,
}
