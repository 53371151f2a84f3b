//! Whether an artifact finds its libraries.

use std::collections::BTreeSet;

use cudock_facts::finding::{FindingEvidence, Severity};
use cudock_host::Verdict;
use cudock_host::frameworks::MissingLibraryEffect;

use super::ArtifactCase;
use crate::codes;
use crate::evidence::{ArtifactKind, Effect, Missing};
use crate::judge::{Stop, other_error};

/// Libraries of C and C++, which are worth no word where they are not part of the subject.
const ON_EVERY_SYSTEM: [&str; 8] = [
    "ld-linux",
    "libc.so",
    "libdl.so",
    "libgcc_s.so",
    "libm.so",
    "libpthread.so",
    "librt.so",
    "libstdc++.so",
];

impl ArtifactCase<'_, '_> {
    pub(super) fn libraries(&mut self) -> Result<(), Stop> {
        self.elsewhere();
        let here = self.artifact.missing.iter().filter(|missing| missing.effect != Effect::NotHere);
        let here: Vec<&Missing> = here.collect();
        let Some(first) = here.first() else {
            self.applies("L1", "every library is found");
            return Ok(());
        };
        let evidence = needed_by(&here);
        if first.version.is_none()
            && first.broken.is_none()
            && let Some(unread) = self.case.evidence.unread.first()
        {
            self.applies("L1", format!("{} was not found in what was read", first.library));
            let reason = format!("cannot tell whether {} exists: {}", first.library, unread.describe());
            let fix = install(&first.library);
            return Err(self.unknown(codes::LIBRARY_NOT_INSTALLED, reason, evidence, fix));
        }
        Err(self.missing(first, evidence))
    }

    /// Reports libraries that the subject does not contain, and the target may have.
    fn elsewhere(&mut self) {
        let is_everywhere = |library: &str| ON_EVERY_SYSTEM.iter().any(|prefix| library.starts_with(prefix));
        let missing = self.artifact.missing.iter().filter(|missing| missing.effect == Effect::NotHere);
        let missing: Vec<&Missing> = missing.filter(|missing| !is_everywhere(&missing.library)).collect();
        if missing.is_empty() {
            return;
        }
        let names: BTreeSet<&str> = missing.iter().map(|missing| missing.library.as_str()).collect();
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        let name = &self.artifact.name;
        let message = format!("{name} needs libraries that are not here, and the target must have: {names}");
        let fix = "check it in the image it will run in";
        self.case.find(Severity::Note, codes::LIBRARY_NOT_FOUND, message, needed_by(&missing), fix);
    }

    /// The effect of the first missing library.
    fn missing(&mut self, missing: &Missing, evidence: Vec<FindingEvidence>) -> Stop {
        let Missing { library, needed_by, version, broken, effect } = missing;
        let wanting = wanting(missing);
        if *effect == Effect::LoadedByProgram {
            // Whether the program loads it, and the framework then uses the GPU, is written in the program.
            self.applies("L2", format!("{library} is in a wheel, where the loader does not look"));
            let reason = format!(
                "{library} is in NVIDIA's wheels, and found only after the program has loaded it: otherwise it uses the CPU"
            );
            let fix = "call onnxruntime.preload_dlls() or import torch before the first session, or put the wheels' directories \
                       into LD_LIBRARY_PATH";
            return self.unknown(codes::LIBRARY_NOT_INSTALLED, reason, evidence, fix);
        }
        if *effect == Effect::UsesCpu {
            self.applies("L2", &wanting);
            let (fix, how) = match self.artifact.build.as_ref().map(|build| &build.without) {
                Some(MissingLibraryEffect::UsesCpu { fix, how, .. }) => (fix.clone(), how.as_str()),
                _ => (install(library), "it uses the CPU"),
            };
            let reason = format!("{wanting}: {how}");
            self.find(Severity::Error, codes::LIBRARY_NOT_INSTALLED, &reason, evidence, fix);
            return Stop::new(Verdict::Cpu, reason);
        }
        if let Some(version) = version {
            self.applies("L3", wanting);
            let reason = format!("{needed_by} needs {version}, which the {library} found does not have");
            let printed = format!("{library}: version `{version}' not found (required by {needed_by})");
            let fix = "build it on an older system, or take a newer base image";
            return self.case.fail(
                codes::GLIBC_TOO_OLD,
                other_error("loader", printed),
                reason,
                evidence,
                fix,
            );
        }
        if library.starts_with("nvidia-") && broken.is_none() {
            // A distribution that another requires: which library is missed first is not known without their files.
            self.applies("L1", format!("{library} is not installed"));
            let reason =
                format!("it requires the package {library}, which is not installed: importing it fails");
            let error = other_error("loader", "ImportError: a shared library cannot be opened");
            let fix = format!("pip install {library}");
            return self.fail(codes::LIBRARY_NOT_INSTALLED, error, reason, evidence, fix);
        }
        let (rule, reason, printed, fix) = if let Some(broken) = broken {
            (
                format!("{broken} ends the search"),
                format!("{broken} is found first and is not a library: {needed_by} cannot start"),
                format!("error while loading shared libraries: {broken}: file too short"),
                format!("delete {broken}, or remove its directory from LD_LIBRARY_PATH"),
            )
        } else {
            let is_program = self.artifact.kind == ArtifactKind::Program;
            let by = if is_program { "error while loading shared libraries" } else { "ImportError" };
            (
                format!("{library} is not found"),
                format!("{library} is not found, and {needed_by} cannot start without it"),
                format!("{by}: {library}: cannot open shared object file: No such file or directory"),
                install(library),
            )
        };
        self.applies("L1", rule);
        self.case.fail(codes::LIBRARY_NOT_FOUND, other_error("loader", printed), reason, evidence, fix)
    }
}

fn needed_by(missing: &[&Missing]) -> Vec<FindingEvidence> {
    missing.iter().map(|one| FindingEvidence::new(one.needed_by.clone(), wanting(one))).collect()
}

fn wanting(missing: &Missing) -> String {
    match &missing.version {
        Some(version) => format!("needs {version} of {}", missing.library),
        None => format!("{} is not installed", missing.library),
    }
}

/// The package that contains a library, guessed from its name.
fn install(library: &str) -> String {
    let of = |prefix: &str| library.starts_with(prefix);
    let package = if of("libcudnn") {
        "cuDNN: pip install nvidia-cudnn-cu12 or -cu13, or the -cudnn- flavor of the base image"
    } else if of("libnccl") {
        "NCCL: pip install nvidia-nccl-cu12 or -cu13, or apt-get install libnccl2"
    } else if of("libnvinfer") {
        "TensorRT: pip install tensorrt, or apt-get install libnvinfer10"
    } else if of("libcu") || of("libnv") || of("libnpp") {
        "the CUDA library: take the -runtime- flavor of the base image, or NVIDIA's wheel of it"
    } else if of("libGL") || of("libglib") || of("libgthread") {
        "the system library: apt-get install libgl1 libglib2.0-0"
    } else {
        "the library, or add its directory to the program's RUNPATH or to LD_LIBRARY_PATH"
    };
    format!("install {package}")
}
