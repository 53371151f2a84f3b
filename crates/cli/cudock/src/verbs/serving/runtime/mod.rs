//! `cudock runtime`: finds or installs the inference library.

mod install;
mod list;
mod text;

use cudock_cli::{RuntimeArgs, RuntimeVerb};
use cudock_facts::Facts;

pub(crate) use self::install::InstallReport;
pub(crate) use self::list::ListReport;
use crate::failure::{Failure, Outcome};
use crate::output::Format;

pub(crate) fn run(facts: &Facts, args: &RuntimeArgs, format: Format) -> Result<Outcome, Failure> {
    match &args.verb {
        RuntimeVerb::Install(args) => install::run(facts, args, format),
        RuntimeVerb::List => list::run(facts, format),
    }
}
