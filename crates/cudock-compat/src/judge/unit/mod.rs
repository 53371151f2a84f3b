//! What one unit will do: its libraries, its runtime, its GPU code.

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
use super::{Case, Stop, UnitJudgement, fails, other_error};
use crate::codes;
use crate::evidence::{Code, Unit};

pub(super) fn judge(
    case: &mut Case<'_>,
    unit: &Unit,
    libcuda: &Libcuda,
    stop: Option<&Stop>,
) -> UnitJudgement {
    let outcome = questions(case, unit, libcuda, stop).unwrap_or_else(|stop| stop);
    UnitJudgement {
        name: unit.name.clone(),
        path: unit.path.clone(),
        verdict: outcome.verdict,
        error: outcome.error,
        reason: outcome.reason,
    }
}

fn questions(case: &mut Case<'_>, unit: &Unit, libcuda: &Libcuda, stop: Option<&Stop>) -> Result<Stop, Stop> {
    support(case, unit)?;
    barred(case, unit)?;
    libraries(case, unit)?;
    let driver = driver(case, unit, libcuda)?;
    // The runtime compares versions before it asks for a card.
    runtime(case, unit, &driver)?;
    if let Some(stop) = stop {
        return Err(Stop { verdict: stop.verdict, error: stop.error.clone(), reason: stop.reason.clone() });
    }
    gpu_code(case, unit, &driver)
}

fn support(case: &mut Case<'_>, unit: &Unit) -> Result<(), Stop> {
    let known = match (&unit.build, &unit.code) {
        (Some(build), _) => build.label.clone(),
        (None, Code::Unknown(why)) => why.clone(),
        (None, _) => unit.name.clone(),
    };
    let seen = vec![FindingEvidence::new(unit.path.clone(), known)];
    match &unit.support {
        Support::Cuda => Ok(()),
        Support::Cpu { reason, severity, fix } => {
            let severity = match severity {
                CpuBuildSeverity::Problem => Severity::Error,
                CpuBuildSeverity::Warning => Severity::Warning,
                CpuBuildSeverity::Note => Severity::Note,
            };
            let message = format!("{}: {reason}", unit.name);
            case.find(severity, codes::CPU_BUILD, message, seen, fix.clone());
            Err(Stop { verdict: Verdict::Cpu, error: None, reason: reason.clone() })
        }
        Support::OtherVendor { fix } => {
            let reason = "built for AMD's GPUs".to_owned();
            case.find(
                Severity::Error,
                codes::BUILT_FOR_ROCM,
                format!("{}: {reason}", unit.name),
                seen,
                fix.clone(),
            );
            Err(Stop { verdict: Verdict::Cpu, error: None, reason })
        }
        Support::NotInTables { fix } => {
            // What its files say is better than what tables would.
            if matches!(unit.code, Code::Files(_)) {
                return Ok(());
            }
            let (code, reason) = match &unit.code {
                Code::Unknown(why) if unit.build.is_none() => (codes::VERSION_NOT_PINNED, why.clone()),
                _ => (
                    codes::BUILD_UNKNOWN,
                    "this release is not in the tables, and its files are not here".to_owned(),
                ),
            };
            case.find(Severity::Warning, code, format!("{}: {reason}", unit.name), seen, fix.clone());
            Err(Stop { verdict: Verdict::Unknown, error: None, reason })
        }
    }
}

/// What the system has against starting it.
fn barred(case: &mut Case<'_>, unit: &Unit) -> Result<(), Stop> {
    let Some(why) = &unit.barred else { return Ok(()) };
    case.applies("Q1", format!("{}: {why}", unit.name));
    let seen = vec![FindingEvidence::new(unit.path.clone(), why.clone())];
    let reason = format!("it cannot be started: {why}");
    case.find(
        Severity::Error,
        codes::NOT_EXECUTABLE,
        reason.clone(),
        seen,
        format!("chmod +x {}", unit.path),
    );
    Err(fails(other_error("permission denied", "Permission denied"), reason))
}

fn driver(case: &mut Case<'_>, unit: &Unit, libcuda: &Libcuda) -> Result<Driver, Stop> {
    match libcuda {
        Libcuda::Usable(driver) => Ok(driver.clone()),
        Libcuda::Broken(stop) => {
            Err(Stop { verdict: stop.verdict, error: stop.error.clone(), reason: stop.reason.clone() })
        }
        Libcuda::Absent(reason) if unit.links_driver => {
            case.applies("L1", format!("{}: libcuda.so.1 is not found", unit.name));
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
            case.applies("D6", format!("{}: {reason}", unit.name));
            let goes_on = |build: &Build| matches!(build.without, MissingLibraryEffect::UsesCpu { .. });
            if unit.build.as_ref().is_some_and(goes_on) {
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
