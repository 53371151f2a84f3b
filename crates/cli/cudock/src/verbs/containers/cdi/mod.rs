//! `cudock cdi`: generates and checks CDI specifications.

mod check;
mod generate;
mod hook;

use std::path::Path;

use cudock_cli::{CdiArgs, CdiHookArgs, CdiVerb, FormatArg};
use cudock_host::Root;
use cudock_host::host::NvmlResult;
use cudock_inject::{Driver, DriverRoots};

pub(crate) use self::check::CheckReport;
use crate::failure::{Failure, Outcome, chain};
use crate::formats;
use crate::steps::nvml::ask_nvml;

pub(crate) fn run(args: &CdiArgs, format: FormatArg) -> Result<Outcome, Failure> {
    match &args.what {
        Some(CdiVerb::Check(args)) => check::run(args, formats::plain(format)?),
        None => generate::run(&args.generate, formats::specification(format)?),
    }
}

pub(crate) fn run_hook(args: &CdiHookArgs) -> Result<Outcome, Failure> {
    hook::run(args)
}

fn root(directory: Option<&Path>) -> Result<Root, Failure> {
    match directory {
        None => Ok(Root::live()),
        Some(path) if path == Path::new("/") => Ok(Root::live()),
        Some(directory) => Root::tree(directory).map_err(|error| {
            Failure::input(chain(&error))
                .hint("--root and --dev-root name directories that hold a root file system")
        }),
    }
}

/// The driver, with the numbering of NVML on this machine.
fn driver(roots: &DriverRoots) -> Result<Driver, Failure> {
    let driver = Driver::find(roots)?;
    if !roots.devices.is_live() {
        return Ok(driver);
    }
    Ok(match ask_nvml(None) {
        NvmlResult::Report(report) => driver.numbered_by(&cudock_inject::driver::of_nvml(&report)),
        NvmlResult::NotQueried | NvmlResult::Failed(_) => driver,
    })
}
