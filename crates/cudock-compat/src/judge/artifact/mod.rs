//! Judges one artifact: its libraries, its CUDA runtime, its GPU code.

mod gpu_code;
mod libraries;
mod package;
mod runtime;
mod table;

use cudock_facts::finding::{FindingEvidence, Severity};
use cudock_host::Verdict;
use cudock_host::frameworks::{Build, CpuBuildSeverity, MissingLibraryEffect, Support};

use self::gpu_code::gpu_code;
use self::libraries::libraries;
use self::runtime::runtime;
use super::libcuda::{Driver, Libcuda};
use super::{ArtifactJudgement, Case, Stop, fails, other_error};
use crate::codes;
use crate::evidence::{Artifact, Code};

pub(super) fn judge(
    case: &mut Case<'_>,
    artifact: &Artifact,
    libcuda: &Libcuda,
    stop: Option<&Stop>,
) -> ArtifactJudgement {
    let outcome = checks(case, artifact, libcuda, stop).unwrap_or_else(|stop| stop);
    ArtifactJudgement {
        name: artifact.name.clone(),
        path: artifact.path.clone(),
        verdict: outcome.verdict,
        error: outcome.error,
        reason: outcome.reason,
    }
}

fn checks(
    case: &mut Case<'_>,
    artifact: &Artifact,
    libcuda: &Libcuda,
    stop: Option<&Stop>,
) -> Result<Stop, Stop> {
    support(case, artifact)?;
    barred(case, artifact)?;
    libraries(case, artifact)?;
    let driver = driver(case, artifact, libcuda)?;
    // The runtime compares versions before it asks for a card.
    runtime(case, artifact, &driver)?;
    if let Some(stop) = stop {
        return Err(stop.clone());
    }
    gpu_code(case, artifact, &driver)
}

fn support(case: &mut Case<'_>, artifact: &Artifact) -> Result<(), Stop> {
    let known = match (&artifact.build, &artifact.code) {
        (Some(build), _) => build.label.clone(),
        (None, Code::Unknown(why)) => why.clone(),
        (None, _) => artifact.name.clone(),
    };
    let evidence = vec![FindingEvidence::new(artifact.path.clone(), known)];
    match &artifact.support {
        Support::Cuda => Ok(()),
        Support::Cpu { reason, severity, fix } => {
            let severity = match severity {
                CpuBuildSeverity::Problem => Severity::Error,
                CpuBuildSeverity::Warning => Severity::Warning,
                CpuBuildSeverity::Note => Severity::Note,
            };
            let message = format!("{}: {reason}", artifact.name);
            case.find(severity, codes::CPU_BUILD, message, evidence, fix.clone());
            Err(Stop { verdict: Verdict::Cpu, error: None, reason: reason.clone() })
        }
        Support::OtherVendor { fix } => {
            let reason = "built for AMD's GPUs".to_owned();
            case.find(
                Severity::Error,
                codes::BUILT_FOR_ROCM,
                format!("{}: {reason}", artifact.name),
                evidence,
                fix.clone(),
            );
            Err(Stop { verdict: Verdict::Cpu, error: None, reason })
        }
        Support::NotInTables { fix } => {
            // What its files say is better than what tables would.
            if matches!(artifact.code, Code::Files(_)) {
                return Ok(());
            }
            let (code, reason) = match &artifact.code {
                Code::Unknown(why) if artifact.build.is_none() => (codes::VERSION_NOT_PINNED, why.clone()),
                _ => (
                    codes::BUILD_UNKNOWN,
                    "this release is not in the tables, and its files are not here".to_owned(),
                ),
            };
            case.find(Severity::Warning, code, format!("{}: {reason}", artifact.name), evidence, fix.clone());
            Err(Stop::unknown(reason))
        }
    }
}

/// Whether the system refuses to start it.
fn barred(case: &mut Case<'_>, artifact: &Artifact) -> Result<(), Stop> {
    let Some(why) = &artifact.barred else { return Ok(()) };
    case.applies("Q1", format!("{}: {why}", artifact.name));
    let evidence = vec![FindingEvidence::new(artifact.path.clone(), why.clone())];
    let reason = format!("it cannot be started: {why}");
    Err(case.fail(
        codes::NOT_EXECUTABLE,
        other_error("permission denied", "Permission denied"),
        reason,
        evidence,
        format!("chmod +x {}", artifact.path),
    ))
}

fn driver(case: &mut Case<'_>, artifact: &Artifact, libcuda: &Libcuda) -> Result<Driver, Stop> {
    match libcuda {
        Libcuda::Usable(driver) => Ok(driver.clone()),
        Libcuda::Broken(stop) => Err(stop.clone()),
        Libcuda::Absent(reason) if artifact.links_driver => {
            case.applies("L1", format!("{}: libcuda.so.1 is not found", artifact.name));
            let short = reason.starts_with("an empty");
            let what = if short {
                "file too short"
            } else {
                "cannot open shared object file: No such file or directory"
            };
            let printed = format!("error while loading shared libraries: libcuda.so.1: {what}");
            Err(fails(other_error("loader", printed), reason.clone()))
        }
        Libcuda::Absent(reason) => {
            case.applies("D6", format!("{}: {reason}", artifact.name));
            let goes_on = |build: &Build| matches!(build.without, MissingLibraryEffect::UsesCpu { .. });
            if artifact.build.as_ref().is_some_and(goes_on) {
                // These ask first, and go on without.
                return Err(Stop {
                    verdict: Verdict::Cpu,
                    error: Some(case.cuda_error(35)),
                    reason: reason.clone(),
                });
            }
            Err(fails(case.cuda_error(35), reason.clone()))
        }
    }
}
