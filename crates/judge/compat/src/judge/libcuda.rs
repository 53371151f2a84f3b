//! Decides which libcuda a program will load, and what it supports.

use cudock_facts::finding::{FindingEvidence, Severity};
use cudock_facts::tables::ForwardCompatClass;
use cudock_facts::version::{CudaVersion, DriverVersion, PtxIsa};
use cudock_host::host::{FoundBy, LibraryKind};
use cudock_target::HostLibcuda;

use super::{Case, Stop, fails, other_error, seen};
use crate::codes;
use crate::evidence::{CompatNote, DriverCopy, Reach};

/// The driver library of a program.
pub(super) enum Libcuda {
    Usable(Driver),
    /// None: the runtime says 35, and programs that link it do not start.
    Absent(String),
    /// One that answers with an error.
    Broken(Stop),
}

/// A driver as programs see it.
#[derive(Debug, Clone)]
pub(super) struct Driver {
    pub(super) version: Option<DriverVersion>,
    pub(super) cuda: Option<CudaVersion>,
    pub(super) ptx_isa: Option<PtxIsa>,
}

pub(super) fn choose(case: &mut Case<'_>) -> Libcuda {
    let own =
        Driver { version: case.target.driver, cuda: case.target.cuda, ptx_isa: case.target.traits.ptx_isa };
    let machine = case.target.traits.machine.as_ref();
    if let Some(machine) = machine.filter(|_| !case.evidence.kind.is_container()) {
        return on_machine(case, machine.libcuda.as_ref(), own);
    }
    if machine.is_some_and(|machine| machine.libcuda.is_none()) {
        case.applies("D6", "the machine has no libcuda");
        return Libcuda::Absent("the machine has no libcuda.so.1 to give to a container".to_owned());
    }
    let copies = &case.evidence.driver_copies;
    let reached_by = |reach: Reach| copies.iter().filter(move |copy| copy.reach == reach);
    let first = copies
        .iter()
        .find(|copy| matches!(copy.reach, Reach::Loader(FoundBy::LibraryPath | FoundBy::Configuration)));
    if let Some(copy) = first {
        return copy_first(case, copy, own);
    }
    for copy in reached_by(Reach::Loader(FoundBy::Default)) {
        baked_in(case, copy);
    }
    if let Some(copy) = reached_by(Reach::Loader(FoundBy::Default)).next().filter(|_| case.target.traits.wsl)
    {
        case.applies("V6", format!("{} is where WSL2's driver is mounted", copy.path));
        let reason = format!("the container does not start: {} is in the way of WSL2's driver", copy.path);
        let error = other_error("file exists", format!("{}: file exists", copy.path));
        return Libcuda::Broken(fails(error, reason));
    }
    if let Some(copy) = reached_by(Reach::CompatDirectory).next()
        && copy.kind == LibraryKind::Compat
    {
        return by_toolkit(case, copy, own);
    }
    Libcuda::Usable(own)
}

/// A program that is started on the machine itself loads what its loader finds first.
fn on_machine(case: &mut Case<'_>, found: Option<&HostLibcuda>, own: Driver) -> Libcuda {
    let Some(library) = found else {
        let message = "the loader finds no libcuda.so.1";
        case.applies("D6", message);
        let fix = "install the driver's libraries, or run `cudock doctor`";
        case.find(Severity::Error, codes::LIBCUDA_MISSING, message, Vec::new(), fix);
        return Libcuda::Absent(message.to_owned());
    };
    let evidence = seen(library.path.clone(), "found first by the loader");
    match library.kind {
        LibraryKind::Stub => stub(case, evidence),
        LibraryKind::Empty | LibraryKind::Dangling => empty(case, evidence),
        LibraryKind::Compat => compat(case, &library.path, library.version, None, own, true),
        LibraryKind::Driver => Libcuda::Usable(own),
    }
}

fn stub(case: &mut Case<'_>, evidence: Vec<FindingEvidence>) -> Libcuda {
    let reason = "a stub libcuda comes before the real one";
    case.applies("V6", reason);
    let fix = "take the stubs directory out of LD_LIBRARY_PATH";
    Libcuda::Broken(case.fail(codes::STUB_FIRST, case.cuda_error(34), reason, evidence, fix))
}

fn empty(case: &mut Case<'_>, evidence: Vec<FindingEvidence>) -> Libcuda {
    let reason = "an empty libcuda comes before the real one";
    case.applies("V6", reason);
    let fix = "delete the file: the driver's own is put in when the container starts";
    case.find(Severity::Error, codes::EMPTY_LIBRARY, reason, evidence, fix);
    Libcuda::Absent(reason.to_owned())
}

/// A copy in the image that the loader finds before the host's.
fn copy_first(case: &mut Case<'_>, copy: &DriverCopy, own: Driver) -> Libcuda {
    let evidence = seen(copy.path.clone(), "found before the host's driver library");
    match copy.kind {
        LibraryKind::Stub => stub(case, evidence),
        LibraryKind::Empty | LibraryKind::Dangling => empty(case, evidence),
        LibraryKind::Compat => compat(case, &copy.path, copy.version, copy.note.as_ref(), own, true),
        LibraryKind::Driver if copy.version == own.version && own.version.is_some() => {
            baked_in(case, copy);
            Libcuda::Usable(own)
        }
        LibraryKind::Driver => {
            let version =
                copy.version.map_or_else(|| "of unknown version".to_owned(), |version| version.to_string());
            let host = own.version.map_or_else(|| "unknown".to_owned(), |version| version.to_string());
            let reason = format!("the image's own libcuda ({version}) comes before the host's ({host})");
            case.applies("V6", reason.clone());
            let fix = "take the driver's libraries out of the image";
            Libcuda::Broken(case.fail(codes::DRIVER_BAKED_IN, case.cuda_error(803), reason, evidence, fix))
        }
    }
}

fn baked_in(case: &mut Case<'_>, copy: &DriverCopy) {
    let what = match (copy.kind, copy.version) {
        (LibraryKind::Driver, Some(version)) => format!("a driver library of {version}"),
        (LibraryKind::Driver, None) => "a driver library".to_owned(),
        (LibraryKind::Empty, _) => "an empty driver library, as a committed container leaves it".to_owned(),
        (LibraryKind::Dangling, _) => "a dangling link to a driver library".to_owned(),
        (LibraryKind::Stub, _) => "a stub of the driver library".to_owned(),
        (LibraryKind::Compat, _) => "a cuda-compat library".to_owned(),
    };
    let message = format!("the image holds {what} where the host's is put");
    let fix = "delete it from the image: containers get the host's, and two of them can mix (803) or collide (WSL2)";
    let evidence = seen(copy.path.clone(), "belongs to the host");
    case.find(Severity::Warning, codes::DRIVER_BAKED_IN, message, evidence, fix);
}

/// The toolkit's own decision about cuda-compat in its usual place.
fn by_toolkit(case: &mut Case<'_>, copy: &DriverCopy, own: Driver) -> Libcuda {
    let note = copy.note.as_ref();
    let Some(host) = own.version else { return Libcuda::Usable(own) };
    let Some(driver) = copy.version else { return by_cuda(case, note, own) };
    let used = match note.filter(|note| !note.branches.is_empty()) {
        Some(note) => note.branches.contains(&host.branch()) && driver > host,
        None => driver.branch() > host.branch(),
    };
    if !used {
        case.applies("C4", format!("cuda-compat {driver} is not put before driver {host}"));
        return Libcuda::Usable(own);
    }
    case.applies("C4", format!("cuda-compat {driver} is put before driver {host}"));
    compat(case, &copy.path, Some(driver), note, own, false)
}

/// A note without driver branches, as on Jetson: the CUDA versions decide.
fn by_cuda(case: &mut Case<'_>, note: Option<&CompatNote>, own: Driver) -> Libcuda {
    let brings = note.and_then(|note| note.cuda).filter(|cuda| own.cuda.is_some_and(|own| *cuda > own));
    let Some(cuda) = brings else { return Libcuda::Usable(own) };
    case.applies("C4", format!("the image's cuda-compat brings CUDA {cuda}"));
    let ptx_isa = case.facts.toolkits().toolkit(cuda).map(|toolkit| toolkit.ptx_isa);
    Libcuda::Usable(Driver { cuda: Some(cuda), ptx_isa, ..own })
}

fn compat(
    case: &mut Case<'_>,
    path: &str,
    driver: Option<DriverVersion>,
    note: Option<&CompatNote>,
    own: Driver,
    forced: bool,
) -> Libcuda {
    let (Some(compat), Some(host)) = (driver, own.version) else { return Libcuda::Usable(own) };
    let evidence = seen(path, format!("cuda-compat of driver {compat}"));
    let fix = if forced {
        "remove the compat directory from LD_LIBRARY_PATH and ld.so.conf; the container toolkit selects the library"
    } else {
        "delete /usr/local/cuda/compat from the image, or update the host's driver"
    };
    let broken = |case: &mut Case<'_>, code: &'static str, error: u16, reason: String| {
        Libcuda::Broken(case.fail(code, case.cuda_error(error), reason, evidence.clone(), fix))
    };
    if compat == host {
        return Libcuda::Usable(own);
    }
    if compat < host {
        case.applies("C3", format!("cuda-compat {compat} is older than driver {host}"));
        let reason = format!("cuda-compat {compat} comes first and is older than driver {host}");
        return broken(case, codes::COMPAT_DOES_NOT_FIT, 803, reason);
    }
    let branch = case.facts.drivers().branch_of(compat);
    let cuda = note.and_then(|note| note.cuda).or_else(|| branch.map(|branch| branch.cuda));
    if compat.branch() != host.branch() && !pair_is_supported(case, cuda, note, host) {
        case.applies("C1", format!("cuda-compat {compat} does not support R{}", host.branch()));
        let reason = format!("cuda-compat {compat} does not run on kernel driver {host}");
        return broken(case, codes::COMPAT_DOES_NOT_FIT, 803, reason);
    }
    let gpu = case.target.gpu.clone().unwrap_or_else(|| "this GPU".to_owned());
    match case.target.traits.forward_compat {
        ForwardCompatClass::No => {
            case.applies("C1", format!("{gpu} is of no class that cuda-compat supports"));
            let reason = format!("cuda-compat {compat} is used, and does not support {gpu}");
            return broken(case, codes::COMPAT_NOT_ON_CARD, 804, reason);
        }
        ForwardCompatClass::BrandDependent => {
            let message = format!(
                "cuda-compat {compat} is used, and only some boards of the {gpu} kind support it (804 on the others)"
            );
            case.find(Severity::Warning, codes::COMPAT_NOT_ON_CARD, message, evidence.clone(), fix);
        }
        ForwardCompatClass::Yes => {}
    }
    case.applies("C1", format!("cuda-compat {compat} runs on driver {host}"));
    let brings = cuda.map_or_else(String::new, |cuda| format!(" and brings CUDA {cuda}"));
    let message = format!("cuda-compat {compat} is used on driver {host}{brings}");
    let fix = "nothing to do; a newer driver makes it unnecessary";
    case.find(Severity::Note, codes::COMPAT_IN_USE, message, evidence.clone(), fix);
    let toolkit = cuda.and_then(|cuda| case.facts.toolkits().toolkit(cuda)).map(|toolkit| toolkit.ptx_isa);
    let ptx_isa = branch.map(|branch| branch.ptx_isa).or(toolkit);
    Libcuda::Usable(Driver { version: Some(compat), cuda, ptx_isa })
}

/// Whether the pair is supported: by the library's own note, NVIDIA's matrix, or the pairs that the
/// image of that CUDA accepts.
fn pair_is_supported(
    case: &Case<'_>,
    cuda: Option<CudaVersion>,
    note: Option<&CompatNote>,
    host: DriverVersion,
) -> bool {
    if let Some(note) = note.filter(|note| !note.branches.is_empty()) {
        return note.branches.contains(&host.branch());
    }
    let Some(cuda) = cuda else { return false };
    let branch = host.branch();
    let mut packages = case.facts.forward_compat().package.iter();
    let in_matrix = packages.any(|row| row.cuda == cuda && row.supported.contains(&branch));
    let in_images = case.facts.images().require.iter().filter(|row| row.cuda.version() == cuda).any(|row| {
        [&row.tesla, &row.with_geforce, &row.datacenter].iter().any(|branches| branches.contains(&branch))
    });
    in_matrix || in_images
}
