//! The command `cudock`: parses arguments, calls one crate, prints. No rule lives here.

mod cli;
mod env;
mod failure;
mod findings;
mod output;
mod table;
mod verbs;

use std::process::ExitCode;

use clap::Parser;

use crate::failure::{Failure, Outcome};

fn main() -> ExitCode {
    match run_monitor().unwrap_or_else(|| verbs::run(cli::Cli::parse())) {
        Ok(outcome) => outcome.into(),
        Err(failure) => {
            failure.print();
            failure.exit_code()
        }
    }
}

/// Runs the monitor of a container, if that is what this process was started for. Its arguments are parsed apart from all
/// others, because the start of a container waits for it.
fn run_monitor() -> Option<Result<Outcome, Failure>> {
    let is_monitor = std::env::args_os().nth(1).is_some_and(|verb| verb == "monitor");
    is_monitor.then(|| {
        let parsed = verbs::MonitorCli::parse_from(std::env::args_os().skip(1));
        verbs::monitor(&parsed.args)
    })
}
