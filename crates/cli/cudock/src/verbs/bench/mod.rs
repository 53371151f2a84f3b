//! `cudock bench`: measures a server under load, or a model without a server; searches the best settings.

mod bare;
mod bare_print;
mod print;
mod runs;
mod tune;

pub(super) use self::bare::EngineBenchReport;
pub(super) use self::runs::BenchReport;
use crate::failure::{Failure, Outcome, chain};
use crate::output::Format;
pub(crate) use cudock_cli::BenchArgs;
use cudock_loadgen::LoadError;

pub(super) fn run(args: &BenchArgs, format: Format) -> Result<Outcome, Failure> {
    match (&args.model, &args.tuning.tune) {
        (Some(model), _) => bare::run(args, model, format),
        (None, Some(path)) => tune::run(args, path, format),
        (None, None) => runs::run(args, format),
    }
}

/// Adds hints to an error of the load generator.
pub(super) fn failure(error: &LoadError) -> Failure {
    let text = chain(error);
    match error {
        LoadError::Usage(error) => error.clone().into(),
        LoadError::Url { .. } => Failure::input(text).hint("write it as http://localhost:8000"),
        LoadError::Name { .. } | LoadError::Connect { .. } => {
            Failure::outside(text).hint("start a server first: `cudock serve MODEL`; or correct the URL")
        }
        LoadError::Refused { status: 404, .. } => {
            Failure::input(text).hint("add the path to the URL, or pass another --protocol or --model-name")
        }
        LoadError::Refused { status: 401 | 403, .. } => {
            Failure::input(text).hint("pass the credentials, as --header 'Authorization: Bearer KEY'")
        }
        LoadError::Refused { status: 400..500, .. } => Failure::input(text)
            .hint("pass the model's input with --shape and --dtype, or a request with --body FILE"),
        LoadError::Payload(_) => Failure::input(text).hint("pass the shape of one row, as --shape 3,224,224"),
        LoadError::Refused { .. }
        | LoadError::Exchange { .. }
        | LoadError::Response { .. }
        | LoadError::Metadata(_)
        | LoadError::Machine { .. }
        | LoadError::Thread => Failure::outside(text),
    }
}
