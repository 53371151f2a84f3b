//! The verdict: a pure function of evidence, target and fact tables.
//!
//! The user sees what fails first, so the checks have the order in which a container or a process runs into them:
//! processor, GPU and driver, start gate, driver library, then for each artifact its libraries, its runtime and its GPU
//! code.

mod artifact;
mod code;
mod devices;
mod hardware;
mod libcuda;
mod range;
mod rules;
mod start;
mod unread;

use std::cmp::Reverse;

use cudock_facts::Facts;
use cudock_facts::finding::{Finding, FindingEvidence, Severity};
use cudock_facts::version::DriverVersion;
use cudock_host::Verdict;
use cudock_host::frameworks::Support;
use schemars::JsonSchema;
use serde::Serialize;

pub use rules::{CheckRule, RULES};

use crate::codes;
use crate::evidence::{Artifact, ArtifactKind, BuildFailure, Evidence, SubjectKind};
use cudock_target::Target;

/// What a subject will do on a target.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Judgement {
    pub verdict: Verdict,
    pub error: Option<Failure>,
    /// One sentence that says why.
    pub reason: String,
    pub findings: Vec<Finding>,
    /// Each artifact by itself.
    pub artifacts: Vec<ArtifactJudgement>,
    /// The rules that were applied, in order.
    #[serde(skip)]
    pub rules: Vec<RuleUse>,
}

/// The expected error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Failure {
    /// CUDA's number; none for errors of the loader, the kernel or the container runtime.
    pub code: Option<u16>,
    /// CUDA's name of it, or whose error it is.
    pub name: String,
    /// What will be printed.
    pub message: String,
}

/// What one artifact will do.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ArtifactJudgement {
    /// "torch 2.15.0"
    pub name: String,
    pub path: String,
    pub verdict: Verdict,
    pub error: Option<Failure>,
    pub reason: String,
}

/// A rule that was applied, and to what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RuleUse {
    /// S1, P2, D2 …
    pub rule: &'static str,
    pub detail: String,
}

/// The inputs and the results so far of one judgement.
struct Case<'a> {
    evidence: &'a Evidence,
    target: &'a Target,
    facts: &'a Facts,
    findings: Vec<Finding>,
    rules: Vec<RuleUse>,
}

/// A verdict that ends the judgement.
#[derive(Clone)]
struct Stop {
    verdict: Verdict,
    error: Option<Failure>,
    reason: String,
}

impl Stop {
    fn new(verdict: Verdict, reason: impl Into<String>) -> Self {
        Self { verdict, error: None, reason: reason.into() }
    }
}

impl Case<'_> {
    fn applies(&mut self, rule: &'static str, detail: impl Into<String>) {
        self.rules.push(RuleUse { rule, detail: detail.into() });
    }

    fn find(
        &mut self,
        severity: Severity,
        code: &'static str,
        message: impl Into<String>,
        evidence: Vec<FindingEvidence>,
        fix: impl Into<String>,
    ) {
        let finding = Finding::new(code, severity, message, fix).with_evidence(evidence);
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    /// Adds a finding, and ends with an error because of it.
    fn fail(
        &mut self,
        code: &'static str,
        error: Failure,
        reason: impl Into<String>,
        evidence: Vec<FindingEvidence>,
        fix: impl Into<String>,
    ) -> Stop {
        let reason = reason.into();
        self.find(Severity::Error, code, reason.clone(), evidence, fix);
        fails(error, reason)
    }

    fn cuda_error(&self, code: u16) -> Failure {
        let known = self.facts.messages().cuda_error(&code.to_string());
        Failure {
            code: Some(code),
            name: known.map_or_else(|| format!("error {code}"), |error| error.name.clone()),
            message: known.map_or_else(String::new, |error| error.text.clone()),
        }
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.evidence.environment.get(name).cloned()
    }
}

/// An error that is not CUDA's.
fn other_error(name: &str, message: impl Into<String>) -> Failure {
    Failure { code: None, name: name.to_owned(), message: message.into() }
}

fn fails(error: Failure, reason: impl Into<String>) -> Stop {
    Stop { error: Some(error), ..Stop::new(Verdict::Fails, reason) }
}

/// Evidence of one file, or of another source.
fn seen(path: impl Into<String>, detail: impl Into<String>) -> Vec<FindingEvidence> {
    vec![FindingEvidence::new(path, detail)]
}

/// Judges a subject on a target. A driver that is named by its branch is judged by the branch's last release, and a
/// finding says so where the first release answers differently.
pub fn judge(evidence: &Evidence, target: &Target, facts: &Facts) -> Judgement {
    let mut judgement = judge_release(evidence, target, facts);
    let Some(branch) = target.traits.branch_only else { return judgement };
    let mut first = target.clone();
    first.driver = Some(DriverVersion::of_branch(branch));
    let first = judge_release(evidence, &first, facts);
    if first.verdict != judgement.verdict {
        let last = target.driver.map_or_else(String::new, |driver| format!(" ({driver})"));
        let verdict = first.verdict.name();
        let message = format!(
            "R{branch} is judged by its last release{last}; with its first releases the verdict is `{verdict}`: {}",
            first.reason
        );
        let fix = "pass the full driver version (`nvidia-smi` prints it) to --driver";
        let finding = Finding::new(codes::BRANCH_RELEASES_DIFFER, Severity::Warning, message, fix);
        judgement.findings.push(finding.with_evidence(seen("--driver", format!("R{branch}"))));
        judgement.findings.sort_by_key(|finding| Reverse(finding.severity));
    }
    judgement
}

fn judge_release(evidence: &Evidence, target: &Target, facts: &Facts) -> Judgement {
    let mut case = Case { evidence, target, facts, findings: Vec::new(), rules: Vec::new() };
    case.findings.extend(target.traits.notes.iter().cloned());
    case.findings.extend(evidence.findings.iter().cloned());
    let (outcome, artifacts) = match common_checks(&mut case) {
        Ok((libcuda, stop)) => {
            let mut artifacts: Vec<ArtifactJudgement> = evidence
                .artifacts
                .iter()
                .map(|artifact| artifact::judge(&mut case, artifact, &libcuda, stop.as_ref()))
                .collect();
            for range in &evidence.ranges {
                artifacts.push(range::judge(&mut case, range, &libcuda, stop.as_ref()));
            }
            let outcome = combined(&mut case, &artifacts, stop);
            (unread::weigh(&mut case, outcome), artifacts)
        }
        Err(stop) => (stop, Vec::new()),
    };
    if let Some(why) = target.traits.driver_assumed.as_ref().filter(|_| outcome.verdict != Verdict::Cpu) {
        let driver = target.driver.map_or_else(|| "unknown".to_owned(), |driver| driver.to_string());
        let message = format!("driver {driver} is assumed");
        let evidence = seen(target.gpu.clone().unwrap_or_default(), why);
        let fix = "name the driver of the machine with --driver";
        case.find(Severity::Note, codes::DRIVER_ASSUMED, message, evidence, fix);
    }
    if let Some(driver) = target.driver.filter(|driver| facts.drivers().branch_of(*driver).is_none()) {
        let message = format!("driver {driver} is of no branch in the tables: what it carries is not known");
        let fix = "name a driver that `cudock facts driver` lists, or add newer tables with --facts";
        let evidence = seen("--driver", driver.to_string());
        case.find(Severity::Warning, codes::DRIVER_ASSUMED, message, evidence, fix);
    }
    let Case { mut findings, rules, .. } = case;
    findings.sort_by_key(|finding| Reverse(finding.severity));
    let Stop { verdict, error, reason } = outcome;
    Judgement { verdict, error, reason, findings, artifacts, rules }
}

/// The verdict of a subject on a target if it is decided before anything inside the subject is
/// read: by its platform, the GPU, the driver, or the start gate. Layers of an image need not be
/// fetched then.
pub(crate) fn judge_start(evidence: &Evidence, target: &Target, facts: &Facts) -> Option<Judgement> {
    let mut case = Case { evidence, target, facts, findings: target.traits.notes.clone(), rules: Vec::new() };
    let stop = hardware::check(&mut case).and_then(|()| start::check(&mut case)).err()?;
    let Case { findings, rules, .. } = case;
    let Stop { verdict, error, reason } = stop;
    Some(Judgement { verdict, error, reason, findings, artifacts: Vec::new(), rules })
}

/// The checks before any artifact; an error ends the judgement. Returns the driver library, and what stops only programs
/// that use the GPU.
fn common_checks(case: &mut Case<'_>) -> Result<(libcuda::Libcuda, Option<Stop>), Stop> {
    built(case)?;
    hardware::check(case)?;
    start::check(case)?;
    let libcuda = libcuda::choose(case);
    let stop = devices::check(case).err();
    Ok((libcuda, stop))
}

/// Whether the build succeeds, so that there is anything to start.
fn built(case: &mut Case<'_>) -> Result<(), Stop> {
    let Some(failure) = &case.evidence.build_failure else { return Ok(()) };
    let BuildFailure { code, reason, evidence, fix, error, message } = failure.clone();
    case.applies("B1", reason.clone());
    Err(case.fail(code, other_error(&error, message), reason, evidence, fix))
}

/// The verdict on the subject as a whole: the worst of the artifacts that can use the GPU. An
/// artifact that was never meant to use one decides only if it is the only one.
fn combined(case: &mut Case<'_>, artifacts: &[ArtifactJudgement], stop: Option<Stop>) -> Stop {
    let evidence = case.evidence;
    let is_for_gpu = |artifact: &Artifact| !matches!(artifact.support, Support::Cpu { .. });
    let of_artifacts = evidence.artifacts.iter().map(|artifact| (is_for_gpu(artifact), artifact.kind));
    // Ranges come behind the artifacts.
    let of_ranges = evidence.ranges.iter().map(|range| {
        (range.variants.iter().any(|(_, artifact)| is_for_gpu(artifact)), ArtifactKind::Framework)
    });
    let judged: Vec<_> = of_artifacts.chain(of_ranges).zip(artifacts).collect();
    // Of those alike the first counts: frameworks come before what extends them.
    let chosen = judged.iter().rev().max_by_key(|((is_for_gpu, kind), artifact)| {
        // The unknown verdict of an extension is ignored if the framework's is known.
        let is_open = *kind == ArtifactKind::Extension && artifact.verdict == Verdict::Unknown;
        (*is_for_gpu && !is_open, *is_for_gpu, artifact.verdict)
    });
    if let Some((_, artifact)) = chosen {
        let is_itself = artifacts.len() == 1 && evidence.kind == SubjectKind::Program;
        let reason = if is_itself {
            artifact.reason.clone()
        } else {
            format!("{}: {}", artifact.name, artifact.reason)
        };
        return Stop { verdict: artifact.verdict, error: artifact.error.clone(), reason };
    }
    if let Some(stop) = stop.filter(|_| evidence.kind == SubjectKind::Program) {
        return stop;
    }
    let reason = "no GPU code found";
    // Only what was read entirely is known not to use a GPU; the caller says what is missing.
    if evidence.unread.is_empty() {
        let looked = "no GPU code, no program that loads CUDA and no framework with CUDA support";
        let fix = "install the CUDA build of your framework, or choose a machine without a GPU";
        let seen = seen(evidence.subject.clone(), looked);
        case.find(Severity::Warning, codes::NOTHING_USES_A_GPU, reason, seen, fix);
    }
    Stop::new(Verdict::Cpu, reason)
}
