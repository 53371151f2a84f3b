use cudock_facts::tables::ForwardCompatClass;

use super::{Area, Check, Situation, Status, codes};
use crate::host::{DriverLibrary, FoundBy, LibraryKind};

pub(super) fn check(situation: &Situation<'_>, checks: &mut Vec<Check>) {
    let before = checks.iter().filter(|check| check.area == Area::Libraries).count();
    libcuda(situation, checks);
    nvml(situation, checks);
    empty_copies(situation, checks);
    ptx_compiler(situation, checks);
    cache(situation, checks);
    let after = checks.iter().filter(|check| check.area == Area::Libraries).count();
    if before == after
        && let Some(library) = copies(situation, "libcuda.so.1").next()
    {
        checks.push(Check::ok(
            Area::Libraries,
            format!("libcuda and libnvidia-ml found in {}", folder(&library.path)),
        ));
    }
    toolkits(situation, checks);
}

fn copies<'a>(situation: &'a Situation<'_>, name: &'a str) -> impl Iterator<Item = &'a DriverLibrary> {
    situation.host.libraries.iter().filter(move |library| library.name == name)
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(folder, _)| folder)
}

/// The first libcuda the loader comes to decides.
fn libcuda(situation: &Situation<'_>, checks: &mut Vec<Check>) {
    let Some(first) = copies(situation, "libcuda.so.1").next() else {
        if situation.gpu_withheld() {
            return;
        }
        let message = "libcuda.so.1 is nowhere: CUDA programs stop with error 35, \"found no NVIDIA driver\"";
        let fix = if situation.in_container() {
            "start the container with --gpus all and NVIDIA_DRIVER_CAPABILITIES=compute,utility"
        } else {
            "install the driver's user-space package (libnvidia-compute-NNN, or the .run installer)"
        };
        checks.push(Check::bad(Area::Libraries, Status::Problem, codes::LIBCUDA_MISSING, message, fix));
        return;
    };
    let driver = copies(situation, "libcuda.so.1").find(|library| library.kind == LibraryKind::Driver);
    match first.kind {
        _ if first.found_by == FoundBy::NotSearched => {
            let message =
                format!("libcuda.so.1 is in {}, where the loader does not look", folder(&first.path));
            let fix = format!("echo {} > /etc/ld.so.conf.d/nvidia.conf && ldconfig", folder(&first.path));
            checks.push(
                Check::bad(Area::Libraries, Status::Problem, codes::LIBCUDA_MISSING, message, fix)
                    .seen(&first.path, "outside ld.so.conf and LD_LIBRARY_PATH"),
            );
        }
        LibraryKind::Stub => {
            let message = format!("a stub comes before the driver's libcuda: {} (error 34)", first.path);
            let fix = format!(
                "take {} out of LD_LIBRARY_PATH and ld.so.conf: stubs are for linking",
                folder(&first.path)
            );
            let check = Check::bad(Area::Libraries, Status::Problem, codes::STUB_FIRST, message, fix);
            checks.push(with_shadowed(check.seen(&first.path, "stub"), driver));
        }
        LibraryKind::Empty | LibraryKind::Dangling => {
            let what = if first.kind == LibraryKind::Empty { "is empty" } else { "leads nowhere" };
            let message = format!("{} {what}, and comes first: libcuda cannot be loaded", first.path);
            let fix = format!("rm {}; never commit a GPU container to an image", first.path);
            let check = Check::bad(Area::Libraries, Status::Problem, codes::LIBRARY_EMPTY, message, fix);
            checks.push(with_shadowed(check.seen(&first.path, format!("{} bytes", first.size)), driver));
        }
        LibraryKind::Compat => compat(situation, first, checks),
        LibraryKind::Driver => {}
    }
}

fn with_shadowed(check: Check, driver: Option<&DriverLibrary>) -> Check {
    match driver {
        Some(library) => check.seen(&library.path, "the driver's own, shadowed"),
        None => check,
    }
}

/// A libcuda newer than the driver is allowed for some pairs and some cards; an older one for none.
fn compat(situation: &Situation<'_>, library: &DriverLibrary, checks: &mut Vec<Check>) {
    let (Some(driver), Some(version)) = (situation.driver, library.version) else { return };
    let remove = format!("take {} out of LD_LIBRARY_PATH and ld.so.conf", folder(&library.path));
    let facts = situation.facts;
    let cuda = facts.drivers().branch_of(version).map(|branch| branch.cuda);
    let package =
        cuda.and_then(|cuda| facts.forward_compat().package.iter().find(|package| package.cuda == cuda));
    let base = situation.branch().map_or(driver.branch(), |branch| branch.branch);
    let not_allowed = situation
        .gpus
        .iter()
        .find(|gpu| gpu.row.is_some_and(|row| row.forward_compat == ForwardCompatClass::No));
    let check = if version <= driver {
        let message = format!(
            "libcuda {version} of cuda-compat comes first and is not newer than driver {driver}: error 803"
        );
        Check::bad(Area::Libraries, Status::Problem, codes::COMPAT_DOES_NOT_FIT, message, remove)
    } else if let Some(gpu) = not_allowed {
        let message = format!(
            "libcuda {version} of cuda-compat comes first and may not run on {}: error 804",
            gpu.name
        );
        Check::bad(
            Area::Libraries,
            Status::Problem,
            codes::COMPAT_NOT_ALLOWED,
            message,
            format!("{remove}, or update the driver"),
        )
    } else if package.is_some_and(|package| !package.supported.contains(&base)) {
        let message =
            format!("libcuda {version} of cuda-compat does not run on drivers of branch {base}: error 803");
        Check::bad(
            Area::Libraries,
            Status::Problem,
            codes::COMPAT_DOES_NOT_FIT,
            message,
            format!("{remove}, or update the driver"),
        )
    } else {
        Check::ok(Area::Libraries, format!("libcuda {version} of cuda-compat is used over driver {driver}"))
    };
    checks.push(check.seen(&library.path, format!("version {version}")));
}

fn nvml(situation: &Situation<'_>, checks: &mut Vec<Check>) {
    let mut all = copies(situation, "libnvidia-ml.so.1");
    if all.next().is_none() && copies(situation, "libcuda.so.1").next().is_some() {
        let message = "libnvidia-ml.so.1 is missing: nvidia-smi and monitoring do not work";
        let fix = if situation.in_container() {
            "start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility"
        } else {
            "install the driver's user-space package (libnvidia-compute-NNN)"
        };
        checks.push(Check::bad(Area::Libraries, Status::Warning, codes::NVML_MISSING, message, fix));
    }
}

/// Toolkits are told for their versions; a cuda-compat beside one matters only once it is on the loader's path.
fn toolkits(situation: &Situation<'_>, checks: &mut Vec<Check>) {
    for toolkit in &situation.host.toolkits {
        let version = toolkit.version.map_or_else(String::new, |version| format!(" {version}"));
        let nvcc = if toolkit.nvcc { ", with nvcc" } else { "" };
        let compat = toolkit
            .compat
            .map_or_else(String::new, |version| format!(", cuda-compat {version} beside it and not in use"));
        let used =
            copies(situation, "libcuda.so.1").next().is_some_and(|first| first.kind == LibraryKind::Compat);
        let compat = if used { String::new() } else { compat };
        checks.push(Check::ok(
            Area::Libraries,
            format!("CUDA toolkit{version} in {}{nvcc}{compat}", toolkit.path),
        ));
    }
}

/// Empty copies behind a good one do no harm today, and will in the next container.
fn empty_copies(situation: &Situation<'_>, checks: &mut Vec<Check>) {
    for name in ["libcuda.so.1", "libnvidia-ml.so.1"] {
        let skip = usize::from(name == "libcuda.so.1");
        let bad =
            |library: &&DriverLibrary| matches!(library.kind, LibraryKind::Empty | LibraryKind::Dangling);
        for library in copies(situation, name).skip(skip).filter(bad) {
            let message = format!(
                "{} is {}",
                library.path,
                if library.size == 0 && library.real_path.is_some() {
                    "empty"
                } else {
                    "a link that leads nowhere"
                }
            );
            let fix = format!("rm {}; driver libraries come from the host", library.path);
            checks.push(Check::bad(Area::Libraries, Status::Warning, codes::LIBRARY_EMPTY, message, fix));
        }
    }
}

fn ptx_compiler(situation: &Situation<'_>, checks: &mut Vec<Check>) {
    let has_driver = copies(situation, "libcuda.so.1").any(|library| library.kind == LibraryKind::Driver);
    let has_compiler = copies(situation, "libnvidia-ptxjitcompiler.so.1").next().is_some();
    if has_driver && !has_compiler && !situation.wsl() {
        let message = "libnvidia-ptxjitcompiler.so.1 is missing: programs that bring PTX fail with error 221";
        let fix = "mount the driver's libraries together, not libcuda alone; on a host reinstall the driver";
        checks.push(Check::bad(Area::Libraries, Status::Warning, codes::NO_PTX_COMPILER, message, fix));
    }
}

/// Directories of `ld.so.conf` are found through the cache alone.
fn cache(situation: &Situation<'_>, checks: &mut Vec<Check>) {
    let Some(cache) = situation.host.loader_cache else { return };
    let Some(first) = copies(situation, "libcuda.so.1").next() else { return };
    let only_by_cache = first.found_by == FoundBy::Configuration && !is_always_searched(&first.path);
    if only_by_cache && !cache.libcuda {
        let message = format!(
            "the loader's cache does not list libcuda.so.1, though {} is configured",
            folder(&first.path)
        );
        checks.push(Check::bad(
            Area::Libraries,
            Status::Problem,
            codes::NOT_IN_LOADER_CACHE,
            message,
            "ldconfig",
        ));
    }
}

fn is_always_searched(path: &str) -> bool {
    let folder = folder(path);
    let multiarch = [
        "/lib/x86_64-linux-gnu",
        "/usr/lib/x86_64-linux-gnu",
        "/lib/aarch64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
    ];
    matches!(folder, "/lib" | "/usr/lib" | "/lib64" | "/usr/lib64") || multiarch.contains(&folder)
}
