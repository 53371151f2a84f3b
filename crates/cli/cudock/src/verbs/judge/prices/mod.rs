//! `cudock prices`: shows the age of the prices, and refreshes them.

mod refresh;
mod status;

use std::path::Path;

use cudock_cli::{PricesArgs, PricesVerb};

pub(crate) use self::refresh::RefreshOutput;
pub(crate) use self::status::StatusReport;
use crate::failure::{Failure, Outcome};
use crate::output::Format;

pub(crate) fn run(directory: Option<&Path>, args: &PricesArgs, format: Format) -> Result<Outcome, Failure> {
    match &args.what {
        None => status::run(directory, format),
        Some(PricesVerb::Refresh(args)) => refresh::run(directory, args, format),
    }
}
