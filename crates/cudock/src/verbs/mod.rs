//! One module a verb.

mod doctor;
mod explain;
mod facts;
mod nvml;

use cudock_facts::Facts;

use crate::cli::{Cli, Verb};
use crate::failure::{Failure, Outcome};

/// Runs the verb that was asked for.
pub(crate) fn run(arguments: Cli) -> Result<Outcome, Failure> {
    if let Verb::Nvml { library } = &arguments.verb {
        return Ok(nvml::run(library.as_deref()));
    }
    let facts = match &arguments.facts {
        Some(directory) => Facts::with_overlay(directory)?,
        None => Facts::embedded(),
    };
    match arguments.verb {
        Verb::Facts(words) => facts::run(&facts, &words, arguments.format),
        Verb::Explain(words) => explain::run(&facts, &words, arguments.format),
        Verb::Doctor(words) => doctor::run(&facts, &words, arguments.format),
        Verb::Nvml { .. } => unreachable!("answered above, without tables"),
    }
}
