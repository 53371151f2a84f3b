//! `cudock serve`.

use std::path::PathBuf;

use clap::Args;
use cudock_project::ServeOptions;

use super::server::ServerArgs;

#[derive(Clone, Debug, Default, Args)]
#[command(after_help = "Examples:
  cudock serve examples/digits
  cudock serve model.onnx --device cuda --max-batch 128 --preferred 1,8,32,128 --graphs
  cudock serve models/ --latency-target 50ms --watch
  cudock serve weights.safetensors --class net.py:Net --precision fp16
  cudock serve model.onnx --listen 0.0.0.0:8443 --tls-cert chain.pem --tls-key key.pem --api-keys keys.txt
  curl localhost:8000/predict -d '{\"input\": [[0.5, 1, 2]]}'")]
pub struct ServeArgs {
    /// Model file, project, or directory of models [default: the current directory]
    #[arg(value_name = "PATH")]
    pub path: Option<PathBuf>,

    /// Listen on this port of the loopback interface only; 0 takes a free one
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,

    /// Serve the model under this name [default: that of the project or the file]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    #[command(flatten)]
    pub options: ServeOptions,

    /// Use the `serve` section of this file instead of that of the project
    #[arg(long, value_name = "FILE", hide = true)]
    pub settings: Option<PathBuf>,

    #[command(flatten)]
    pub server: ServerArgs,

    /// Download nothing: use the ONNX Runtime that is installed
    #[arg(long)]
    pub offline: bool,
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::Parser;

    use super::*;
    use crate::{Cli, Verb};

    fn parse(args: &[&str]) -> ServeArgs {
        let Verb::Serve(parsed) = Cli::try_parse_from([&["cudock", "serve"], args].concat()).unwrap().verb
        else {
            panic!("not serve")
        };
        *parsed
    }

    #[test]
    fn every_key_of_the_file_has_a_flag_of_the_same_name() {
        let keys = [
            ("listen", "['127.0.0.1:80']", "--listen=127.0.0.1:80"),
            ("allow_hosts", "['a.example']", "--allow-host=a.example"),
            ("device", "'tensorrt'", "--device=tensorrt"),
            ("gpus", "[0, 1]", "--gpus=0,1"),
            ("gpu_memory", "'8GiB'", "--gpu-memory=8GiB"),
            ("threads", "3", "--threads=3"),
            ("lanes", "3", "--lanes=3"),
            ("sessions", "3", "--sessions=3"),
            ("nhwc", "true", "--nhwc"),
            ("graphs", "true", "--graphs"),
            ("exhaustive", "true", "--exhaustive"),
            ("max_batch", "3", "--max-batch=3"),
            ("max_wait", "'3ms'", "--max-wait=3ms"),
            ("preferred", "[1, 8]", "--preferred=1,8"),
            ("pad_rows", "true", "--pad-rows"),
            ("pad_sizes", "[1, 8]", "--pad-sizes=1,8"),
            ("latency_target", "'3ms'", "--latency-target=3ms"),
            ("queue_rows", "3", "--queue-rows=3"),
            ("queue_time", "'3ms'", "--queue-time=3ms"),
            ("engine_timeout", "'3ms'", "--engine-timeout=3ms"),
            ("max_body", "'8KiB'", "--max-body=8KiB"),
            ("memory", "'8KiB'", "--memory=8KiB"),
            ("client_timeout", "'3ms'", "--client-timeout=3ms"),
            ("drain_timeout", "'3ms'", "--drain-timeout=3ms"),
            ("precision", "'bf16'", "--precision=bf16"),
            ("python", "'python3.12'", "--python=python3.12"),
            ("class", "'net.py:Net'", "--class=net.py:Net"),
            ("trust", "true", "--trust"),
            ("compile", "true", "--compile"),
            ("engine_memory", "'8GiB'", "--engine-memory=8GiB"),
            ("model_memory", "'8KiB'", "--gpu-memory-budget=8KiB"),
            ("on_demand", "true", "--on-demand"),
            ("idle_unload", "'3ms'", "--idle-unload=3ms"),
            ("keep_loaded", "['a', 'b']", "--keep-loaded=a,b"),
            ("require_gpu", "true", "--require-gpu"),
            ("watch", "true", "--watch"),
            ("routes", "['torchserve', 'kserve-v1']", "--routes=torchserve,kserve-v1"),
            ("rate_limit", "'100/s:20'", "--rate-limit=100/s:20"),
            ("otlp_endpoint", "'http://c:4318'", "--otlp-endpoint=http://c:4318"),
        ];
        for (key, value, flag) in keys {
            let text = format!("[serve]\n{key} = {value}\n");
            let file = cudock_project::parse(Path::new("cudock.toml"), &text).unwrap().serve;
            assert_ne!(file, ServeOptions::default(), "{key}");
            assert_eq!(parse(&[flag]).options, file, "{key}");
        }
    }
}
