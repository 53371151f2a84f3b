//! Judges one artifact: its libraries, its CUDA runtime, its GPU code.

mod gpu_code;
mod libraries;
mod package;
mod runtime;
mod table;

use std::fmt::Display;

use cudock_facts::finding::{FindingEvidence, Severity};
use cudock_host::Verdict;
use cudock_host::frameworks::{Build, MissingLibraryEffect, Support};

use super::libcuda::{Driver, Libcuda};
use super::{ArtifactJudgement, Case, Failure, Stop, fails, other_error, seen};
use crate::codes;
use crate::evidence::{Artifact, Code};

pub(super) fn judge(
    case: &mut Case<'_>,
    artifact: &Artifact,
    libcuda: &Libcuda,
    stop: Option<&Stop>,
) -> ArtifactJudgement {
    let outcome = ArtifactCase { case, artifact }.judge(libcuda, stop);
    let Stop { verdict, error, reason } = outcome.unwrap_or_else(|stop| stop);
    ArtifactJudgement { name: artifact.name.clone(), path: artifact.path.clone(), verdict, error, reason }
}

/// The judgement of one artifact, whose name comes before each rule and finding.
struct ArtifactCase<'c, 'a> {
    case: &'c mut Case<'a>,
    artifact: &'c Artifact,
}

impl ArtifactCase<'_, '_> {
    fn applies(&mut self, rule: &'static str, detail: impl Display) {
        self.case.applies(rule, format!("{}: {detail}", self.artifact.name));
    }

    fn find(
        &mut self,
        severity: Severity,
        code: &'static str,
        message: &str,
        evidence: Vec<FindingEvidence>,
        fix: impl Into<String>,
    ) {
        self.case.find(severity, code, format!("{}: {message}", self.artifact.name), evidence, fix);
    }

    /// Adds an error, and ends with it.
    fn fail(
        &mut self,
        code: &'static str,
        error: Failure,
        reason: String,
        evidence: Vec<FindingEvidence>,
        fix: impl Into<String>,
    ) -> Stop {
        self.find(Severity::Error, code, &reason, evidence, fix);
        fails(error, reason)
    }

    /// Adds a warning, because of which the verdict is unknown.
    fn unknown(
        &mut self,
        code: &'static str,
        reason: impl Into<String>,
        evidence: Vec<FindingEvidence>,
        fix: impl Into<String>,
    ) -> Stop {
        let reason = reason.into();
        self.find(Severity::Warning, code, &reason, evidence, fix);
        Stop::new(Verdict::Unknown, reason)
    }

    /// Evidence in the artifact's own file.
    fn seen(&self, detail: impl Into<String>) -> Vec<FindingEvidence> {
        seen(self.artifact.path.clone(), detail)
    }

    fn judge(&mut self, libcuda: &Libcuda, stop: Option<&Stop>) -> Result<Stop, Stop> {
        self.support()?;
        self.barred()?;
        self.libraries()?;
        let driver = self.driver(libcuda)?;
        // The runtime compares versions before it looks for a GPU.
        self.runtime(&driver)?;
        if let Some(stop) = stop {
            return Err(stop.clone());
        }
        self.gpu_code(&driver)
    }

    fn support(&mut self) -> Result<(), Stop> {
        let artifact = self.artifact;
        let known = match (&artifact.build, &artifact.code) {
            (Some(build), _) => &build.label,
            (None, Code::Unknown(why)) => why,
            (None, _) => &artifact.name,
        };
        let evidence = self.seen(known);
        match &artifact.support {
            Support::Cuda => Ok(()),
            Support::Cpu { reason, severity, fix } => {
                self.find(*severity, codes::CPU_BUILD, reason, evidence, fix);
                Err(Stop::new(Verdict::Cpu, reason))
            }
            Support::OtherVendor { fix } => {
                let reason = "built for AMD's GPUs";
                self.find(Severity::Error, codes::BUILT_FOR_ROCM, reason, evidence, fix);
                Err(Stop::new(Verdict::Cpu, reason))
            }
            Support::NotInTables { fix } => match &artifact.code {
                // What its files say is better than what tables would.
                Code::Files(_) => Ok(()),
                Code::Unknown(why) if artifact.build.is_none() => {
                    Err(self.unknown(codes::VERSION_NOT_PINNED, why, evidence, fix))
                }
                _ => {
                    let reason = "this release is not in the tables, and its files are not here";
                    Err(self.unknown(codes::BUILD_UNKNOWN, reason, evidence, fix))
                }
            },
        }
    }

    /// Whether the system refuses to start it.
    fn barred(&mut self) -> Result<(), Stop> {
        let Some(why) = &self.artifact.barred else { return Ok(()) };
        self.applies("Q1", why);
        let (reason, evidence) = (format!("it cannot be started: {why}"), self.seen(why));
        let error = other_error("permission denied", "Permission denied");
        let fix = format!("chmod +x {}", self.artifact.path);
        Err(self.case.fail(codes::NOT_EXECUTABLE, error, reason, evidence, fix))
    }

    fn driver(&mut self, libcuda: &Libcuda) -> Result<Driver, Stop> {
        match libcuda {
            Libcuda::Usable(driver) => Ok(driver.clone()),
            Libcuda::Broken(stop) => Err(stop.clone()),
            Libcuda::Absent(reason) if self.artifact.links_driver => {
                self.applies("L1", "libcuda.so.1 is not found");
                let what = if reason.starts_with("an empty") {
                    "file too short"
                } else {
                    "cannot open shared object file: No such file or directory"
                };
                let printed = format!("error while loading shared libraries: libcuda.so.1: {what}");
                Err(fails(other_error("loader", printed), reason))
            }
            Libcuda::Absent(reason) => {
                self.applies("D6", reason);
                // These check for a driver first, and fall back to the CPU without one.
                let goes_on = |build: &Build| matches!(build.without, MissingLibraryEffect::UsesCpu { .. });
                let stop = fails(self.case.cuda_error(35), reason);
                let verdict = if self.artifact.build.as_ref().is_some_and(goes_on) {
                    Verdict::Cpu
                } else {
                    stop.verdict
                };
                Err(Stop { verdict, ..stop })
            }
        }
    }
}
