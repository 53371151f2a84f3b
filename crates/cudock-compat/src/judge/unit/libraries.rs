//! Whether a unit finds its libraries.

use std::collections::BTreeSet;

use cudock_facts::finding::{Evidence as Seen, Severity};
use cudock_host::Verdict;
use cudock_host::frameworks::Without;

use crate::codes;
use crate::evidence::{Effect, Missing, Unit, UnitKind};
use crate::judge::{Case, Stop, fails, other_error};

pub(super) fn libraries(case: &mut Case<'_>, unit: &Unit) -> Result<(), Stop> {
    let elsewhere: Vec<&Missing> =
        unit.missing.iter().filter(|missing| missing.effect == Effect::NotHere).collect();
    if !elsewhere.is_empty() {
        let names: BTreeSet<&str> = elsewhere.iter().map(|missing| missing.library.as_str()).collect();
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        let message =
            format!("{} needs libraries that are not here, and the target must have: {names}", unit.name);
        let seen =
            elsewhere.iter().map(|missing| Seen::new(missing.needed_by.clone(), wanting(missing))).collect();
        let fix = "check it in the image it will run in";
        case.find(Severity::Note, codes::LIBRARY_NOT_FOUND, message, seen, fix);
    }
    let Some(missing) = unit.missing.iter().find(|missing| missing.effect != Effect::NotHere) else {
        case.applies("L1", format!("{}: every library is found", unit.name));
        return Ok(());
    };
    let seen: Vec<Seen> = unit
        .missing
        .iter()
        .filter(|other| other.effect != Effect::NotHere)
        .map(|other| Seen::new(other.needed_by.clone(), wanting(other)))
        .collect();
    let wanting = wanting(missing);
    if missing.effect == Effect::UsesCpu {
        case.applies("L2", format!("{}: {wanting}", unit.name));
        let (fix, how) = match unit.build.as_ref().map(|build| &build.without) {
            Some(Without::UsesCpu { fix, how, .. }) => (fix.clone(), how.clone()),
            _ => (install(&missing.library), "it uses the CPU".to_owned()),
        };
        let reason = format!("{wanting}: {how}");
        case.find(
            Severity::Error,
            codes::LIBRARY_NOT_INSTALLED,
            format!("{}: {reason}", unit.name),
            seen,
            fix,
        );
        return Err(Stop { verdict: Verdict::Cpu, error: None, reason });
    }
    if let Some(version) = &missing.version {
        case.applies("L3", format!("{}: {wanting}", unit.name));
        let reason = format!(
            "{} needs {version}, which the {} found does not have",
            missing.needed_by, missing.library
        );
        let fix = "build it on an older system, or take a newer base image";
        case.find(Severity::Error, codes::GLIBC_TOO_OLD, reason.clone(), seen, fix);
        let printed =
            format!("{}: version `{version}' not found (required by {})", missing.library, missing.needed_by);
        return Err(fails(other_error("loader", printed), reason));
    }
    case.applies("L1", format!("{}: {wanting}", unit.name));
    if missing.library.starts_with("nvidia-") {
        let library = &missing.library;
        let reason = format!("it requires the package {library}, which is not installed: importing it fails");
        let fix = format!("pip install {library}");
        case.find(
            Severity::Error,
            codes::LIBRARY_NOT_INSTALLED,
            format!("{}: {reason}", unit.name),
            seen,
            fix,
        );
        return Err(fails(other_error("loader", "ImportError: a shared library cannot be opened"), reason));
    }
    if let Some(broken) = &missing.broken {
        let reason = format!("{broken} comes first and is no library: {} cannot start", missing.needed_by);
        let fix = format!("delete {broken}, or take its folder out of LD_LIBRARY_PATH");
        case.find(Severity::Error, codes::LIBRARY_NOT_FOUND, reason.clone(), seen, fix);
        let printed = format!("error while loading shared libraries: {broken}: file too short");
        return Err(fails(other_error("loader", printed), reason));
    }
    let reason =
        format!("{} is not found, and {} cannot start without it", missing.library, missing.needed_by);
    case.find(Severity::Error, codes::LIBRARY_NOT_FOUND, reason.clone(), seen, install(&missing.library));
    let error = if unit.kind == UnitKind::Program {
        format!(
            "error while loading shared libraries: {}: cannot open shared object file: No such file or directory",
            missing.library
        )
    } else {
        format!("ImportError: {}: cannot open shared object file: No such file or directory", missing.library)
    };
    Err(fails(other_error("loader", error), reason))
}

fn wanting(missing: &Missing) -> String {
    match &missing.version {
        Some(version) => format!("needs {version} of {}", missing.library),
        None => format!("{} is not installed", missing.library),
    }
}

/// What brings a library, as far as its name tells.
fn install(library: &str) -> String {
    let of = |prefix: &str| library.starts_with(prefix);
    let package = if of("libcudnn") {
        "cuDNN: pip install nvidia-cudnn-cu12 or -cu13, or the -cudnn- flavour of the base image"
    } else if of("libnccl") {
        "NCCL: pip install nvidia-nccl-cu12 or -cu13, or apt-get install libnccl2"
    } else if of("libnvinfer") {
        "TensorRT: pip install tensorrt, or apt-get install libnvinfer10"
    } else if of("libcu") || of("libnv") || of("libnpp") {
        "the CUDA library: take the -runtime- flavour of the base image, or NVIDIA's wheel of it"
    } else if of("libGL") || of("libglib") || of("libgthread") {
        "the system library: apt-get install libgl1 libglib2.0-0"
    } else {
        "the library, or add its folder to the program's RUNPATH or to LD_LIBRARY_PATH"
    };
    format!("install {package}")
}
