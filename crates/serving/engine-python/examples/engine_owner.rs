//! Owns an engine process, as `cudock engine-owner` does.

use std::process::ExitCode;

fn main() -> ExitCode {
    cudock_engine::own_engine(std::env::args_os().skip(1)).into()
}
