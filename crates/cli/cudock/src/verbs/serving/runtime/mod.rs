//! `cudock runtime`: finds or installs the inference library.

mod install;
mod list;

use std::path::PathBuf;

use cudock_cli::{RuntimeArgs, RuntimeVerb};
use cudock_facts::Facts;
use cudock_pypi::RuntimeLibrary;
use cudock_pypi::runtime::{CudaLibraries, SearchContext};

pub(crate) use self::install::InstallReport;
pub(crate) use self::list::ListReport;
use crate::failure::{Failure, Outcome};
use crate::output::{BLUE, Format, YELLOW, line, styled, wrapped};

pub(crate) fn run(facts: &Facts, args: &RuntimeArgs, format: Format) -> Result<Outcome, Failure> {
    match &args.verb {
        RuntimeVerb::Install(args) => install::run(facts, args, format),
        RuntimeVerb::List => list::run(facts, format),
    }
}

/// This machine, with the project in the working directory.
fn machine(cache: Option<PathBuf>) -> SearchContext {
    SearchContext::of_process(cudock_base::Environment::of_process(), std::env::current_dir().ok(), cache)
}

/// Prints which libraries a GPU build lacks.
fn print_cuda(found: &RuntimeLibrary, cuda: &CudaLibraries) {
    let missing: Vec<&str> = cuda.missing.iter().map(|library| library.soname.as_str()).collect();
    if !missing.is_empty() {
        let first = format!("{}: ", styled(YELLOW, "warning"));
        let text = format!("{first}not found: {}; sessions will run on the CPU", missing.join(", "));
        line(wrapped("", &text));
    }
    if !cuda.driver {
        line(format!("{}: not found: libcuda.so.1, which comes with the driver", styled(YELLOW, "warning")));
    }
    if let Some(hint) = cuda.hint(found) {
        line(format!("{}: {hint}", styled(BLUE, "hint")));
    }
}
