//! The command `cudock`: parses arguments, calls one crate, prints. No rule lives here.

mod cli;
mod env;
mod failure;
mod finding_text;
mod output;
mod verbs;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Args, Parser};

use crate::cli::{Cli, SingleVerb, Verb};
use crate::failure::{Failure, Outcome};

fn main() -> ExitCode {
    match run_hidden().unwrap_or_else(|| verbs::run(parse_alone().unwrap_or_else(Cli::parse))) {
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

/// Parses the arguments of a verb that ends within milliseconds. `None` if it is another one, or if all verbs have to be
/// described: for help, and for arguments that are invalid.
fn parse_alone() -> Option<Cli> {
    fn parsed<A: Args>(verb: fn(A) -> Verb) -> Option<Cli> {
        let SingleVerb { global, args } = SingleVerb::try_parse_from(args()).ok()?;
        Some(Cli { global, verb: verb(args) })
    }
    match args().next()?.to_str()? {
        "run" => parsed(|args| Verb::Run(Box::new(args))),
        "plan" => parsed(|args| Verb::Plan(Box::new(args))),
        "check" => parsed(Verb::Check),
        "lint" => parsed(Verb::Lint),
        _ => None,
    }
}
