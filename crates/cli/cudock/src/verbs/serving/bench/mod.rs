//! `cudock bench`: measures a server under load, or a model without a server; searches the best settings.

mod bare;
mod bare_text;
mod report;
mod runs;
mod text;
mod tune;

use cudock_cli::BenchArgs;

pub(crate) use self::report::{BenchReport, EngineBenchReport};
use crate::failure::{Failure, Outcome};
use crate::output::Format;

pub(crate) fn run(args: &BenchArgs, format: Format) -> Result<Outcome, Failure> {
    match (&args.model, &args.tuning.tune) {
        (Some(model), _) => bare::run(args, model, format),
        (None, Some(path)) => tune::run(args, path, format),
        (None, None) => runs::run(args, format),
    }
}
