//! The command `cudock`: parses arguments, calls one crate, prints. No rule lives here.

mod cli;
mod env;
mod failure;
mod finding_text;
mod output;
mod verbs;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, SingleVerb, Verb};
use crate::failure::{Failure, Outcome};

fn main() -> ExitCode {
    match run_hidden().unwrap_or_else(|| parse_alone().map_or_else(parse, Ok).and_then(verbs::run)) {
        Ok(outcome) => outcome.into(),
        Err(failure) => {
            failure.print();
            failure.exit_code()
        }
    }
}

fn args() -> impl Iterator<Item = OsString> {
    std::env::args_os().skip(1)
}

/// Runs a hidden verb that the start of a container waits for.
fn run_hidden() -> Option<Result<Outcome, Failure>> {
    match args().next()?.to_str()? {
        "monitor" => Some(verbs::monitor(&SingleVerb::parse_from(args()).args)),
        "enter" => Some(verbs::enter(&SingleVerb::parse_from(args()).args)),
        _ => None,
    }
}

/// Parses the arguments. Help and errors that clap prints end this process.
fn parse() -> Result<Cli, Failure> {
    Cli::try_parse().map_err(|error| verbs::unknown_flag_of_run(&error).unwrap_or_else(|| error.exit()))
}

/// Parses the arguments of a verb that takes milliseconds. `None` if it is another one, or for help and errors.
fn parse_alone() -> Option<Cli> {
    match args().next()?.to_str()? {
        "run" => Cli::parse_verb(args(), |args| Verb::Run(Box::new(args))),
        "plan" => Cli::parse_verb(args(), |args| Verb::Plan(Box::new(args))),
        "check" => Cli::parse_verb(args(), Verb::Check),
        "explain" => Cli::parse_verb(args(), Verb::Explain),
        "inspect" => Cli::parse_verb(args(), Verb::Inspect),
        "lint" => Cli::parse_verb(args(), Verb::Lint),
        _ => None,
    }
}
