//! The command `cudock`: parses arguments, calls one crate, prints. No rule lives here.

mod cli;
mod env;
mod failure;
mod finding_text;
mod output;
mod verbs;

use std::process::ExitCode;

use clap::Parser;

use crate::failure::{Failure, Outcome};

fn main() -> ExitCode {
    match run_waited_for().unwrap_or_else(|| verbs::run(cli::Cli::parse())) {
        Ok(outcome) => outcome.into(),
        Err(failure) => {
            failure.print();
            failure.exit_code()
        }
    }
}

/// Runs the monitor of a container or a process that enters one, if that is what this process was started for. Their
/// arguments are parsed apart from all others, because the start of a program waits for them.
fn run_waited_for() -> Option<Result<Outcome, Failure>> {
    let args = || std::env::args_os().skip(1);
    match args().next()?.to_str()? {
        "monitor" => Some(verbs::monitor(&verbs::MonitorCli::parse_from(args()).args)),
        "enter" => Some(verbs::enter(&verbs::EnterCli::parse_from(args()).args)),
        _ => None,
    }
}
