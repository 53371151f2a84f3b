//! The gateway alone, for small images: `cudock gateway` without the rest of cudock.

use std::process::ExitCode;

use clap::Parser;
use cudock_base::{Report, text};
use cudock_cli::GatewayArgs;
use cudock_gateway::{GatewayRequest, run};

#[derive(Parser)]
#[command(name = "cudock-gateway", version)]
struct Cli {
    #[command(flatten)]
    args: GatewayArgs,
}

fn main() -> ExitCode {
    let listening = |url: &str, upstreams: &str| eprintln!("listening on {url}, forwarding to {upstreams}");
    let GatewayArgs { port, options, server } = Cli::parse().args;
    match run(GatewayRequest { port, options, server: server.options() }, listening) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", text::error_chain(&error));
            for hint in error.hints() {
                eprintln!("hint: {hint}");
            }
            ExitCode::from(error.kind().exit_code())
        }
    }
}
