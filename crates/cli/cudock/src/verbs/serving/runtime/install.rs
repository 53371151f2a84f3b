//! `cudock runtime install`.

use std::sync::Arc;

use cudock_cli::RuntimeInstallArgs;
use cudock_facts::Facts;
use cudock_pypi::runtime::{CudaLibraries, Installer, cuda_libraries, wheel_for};
use cudock_pypi::{Package, RuntimeLibrary};
use schemars::JsonSchema;
use serde::Serialize;

use super::text::print_cuda;
use crate::failure::{Failure, Outcome};
use crate::output::{self, BOLD, Format, TableUsed, line, styled};
use crate::steps::progress::Lines;
use crate::steps::runtime;

#[derive(Serialize, JsonSchema)]
pub(crate) struct InstallReport<'a> {
    schema: u8,
    runtime: &'a RuntimeLibrary,
    /// Whether it was fetched now.
    fetched: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cuda: Option<&'a CudaLibraries>,
    tables: &'a [TableUsed],
}

pub(crate) fn run(facts: &Facts, args: &RuntimeInstallArgs, format: Format) -> Result<Outcome, Failure> {
    let package = args.package;
    let mut installer = Installer::from_environment(&cudock_base::Environment::of_process())?;
    installer.offline = args.offline;
    installer.progress = Arc::new(Lines::default());
    let machine = runtime::machine(Some(installer.directory()));
    let done = installer.install(wheel_for(package, machine.cpu, facts)?)?;
    let found = &done.found;
    let cuda = (package == Package::OnnxruntimeGpu).then(|| cuda_libraries(&machine, found, facts));
    let tables = output::tables_used(facts, &["runtimes"]);
    match format {
        Format::Json => output::json(&InstallReport {
            schema: 1,
            runtime: found,
            fetched: done.fresh,
            cuda: cuda.as_ref(),
            tables: &tables,
        }),
        Format::Text => {
            let name = format!("{package} {}", found.version.as_deref().unwrap_or_default());
            let state = if done.fresh { "installed" } else { "is already installed" };
            line(format!("{} {state}", styled(BOLD, &name)));
            line(format!("  {}", found.library.display()));
            if let Some(cuda) = &cuda {
                print_cuda(found, cuda);
            }
        }
    }
    output::warn_if_stale(&tables);
    Ok(Outcome::Yes)
}
