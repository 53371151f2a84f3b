//! Whether an artifact finds its libraries.

use std::collections::BTreeSet;

use cudock_facts::finding::{FindingEvidence, Severity};
use cudock_host::Verdict;
use cudock_host::frameworks::MissingLibraryEffect;

use crate::codes;
use crate::evidence::{Artifact, ArtifactKind, Effect, Missing};
use crate::judge::{Case, Stop, fails, other_error};

pub(super) fn libraries(case: &mut Case<'_>, artifact: &Artifact) -> Result<(), Stop> {
    elsewhere(case, artifact);
    let here: Vec<&Missing> =
        artifact.missing.iter().filter(|missing| missing.effect != Effect::NotHere).collect();
    let Some(first) = here.first() else {
        case.applies("L1", format!("{}: every library is found", artifact.name));
        return Ok(());
    };
    let evidence = here
        .iter()
        .map(|missing| FindingEvidence::new(missing.needed_by.clone(), wanting(missing)))
        .collect();
    if first.version.is_none()
        && first.broken.is_none()
        && let Some(unread) = case.evidence.unread.first()
    {
        case.applies("L1", format!("{}: {} was not found in what was read", artifact.name, first.library));
        let reason =
            format!("whether {} is there is not known, because {}", first.library, unread.describe());
        let message = format!("{}: {reason}", artifact.name);
        case.find(
            Severity::Warning,
            codes::LIBRARY_NOT_INSTALLED,
            message,
            evidence,
            install(&first.library),
        );
        return Err(Stop::unknown(reason));
    }
    Err(if first.effect == Effect::LoadedByProgram {
        loaded_by_program(case, artifact, first, evidence)
    } else if first.effect == Effect::UsesCpu {
        uses_cpu(case, artifact, first, evidence)
    } else if let Some(version) = &first.version {
        lacks_version(case, artifact, first, version, evidence)
    } else if let Some(broken) = &first.broken {
        is_broken(case, artifact, first, broken, evidence)
    } else if first.library.starts_with("nvidia-") {
        package_missing(case, artifact, first, evidence)
    } else {
        not_found(case, artifact, first, evidence)
    })
}

/// What the subject does not bring, and may be on the target.
fn elsewhere(case: &mut Case<'_>, artifact: &Artifact) {
    let missing = artifact.missing.iter().filter(|missing| missing.effect == Effect::NotHere);
    let missing: Vec<&Missing> = missing.filter(|missing| !every_system_has(&missing.library)).collect();
    if missing.is_empty() {
        return;
    }
    let names: BTreeSet<&str> = missing.iter().map(|missing| missing.library.as_str()).collect();
    let names = names.into_iter().collect::<Vec<_>>().join(", ");
    let message =
        format!("{} needs libraries that are not here, and the target must have: {names}", artifact.name);
    let evidence = missing
        .iter()
        .map(|missing| FindingEvidence::new(missing.needed_by.clone(), wanting(missing)))
        .collect();
    let fix = "check it in the image it will run in";
    case.find(Severity::Note, codes::LIBRARY_NOT_FOUND, message, evidence, fix);
}

/// Libraries of C and C++, which are worth no word where they are not part of the subject.
fn every_system_has(library: &str) -> bool {
    const PREFIXES: [&str; 8] = [
        "ld-linux",
        "libc.so",
        "libdl.so",
        "libgcc_s.so",
        "libm.so",
        "libpthread.so",
        "librt.so",
        "libstdc++.so",
    ];
    PREFIXES.iter().any(|prefix| library.starts_with(prefix))
}

fn uses_cpu(
    case: &mut Case<'_>,
    artifact: &Artifact,
    missing: &Missing,
    evidence: Vec<FindingEvidence>,
) -> Stop {
    let wanting = wanting(missing);
    case.applies("L2", format!("{}: {wanting}", artifact.name));
    let (fix, how) = match artifact.build.as_ref().map(|build| &build.without) {
        Some(MissingLibraryEffect::UsesCpu { fix, how, .. }) => (fix.clone(), how.clone()),
        _ => (install(&missing.library), "it uses the CPU".to_owned()),
    };
    let reason = format!("{wanting}: {how}");
    let message = format!("{}: {reason}", artifact.name);
    case.find(Severity::Error, codes::LIBRARY_NOT_INSTALLED, message, evidence, fix);
    Stop { verdict: Verdict::Cpu, error: None, reason }
}

/// Whether the program loads it, and the framework then uses the GPU, is written in the program.
fn loaded_by_program(
    case: &mut Case<'_>,
    artifact: &Artifact,
    missing: &Missing,
    evidence: Vec<FindingEvidence>,
) -> Stop {
    let library = &missing.library;
    case.applies("L2", format!("{}: {library} is in a wheel, where the loader does not look", artifact.name));
    let reason = format!(
        "{library} is in NVIDIA's wheels, and found only after the program has loaded it: otherwise it uses the CPU"
    );
    let message = format!("{}: {reason}", artifact.name);
    let fix = "call onnxruntime.preload_dlls() or import torch before the first session, or put the wheels' directories \
               into LD_LIBRARY_PATH";
    case.find(Severity::Warning, codes::LIBRARY_NOT_INSTALLED, message, evidence, fix);
    Stop::unknown(reason)
}

fn lacks_version(
    case: &mut Case<'_>,
    artifact: &Artifact,
    missing: &Missing,
    version: &str,
    evidence: Vec<FindingEvidence>,
) -> Stop {
    case.applies("L3", format!("{}: {}", artifact.name, wanting(missing)));
    let Missing { library, needed_by, .. } = missing;
    let reason = format!("{needed_by} needs {version}, which the {library} found does not have");
    let fix = "build it on an older system, or take a newer base image";
    case.find(Severity::Error, codes::GLIBC_TOO_OLD, reason.clone(), evidence, fix);
    let printed = format!("{library}: version `{version}' not found (required by {needed_by})");
    fails(other_error("loader", printed), reason)
}

fn is_broken(
    case: &mut Case<'_>,
    artifact: &Artifact,
    missing: &Missing,
    broken: &str,
    evidence: Vec<FindingEvidence>,
) -> Stop {
    case.applies("L1", format!("{}: {broken} ends the search", artifact.name));
    let reason = format!("{broken} is found first and is not a library: {} cannot start", missing.needed_by);
    let fix = format!("delete {broken}, or remove its directory from LD_LIBRARY_PATH");
    case.find(Severity::Error, codes::LIBRARY_NOT_FOUND, reason.clone(), evidence, fix);
    let printed = format!("error while loading shared libraries: {broken}: file too short");
    fails(other_error("loader", printed), reason)
}

/// A distribution that another requires: which library is missed first is not known without their files.
fn package_missing(
    case: &mut Case<'_>,
    artifact: &Artifact,
    missing: &Missing,
    evidence: Vec<FindingEvidence>,
) -> Stop {
    let library = &missing.library;
    case.applies("L1", format!("{}: {library} is not installed", artifact.name));
    let reason = format!("it requires the package {library}, which is not installed: importing it fails");
    let (message, fix) = (format!("{}: {reason}", artifact.name), format!("pip install {library}"));
    case.find(Severity::Error, codes::LIBRARY_NOT_INSTALLED, message, evidence, fix);
    fails(other_error("loader", "ImportError: a shared library cannot be opened"), reason)
}

fn not_found(
    case: &mut Case<'_>,
    artifact: &Artifact,
    missing: &Missing,
    evidence: Vec<FindingEvidence>,
) -> Stop {
    let Missing { library, needed_by, .. } = missing;
    case.applies("L1", format!("{}: {library} is not found", artifact.name));
    let reason = format!("{library} is not found, and {needed_by} cannot start without it");
    case.find(Severity::Error, codes::LIBRARY_NOT_FOUND, reason.clone(), evidence, install(library));
    let says = "cannot open shared object file: No such file or directory";
    let printed = if artifact.kind == ArtifactKind::Program {
        format!("error while loading shared libraries: {library}: {says}")
    } else {
        format!("ImportError: {library}: {says}")
    };
    fails(other_error("loader", printed), reason)
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
        "the library, or add its directory to the program's RUNPATH or to LD_LIBRARY_PATH"
    };
    format!("install {package}")
}
