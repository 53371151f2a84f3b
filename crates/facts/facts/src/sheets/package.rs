//! Looks up packages: whether and how they use a GPU.

use cudock_base::UsageError;
use cudock_base::text::suggest;

use crate::Facts;
use crate::lookup::{NamedCuda, PackageUse};
use crate::sheets::result::{LookupResult, Sheet};
use crate::sheets::rows::{CpuPackageRow, PackageRow};
use crate::tables::{GpuPackage, GpuUse};

const TABLES: [&str; 1] = ["packages"];

/// Packages that use a GPU, or how one does.
pub fn package(facts: &Facts, name: Option<&str>) -> Result<LookupResult, UsageError> {
    let packages = facts.packages();
    let Some(name) = name else {
        let columns = ["package", "GPU use", "runs on", "similar"];
        return Ok(LookupResult::list(&TABLES, &packages.gpu, &columns, |row| {
            let also = row.also.len().to_string();
            vec![row.name.clone(), describe(row.uses).to_owned(), row.on.join(", "), also]
        }));
    };
    let normalized = name.trim().to_ascii_lowercase().replace(['_', '.'], "-");
    match packages.find(&normalized) {
        PackageUse::Gpu(row, cuda) => {
            let sheet = gpu(facts, &normalized, row, cuda);
            let cuda_major = cuda.map(|cuda| cuda.major);
            Ok(LookupResult::sheet(&TABLES, &PackageRow { name: &normalized, gpu: row, cuda_major }, sheet))
        }
        PackageUse::NoGpu => {
            let sheet = Sheet::new(normalized.clone()).field("GPU", "does not use one".to_owned());
            Ok(LookupResult::sheet(&TABLES, &CpuPackageRow { name: &normalized, gpu: () }, sheet))
        }
        PackageUse::Unknown => {
            let names = packages.gpu.iter().flat_map(|row| std::iter::once(&row.name).chain(&row.also));
            let near = suggest::nearest(&normalized, names.map(String::as_str));
            Err(UsageError::new(format!("package `{name}` is not in the tables"))
                .near(&near)
                .hint("check its wheel: `pip download --no-deps NAME`, then `cudock check FILE.whl`"))
        }
    }
}

fn gpu(facts: &Facts, name: &str, row: &GpuPackage, cuda: Option<NamedCuda>) -> Sheet {
    let by_release: Vec<String> =
        row.cuda.iter().map(|from| format!("{} from {} on", from.major, from.from)).collect();
    let cuda =
        cuda.map(|cuda| cuda.version.map_or_else(|| cuda.major.to_string(), |version| version.to_string()));
    Sheet::new(name.to_owned())
        .field("GPU", describe(row.uses).to_owned())
        .maybe("runs on", (!row.on.is_empty()).then(|| row.on.join(", ")))
        .maybe("CUDA", cuda.or_else(|| (!by_release.is_empty()).then(|| by_release.join("\n"))))
        .maybe("capability", row.min_capability.map(|lowest| format!("{lowest} or newer")))
        .maybe("note", row.note.as_ref())
        .sources(facts.packages().table.resolve(&row.source))
}

fn describe(uses: GpuUse) -> &'static str {
    match uses {
        GpuUse::Framework => "framework, see its own builds",
        GpuUse::Code => "has GPU code",
        GpuUse::Compiler => "compiles GPU code at run time",
        GpuUse::Wraps => "through another package",
        GpuUse::Library => "library for other packages",
        GpuUse::Driver => "queries the driver",
        GpuUse::OtherApi => "OpenCL or Vulkan",
    }
}
