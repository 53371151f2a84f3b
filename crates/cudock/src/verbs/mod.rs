//! One module a verb.

mod bench;
mod check;
mod doctor;
mod explain;
mod facts;
mod inspect;
mod nvml;
mod progress;
mod runtime;
mod serve;
mod slim;

use cudock_facts::Facts;

pub(crate) use self::bench::BenchArgs;
pub(crate) use self::runtime::RuntimeArgs;
pub(crate) use self::serve::ServeArgs;
use crate::cli::{Cli, Verb};
use crate::failure::{Failure, Outcome};
use crate::output::Format;

/// Runs the verb that was asked for.
pub(crate) fn run(arguments: Cli) -> Result<Outcome, Failure> {
    if arguments.format == Format::Sarif && !matches!(arguments.verb, Verb::Check(_)) {
        return Err(Failure::input("--format sarif is for `check`").hint("use --format json"));
    }
    if let Verb::Nvml { library } = &arguments.verb {
        return Ok(nvml::run(library.as_deref()));
    }
    if let Verb::Inspect(words) = &arguments.verb {
        return inspect::run(words, arguments.format);
    }
    if let Verb::Serve(words) = &arguments.verb {
        return serve::run(words);
    }
    if let Verb::Bench(words) = &arguments.verb {
        return bench::run(words, arguments.format);
    }
    if let Verb::Engine = &arguments.verb {
        return Ok(serve::run_engine());
    }
    let facts = match &arguments.facts {
        Some(directory) => Facts::with_overlay(directory)?,
        None => Facts::embedded(),
    };
    match arguments.verb {
        Verb::Facts(words) => facts::run(&facts, &words, arguments.format),
        Verb::Explain(words) => explain::run(&facts, &words, arguments.format),
        Verb::Check(words) => check::run(&facts, &words, arguments.format),
        Verb::Doctor(words) => doctor::run(&facts, &words, arguments.format),
        Verb::Slim(words) => slim::run(&facts, &words, arguments.format),
        Verb::Runtime(words) => runtime::run(&facts, &words, arguments.format),
        Verb::Nvml { .. } | Verb::Inspect(_) | Verb::Serve(_) | Verb::Bench(_) | Verb::Engine => {
            unreachable!("answered above, without tables")
        }
    }
}
