use cudock_facts::tables::ForwardCompatClass;

use super::{Area, Check, CheckContext, codes};
use crate::host::{DriverLibrary, FoundBy, LibraryKind};

pub(super) fn check(context: &CheckContext<'_>, checks: &mut Vec<Check>) {
    let before = checks.len();
    libcuda(context, checks);
    nvml(context, checks);
    empty_copies(context, checks);
    ptx_compiler(context, checks);
    cache(context, checks);
    if checks.len() == before
        && let Some(library) = copies(context, "libcuda.so.1").next()
    {
        let message = format!("libcuda and libnvidia-ml found in {}", directory(&library.path));
        checks.push(Check::ok(Area::Libraries, message));
    }
    toolkits(context, checks);
}

fn copies<'a>(context: &'a CheckContext<'_>, name: &'a str) -> impl Iterator<Item = &'a DriverLibrary> {
    context.host.libraries.iter().filter(move |library| library.name == name)
}

fn directory(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(directory, _)| directory)
}

/// Checks the first libcuda that the loader finds.
fn libcuda(context: &CheckContext<'_>, checks: &mut Vec<Check>) {
    let Some(first) = copies(context, "libcuda.so.1").next() else {
        if context.is_gpu_withheld() {
            return;
        }
        let message = "libcuda.so.1 not found: CUDA programs fail with error 35, \"found no NVIDIA driver\"";
        let fix = if context.is_in_container() {
            "start the container with --gpus all and NVIDIA_DRIVER_CAPABILITIES=compute,utility"
        } else {
            "install the driver's user-space package (libnvidia-compute-NNN, or the .run installer)"
        };
        checks.push(Check::error(Area::Libraries, codes::LIBCUDA_MISSING, message, fix));
        return;
    };
    let driver = copies(context, "libcuda.so.1").find(|library| library.kind == LibraryKind::Driver);
    match first.kind {
        _ if first.found_by == FoundBy::NotSearched => {
            let message =
                format!("libcuda.so.1 is in {}, which the loader does not search", directory(&first.path));
            let fix = format!("echo {} > /etc/ld.so.conf.d/nvidia.conf && ldconfig", directory(&first.path));
            checks.push(
                Check::error(Area::Libraries, codes::LIBCUDA_MISSING, message, fix)
                    .with_evidence(&first.path, "outside ld.so.conf and LD_LIBRARY_PATH"),
            );
        }
        LibraryKind::Stub => {
            let message = format!("a stub comes before the driver's libcuda: {} (error 34)", first.path);
            let fix = format!(
                "remove {} from LD_LIBRARY_PATH and ld.so.conf: stubs are only for linking",
                directory(&first.path)
            );
            let check = Check::error(Area::Libraries, codes::STUB_FIRST, message, fix);
            checks.push(with_shadowed(check.with_evidence(&first.path, "stub"), driver));
        }
        LibraryKind::Empty | LibraryKind::Dangling => {
            let what = if first.kind == LibraryKind::Empty { "is empty" } else { "is a dangling link" };
            let message = format!("{} {what} and comes first: libcuda cannot be loaded", first.path);
            let fix = format!("rm {}; never commit a GPU container to an image", first.path);
            let check = Check::error(Area::Libraries, codes::LIBRARY_EMPTY, message, fix);
            checks.push(with_shadowed(
                check.with_evidence(&first.path, format!("{} bytes", first.size)),
                driver,
            ));
        }
        LibraryKind::Compat => compat(context, first, checks),
        LibraryKind::Driver => {}
    }
}

fn with_shadowed(check: Check, driver: Option<&DriverLibrary>) -> Check {
    match driver {
        Some(library) => check.with_evidence(&library.path, "the driver's own, shadowed"),
        None => check,
    }
}

/// A libcuda newer than the driver is supported for some versions and GPUs; an older one is not.
fn compat(context: &CheckContext<'_>, library: &DriverLibrary, checks: &mut Vec<Check>) {
    let (Some(driver), Some(version)) = (context.driver, library.version) else { return };
    let remove = format!("remove {} from LD_LIBRARY_PATH and ld.so.conf", directory(&library.path));
    let remove_or_update = format!("{remove}, or update the driver");
    let facts = context.facts;
    let cuda = facts.drivers().branch_of(version).map(|branch| branch.cuda);
    let package =
        cuda.and_then(|cuda| facts.forward_compat().package.iter().find(|package| package.cuda == cuda));
    let base = context.branch().map_or(driver.branch(), |branch| branch.branch);
    let not_allowed = context
        .gpus
        .iter()
        .find(|gpu| gpu.row.is_some_and(|row| row.forward_compat == ForwardCompatClass::No));
    let check = if version <= driver {
        let message = format!(
            "libcuda {version} of cuda-compat comes first and is not newer than driver {driver}: error 803"
        );
        Check::error(Area::Libraries, codes::COMPAT_DOES_NOT_FIT, message, remove)
    } else if let Some(gpu) = not_allowed {
        let message = format!(
            "libcuda {version} of cuda-compat comes first and is not supported on {}: error 804",
            gpu.name
        );
        Check::error(Area::Libraries, codes::COMPAT_NOT_ALLOWED, message, remove_or_update)
    } else if package.is_some_and(|package| !package.supported.contains(&base)) {
        let message =
            format!("libcuda {version} of cuda-compat does not run on drivers of branch {base}: error 803");
        Check::error(Area::Libraries, codes::COMPAT_DOES_NOT_FIT, message, remove_or_update)
    } else {
        Check::ok(Area::Libraries, format!("libcuda {version} of cuda-compat is used over driver {driver}"))
    };
    checks.push(check.with_evidence(&library.path, format!("version {version}")));
}

fn nvml(context: &CheckContext<'_>, checks: &mut Vec<Check>) {
    let mut all = copies(context, "libnvidia-ml.so.1");
    if all.next().is_none() && copies(context, "libcuda.so.1").next().is_some() {
        let message = "libnvidia-ml.so.1 is missing: nvidia-smi and monitoring do not work";
        let fix = if context.is_in_container() {
            "start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility"
        } else {
            "install the driver's user-space package (libnvidia-compute-NNN)"
        };
        checks.push(Check::warning(Area::Libraries, codes::NVML_MISSING, message, fix));
    }
}

/// Reports toolkits. The cuda-compat in one matters only if it is on the loader's path.
fn toolkits(context: &CheckContext<'_>, checks: &mut Vec<Check>) {
    for toolkit in &context.host.toolkits {
        let version = toolkit.version.map_or_else(String::new, |version| format!(" {version}"));
        let nvcc = if toolkit.nvcc { ", with nvcc" } else { "" };
        let compat = toolkit
            .compat
            .map_or_else(String::new, |version| format!(", cuda-compat {version} present but not in use"));
        let used =
            copies(context, "libcuda.so.1").next().is_some_and(|first| first.kind == LibraryKind::Compat);
        let compat = if used { String::new() } else { compat };
        let message = format!("CUDA toolkit{version} in {}{nvcc}{compat}", toolkit.path);
        checks.push(Check::ok(Area::Libraries, message));
    }
}

/// Empty copies after a valid one are harmless now, but not in the next container.
fn empty_copies(context: &CheckContext<'_>, checks: &mut Vec<Check>) {
    for name in ["libcuda.so.1", "libnvidia-ml.so.1"] {
        let skip = usize::from(name == "libcuda.so.1");
        let bad =
            |library: &&DriverLibrary| matches!(library.kind, LibraryKind::Empty | LibraryKind::Dangling);
        for library in copies(context, name).skip(skip).filter(bad) {
            let what = if library.kind == LibraryKind::Empty { "empty" } else { "a dangling link" };
            let message = format!("{} is {what}", library.path);
            let fix = format!("rm {}; driver libraries come from the host", library.path);
            checks.push(Check::warning(Area::Libraries, codes::LIBRARY_EMPTY, message, fix));
        }
    }
}

fn ptx_compiler(context: &CheckContext<'_>, checks: &mut Vec<Check>) {
    let has_driver = copies(context, "libcuda.so.1").any(|library| library.kind == LibraryKind::Driver);
    let has_compiler = copies(context, "libnvidia-ptxjitcompiler.so.1").next().is_some();
    if has_driver && !has_compiler && !context.is_wsl() {
        let message = "libnvidia-ptxjitcompiler.so.1 is missing: programs with PTX fail with error 221";
        let fix = "mount the driver's libraries together, not libcuda alone; on a host reinstall the driver";
        checks.push(Check::warning(Area::Libraries, codes::NO_PTX_COMPILER, message, fix));
    }
}

/// Directories in `ld.so.conf` are only found through the cache.
fn cache(context: &CheckContext<'_>, checks: &mut Vec<Check>) {
    let Some(cache) = context.host.loader_cache else { return };
    let Some(first) = copies(context, "libcuda.so.1").next() else { return };
    let only_by_cache = first.found_by == FoundBy::Configuration && !is_always_searched(&first.path);
    if only_by_cache && !cache.libcuda {
        let message = format!(
            "the loader's cache does not list libcuda.so.1, though {} is configured",
            directory(&first.path)
        );
        checks.push(Check::error(Area::Libraries, codes::NOT_IN_LOADER_CACHE, message, "ldconfig"));
    }
}

fn is_always_searched(path: &str) -> bool {
    let directory = directory(path);
    let directory = directory.strip_prefix("/usr").unwrap_or(directory);
    matches!(directory, "/lib" | "/lib64" | "/lib/x86_64-linux-gnu" | "/lib/aarch64-linux-gnu")
}
