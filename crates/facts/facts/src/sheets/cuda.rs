//! Looks up GPUs, drivers, toolkits and code targets.

use cudock_base::UsageError;
use cudock_base::text::suggest;

use crate::Facts;
use crate::lookup::{NameMatch, Runs};
use crate::sheets::result::{LookupResult, Sheet, cells, enum_name, joined, lines, or_dash};
use crate::sheets::rows::{ArchRow, DriverRow, ToolkitRow};
use crate::tables::{Branch, ForwardCompatClass, Gpu, KernelModule, Toolkit, Vendor};
use crate::version::{Capability, CudaRelease, CudaVersion, Date, DriverVersion, PtxArch, SmArch};

/// All GPUs, or those with a name.
pub fn gpu(facts: &Facts, name: Option<&str>, today: Date) -> Result<LookupResult, UsageError> {
    let gpus = facts.gpus();
    let Some(name) = name else {
        let columns = ["gpu", "capability", "architecture", "memory", "class"];
        return Ok(LookupResult::list(&["gpus"], &gpus.gpu, &columns, |gpu| {
            let (capability, architecture) = (or_dash(gpu.capability), or_dash(gpu.architecture.as_ref()));
            cells(&[&gpu.id, &capability, &architecture, &memory(gpu), &enum_name(&gpu.class)])
        }));
    };
    let found = match gpus.find(name) {
        NameMatch::NotFound(near) => {
            return Err(UsageError::new(format!("unknown GPU `{name}`"))
                .near(&near)
                .hint("`cudock facts gpu` lists all"));
        }
        found => found.rows(),
    };
    let tables = ["gpus", "drivers", "azure_sizes"];
    Ok(LookupResult::sheets(&tables, &found, |gpu| gpu_sheet(facts, gpu, today)))
}

fn memory(gpu: &Gpu) -> String {
    match gpu.memory_gb.as_slice() {
        [] => "-".to_owned(),
        sizes => format!("{} GB", sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ")),
    }
}

fn gpu_sheet(facts: &Facts, gpu: &Gpu, today: Date) -> Sheet {
    let architecture = gpu.capability.and_then(|capability| facts.drivers().architecture_of(capability));
    let toolkits = architecture.map(|row| {
        let own = gpu.capability.and_then(|capability| row.first_toolkit_of.get(&capability).copied());
        let last = gpu.capability.and_then(|capability| row.last_toolkit_of.get(&capability).copied());
        match (own.or(row.first_toolkit), last.or(row.last_toolkit)) {
            (Some(first), Some(last)) => format!("CUDA {first} to {last}"),
            (Some(first), None) => format!("CUDA {first} and newer"),
            (None, Some(last)) => format!("up to CUDA {last}"),
            (None, None) => String::new(),
        }
    });
    let drivers = architecture.and_then(|row| row.last_driver_branch).map(|last| format!("up to R{last}"));
    let ids = [gpu.id.as_str()];
    let sizes =
        facts.sizes().with_gpu(&ids).filter(|size| size.is_on_sale(today)).map(|size| size.name.clone());
    let title =
        if gpu.names.is_empty() { gpu.id.clone() } else { format!("{} ({})", gpu.id, joined(&gpu.names)) };
    let capability = gpu.capability.map(|capability| format!("{capability} (sm_{})", capability.number()));
    let kernel_module = gpu.kernel_module.map(|module| match module {
        KernelModule::ProprietaryOnly => "the proprietary one only",
        KernelModule::OpenOnly => "the open one only",
        KernelModule::Either => "open or proprietary",
    });
    let compat = match (gpu.vendor, gpu.forward_compat) {
        (Vendor::Amd, _) => "",
        (Vendor::Nvidia, ForwardCompatClass::Yes) => "allowed",
        (Vendor::Nvidia, ForwardCompatClass::No) => "not allowed (error 804)",
        (Vendor::Nvidia, ForwardCompatClass::BrandDependent) => "depends on the brand the board reports",
    };
    Sheet::new(title)
        .maybe("capability", capability)
        .maybe("architecture", gpu.architecture.as_ref())
        .field("class", enum_name(&gpu.class))
        .field("memory", if gpu.memory_gb.is_empty() { String::new() } else { memory(gpu) })
        .maybe("MIG", gpu.mig_instances.map(|count| format!("up to {count} instances")))
        .maybe("supported by", toolkits)
        .maybe("driven by", drivers)
        .maybe("kernel module", kernel_module)
        .field("cuda-compat", compat)
        .field("PCI ids", joined(&gpu.pci_ids))
        .field("on Azure", joined(sizes))
        .maybe("note", gpu.note.as_ref())
        .sources(facts.gpus().table.resolve(&gpu.source))
}

/// All driver branches, or what one driver runs.
pub fn driver(facts: &Facts, name: Option<&str>, today: Date) -> Result<LookupResult, UsageError> {
    let drivers = facts.drivers();
    let tables = ["drivers", "forward_compat"];
    let Some(name) = name else {
        let columns = ["branch", "CUDA", "PTX", "kind", "latest", "ends", "oldest GPU"];
        return Ok(LookupResult::list(&tables, &drivers.branch, &columns, |branch| {
            vec![
                format!("R{}", branch.branch),
                branch.cuda.to_string(),
                branch.ptx_isa.to_string(),
                or_dash(branch.kind.map(|kind| enum_name(&kind))),
                or_dash(branch.latest_linux),
                or_dash(branch.end_of_life),
                branch.oldest_architecture.clone(),
            ]
        }));
    };
    let named: DriverVersion = name.parse().map_err(|error| {
        UsageError::new(format!("{error}")).hint("`cudock facts driver` lists the branches")
    })?;
    let version = drivers.last_release(named);
    let branch = drivers.branch_of(version).ok_or_else(|| {
        let branch = |row: Option<&Branch>| row.map_or(0, |row| row.branch);
        let (oldest, newest) = (branch(drivers.branch.first()), branch(drivers.newest()));
        UsageError::new(format!("driver {version} is outside the table, which has R{oldest} to R{newest}"))
            .hint("add newer tables with --facts DIR")
    })?;
    let compat: Vec<CudaVersion> =
        facts.forward_compat().packages_for(branch.branch).map(|package| package.cuda).collect();
    let first = runs(facts, named);
    let runs = runs(facts, version);
    let first: Vec<String> = first.into_iter().filter(|statement| !runs.contains(statement)).collect();
    let title = if named.is_exact() {
        format!("driver {version}, branch R{}", branch.branch)
    } else {
        format!("driver branch R{}, last release {version}", named.branch())
    };
    let sheet = Sheet::new(title)
        .field("CUDA", branch.cuda.to_string())
        .field("PTX", format!("up to ISA {}", branch.ptx_isa))
        .field("runs", runs.join("\n"))
        .field("first releases", first.join("\n"))
        .field("cuda-compat", joined(&compat))
        .maybe("kind", branch.kind.map(|kind| enum_name(&kind)))
        .maybe("first release", branch.first_release)
        .maybe("latest", branch.latest_linux)
        .maybe("ends", ends(branch, today))
        .field("oldest GPU", branch.oldest_architecture.clone())
        .maybe("note", branch.note.as_ref())
        .sources(drivers.table.resolve(&branch.source));
    let row =
        DriverRow { driver: version, branch, runs: &runs, first_releases_run: &first, cuda_compat: compat };
    Ok(LookupResult::sheet(&tables, &row, sheet))
}

fn ends(branch: &Branch, today: Date) -> Option<String> {
    let end = branch.end_of_life?;
    let vendor = branch.end_of_life_vendor.as_ref();
    let vendor = vendor.map_or_else(String::new, |month| format!(" (NVIDIA's page: {month})"));
    let past = if end < today { ", past" } else { "" };
    Some(format!("{end}{past}{vendor}"))
}

/// Which programs run, one statement for each CUDA major.
fn runs(facts: &Facts, driver: DriverVersion) -> Vec<String> {
    let statement = |(major, runs): (u8, Runs)| match runs {
        Runs::All => format!("CUDA {major}: all"),
        Runs::AllButPtxAfter(own) => {
            format!("CUDA {major}: all; PTX from toolkits after {own} is not supported (error 222)")
        }
        Runs::UpTo(own, floor) => format!("CUDA {major}: up to {own}; later ones need {floor} (error 35)"),
        Runs::None(floor) => format!("CUDA {major}: none, it needs {floor} (error 35)"),
    };
    facts.drivers().runs(driver).into_iter().map(statement).collect()
}

/// All CUDA toolkits, or one of them or of their releases.
pub fn toolkit(facts: &Facts, name: Option<&str>) -> Result<LookupResult, UsageError> {
    let toolkits = facts.toolkits();
    let Some(name) = name else {
        let columns = ["CUDA", "PTX", "driver", "gcc", "targets"];
        return Ok(LookupResult::list(&["toolkits"], &toolkits.toolkit, &columns, |toolkit| {
            let driver = or_dash(toolkit.driver_branch.map(|branch| format!("R{branch}")));
            cells(&[&toolkit.cuda, &toolkit.ptx_isa, &driver, &or_dash(toolkit.gcc_max), &range(toolkit)])
        }));
    };
    let release = name.parse::<CudaRelease>().ok();
    let version = release.map(CudaRelease::version).map_or_else(|| name.parse::<CudaVersion>(), Ok);
    let version = version.map_err(|error| {
        UsageError::new(format!("{error}")).hint("`cudock facts cuda` lists the toolkits")
    })?;
    let unknown = || {
        let near: Vec<String> = match release {
            Some(release) => suggest::adjacent(&release, toolkits.release.iter().map(|row| row.cuda)),
            None => suggest::adjacent(&version, toolkits.toolkit.iter().map(|row| row.cuda)),
        };
        let error = UsageError::new(format!("CUDA {name} is not in the tables")).near(&near);
        match facts.drivers().branch_with(version) {
            Some(branch) if release.is_none() => error.hint(format!(
                "drivers of branch R{} report it, but no such toolkit was released",
                branch.branch
            )),
            _ => error.hint("`cudock facts cuda` lists the toolkits"),
        }
    };
    let toolkit = toolkits.toolkit(version).ok_or_else(unknown)?;
    let releases: Vec<_> = toolkits
        .releases_of(version)
        .filter(|row| release.is_none_or(|release| row.cuda == release))
        .collect();
    if release.is_some() && releases.is_empty() {
        return Err(unknown());
    }
    let components = facts.components().components.iter().find(|row| Some(row.cuda) == release);
    let release_lines = releases.iter().map(|row| {
        let driver = row.min_linux.or(row.runfile_driver);
        let driver =
            driver.map_or_else(|| "driver not stated".to_owned(), |driver| format!("driver {driver}"));
        format!("{} ({}): {driver}", row.cuda, row.label)
    });
    let minor = facts.drivers().minor_compat(version.major());
    let runs_from = minor
        .map(|row| format!("driver {} on, by minor-version compatibility (no newer PTX)", row.min_linux));
    let clang = toolkit.clang_max.map_or_else(String::new, |clang| format!(", clang up to {clang}"));
    let compilers = toolkit.gcc_max.map(|gcc| format!("gcc up to {gcc}{clang}"));
    let cudnn = toolkit.cudnn_in_image.as_ref().map(|version| format!("{version} in NVIDIA's cudnn image"));
    let parts = components.into_iter().flat_map(|row| row.all());
    let parts = parts.filter_map(|(name, version)| Some(format!("{name} {}", version?)));
    let sheet = Sheet::new(format!("CUDA {name}"))
        .field("PTX", format!("ISA {}", toolkit.ptx_isa))
        .field("targets", joined(&toolkit.sass))
        .maybe("change", toolkit.change.as_ref())
        .maybe("runs from", runs_from)
        .maybe("full from", toolkit.driver_branch.map(|branch| format!("driver branch R{branch} on")))
        .field("releases", lines(release_lines))
        .maybe("compilers", compilers)
        .maybe("cuDNN", cudnn)
        .field("components", joined(parts))
        .field("note", if toolkit.partial { "only some of its parts have been seen" } else { "" })
        .maybe("note", toolkit.note.as_ref())
        .sources(toolkits.table.resolve(&toolkit.source));
    let row = ToolkitRow { toolkit, releases, minor_compat: minor, components };
    Ok(LookupResult::sheet(&["toolkits", "drivers", "components"], &row, sheet))
}

fn range(toolkit: &Toolkit) -> String {
    match (toolkit.sass.iter().min(), toolkit.sass.iter().max()) {
        (Some(first), Some(last)) => format!("{first} to {last}"),
        _ => String::new(),
    }
}

/// The GPUs that code for a target runs on.
pub fn arch(facts: &Facts, name: Option<&str>) -> Result<LookupResult, UsageError> {
    let name = name.ok_or_else(|| {
        UsageError::new("no target given").hint("cudock facts arch sm_90a, cudock facts arch compute_80")
    })?;
    let cards = &facts.gpus().gpu;
    let on = |runs: &dyn Fn(Capability) -> bool| -> Vec<&str> {
        cards.iter().filter(|gpu| gpu.capability.is_some_and(runs)).map(|gpu| gpu.id.as_str()).collect()
    };
    let (kind, ids) = if let Ok(arch) = name.parse::<SmArch>() {
        ("machine code", on(&|card| arch.runs_on(card)))
    } else if let Ok(arch) = name.parse::<PtxArch>() {
        ("PTX", on(&|card| arch.compiles_for(card)))
    } else {
        let message = format!("`{name}` is not a target such as sm_90, sm_90a, sm_103f or compute_80");
        return Err(UsageError::new(message));
    };
    let native = name.replace("compute_", "sm_").parse::<SmArch>().ok();
    let toolkits = facts.toolkits().toolkit.iter();
    let compiled = toolkits.filter(|row| native.is_some_and(|arch| row.sass.contains(&arch)));
    let compiled: Vec<CudaVersion> = compiled.map(|row| row.cuda).collect();
    let toolkits = match (compiled.first(), compiled.last()) {
        (Some(first), Some(last)) => format!("CUDA {first} to {last}, as far as the table goes"),
        _ => "no toolkit in the table".to_owned(),
    };
    let sheet = Sheet::new(format!("{name}, {kind}"))
        .field("runs on", if ids.is_empty() { "no GPU in the table".to_owned() } else { joined(&ids) })
        .field("supported by", toolkits);
    let row = ArchRow { target: name, kind, runs_on: ids, compiled_by: compiled };
    Ok(LookupResult::sheet(&["gpus", "toolkits"], &row, sheet))
}
