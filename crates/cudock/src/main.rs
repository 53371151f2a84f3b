//! The command `cudock`: parses arguments, calls one crate, prints. No rule lives here.

mod cli;
mod env;
mod failure;
mod finding_text;
mod output;
mod verbs;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, RunLine, SingleVerb};
use crate::failure::{Failure, Outcome};

fn main() -> ExitCode {
    match run_alone().unwrap_or_else(|| verbs::run(Cli::parse())) {
        Ok(outcome) => outcome.into(),
        Err(failure) => {
            failure.print();
            failure.exit_code()
        }
    }
}

/// Runs a verb that the start of a container waits for, with its arguments parsed alone. `None` if it is another one, or if
/// all verbs have to be described: for help, and for arguments that are invalid.
fn run_alone() -> Option<Result<Outcome, Failure>> {
    let args = || std::env::args_os().skip(1);
    match args().next()?.to_str()? {
        "run" => Some(verbs::run(SingleVerb::<RunLine>::try_parse_from(args()).ok()?.args.into())),
        "monitor" => Some(verbs::monitor(&SingleVerb::parse_from(args()).args)),
        "enter" => Some(verbs::enter(&SingleVerb::parse_from(args()).args)),
        _ => None,
    }
}
