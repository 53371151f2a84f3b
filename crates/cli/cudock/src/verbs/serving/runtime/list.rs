//! `cudock runtime list`.

use cudock_base::text::format::fixed_bytes;
use cudock_facts::Facts;
use cudock_facts::tables::RuntimeWheel;
use cudock_pypi::runtime::{CudaLibraries, Installer, cuda_libraries, find_all, wheel_for};
use cudock_pypi::{FoundBy, Package, RuntimeLibrary};
use schemars::JsonSchema;
use serde::Serialize;

use super::text::print_cuda;
use crate::failure::{Failure, Outcome};
use crate::output::{self, BOLD, DIM, Format, TableUsed, line, styled};
use crate::steps::runtime;

#[derive(Serialize, JsonSchema)]
pub(crate) struct ListReport<'a> {
    schema: u8,
    /// By precedence.
    found: Vec<RuntimeRow<'a>>,
    installable: Vec<Installable<'a>>,
    tables: &'a [TableUsed],
}

#[derive(Serialize, JsonSchema)]
struct RuntimeRow<'a> {
    #[serde(flatten)]
    found: &'a RuntimeLibrary,
    #[serde(skip_serializing_if = "Option::is_none")]
    cuda: Option<CudaLibraries>,
}

#[derive(Serialize, JsonSchema)]
struct Installable<'a> {
    package: &'a str,
    version: String,
    file: &'a str,
    size: u64,
    sha256: &'a str,
    installed: bool,
}

pub(crate) fn run(facts: &Facts, format: Format) -> Result<Outcome, Failure> {
    let cache = Installer::from_environment(&cudock_base::Environment::of_process())?.directory();
    let machine = runtime::machine(Some(cache));
    let all = find_all(&machine)?;
    let rows = all.iter().map(|found| {
        let for_gpus = found.package == Package::OnnxruntimeGpu;
        RuntimeRow { found, cuda: for_gpus.then(|| cuda_libraries(&machine, found, facts)) }
    });
    let wheels = [Package::Onnxruntime, Package::OnnxruntimeGpu];
    let wheels = wheels.into_iter().filter_map(|package| wheel_for(package, machine.cpu, facts).ok());
    let tables = output::tables_used(facts, &["runtimes", "frameworks"]);
    let report = ListReport {
        schema: 1,
        found: rows.collect(),
        installable: wheels.map(|wheel| installable(wheel, &all)).collect(),
        tables: &tables,
    };
    match format {
        Format::Json => output::json(&report),
        Format::Text => print(&report),
    }
    output::warn_if_stale(&tables);
    Ok(Outcome::Yes)
}

fn installable<'a>(wheel: &'a RuntimeWheel, all: &[RuntimeLibrary]) -> Installable<'a> {
    let version = wheel.version.to_string();
    let is_this = |found: &RuntimeLibrary| {
        found.found_by == FoundBy::Cache
            && found.package.name() == wheel.package
            && found.version.as_ref() == Some(&version)
    };
    Installable {
        package: &wheel.package,
        file: &wheel.file,
        size: wheel.size,
        sha256: &wheel.sha256,
        installed: all.iter().any(is_this),
        version,
    }
}

fn print(report: &ListReport<'_>) {
    for RuntimeRow { found, cuda } in &report.found {
        let version = found.version.as_deref().unwrap_or("(unknown version)");
        let name = styled(BOLD, &format!("{} {version}", found.package));
        let old = if found.usable { "" } else { ", too old: 1.17 or later is required" };
        line(format!("{name}  {}{old}", found.found_by));
        line(format!("  {}", found.library.display()));
        if let Some(cuda) = cuda {
            for directory in &cuda.directories {
                line(styled(DIM, &format!("  CUDA in {}", directory.display())));
            }
            print_cuda(found, cuda);
        }
    }
    if report.found.is_empty() {
        line("no ONNX Runtime found on this machine");
    }
    for wheel in report.installable.iter().filter(|wheel| !wheel.installed) {
        let size = fixed_bytes(wheel.size);
        line(format!(
            "available: {} {} ({size}), run `cudock runtime install {}`",
            wheel.package, wheel.version, wheel.package
        ));
    }
}
