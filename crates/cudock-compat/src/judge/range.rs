//! Judges a framework with a range of versions: if all of them have the same verdict, that is the verdict.

use cudock_facts::finding::{FindingEvidence, Severity};
use cudock_host::Verdict;
use cudock_host::frameworks::Support;

use super::libcuda::Libcuda;
use super::{ArtifactJudgement, Case, Stop, artifact};
use crate::codes;
use crate::evidence::Range;

/// Whether one of its versions can use a GPU.
pub(super) fn is_meant_for_gpu(range: &Range) -> bool {
    range.variants.iter().any(|(_, artifact)| !matches!(artifact.support, Support::Cpu { .. }))
}

pub(super) fn judge(
    case: &mut Case<'_>,
    range: &Range,
    libcuda: &Libcuda,
    stop: Option<&Stop>,
) -> ArtifactJudgement {
    let mut judged = Vec::new();
    for (version, artifact) in &range.variants {
        let mut own = Case { findings: Vec::new(), rules: Vec::new(), ..*case };
        let outcome = artifact::judge(&mut own, artifact, libcuda, stop);
        judged.push((version.as_str(), outcome, own.findings, own.rules));
    }
    let same = |a: &ArtifactJudgement, b: &ArtifactJudgement| {
        a.verdict == b.verdict
            && a.error.as_ref().map(|error| error.code) == b.error.as_ref().map(|error| error.code)
    };
    let all_alike = judged.windows(2).all(|pair| match pair {
        [a, b] => same(&a.1, &b.1),
        _ => true,
    });
    let changes: Vec<String> = judged
        .iter()
        .enumerate()
        .filter(|(index, (_, outcome, ..))| {
            let before = index.checked_sub(1).and_then(|before| judged.get(before));
            before.is_none_or(|before| !same(&before.1, outcome))
        })
        .map(|(_, (version, outcome, ..))| format!("{} from {version} on", described(outcome)))
        .collect();
    if let Some((_, outcome, findings, rules)) = judged.pop().filter(|_| all_alike) {
        case.findings.extend(findings);
        case.rules.extend(rules);
        let reason = format!("{} (every version in {} does)", outcome.reason, range.asked);
        return ArtifactJudgement { name: range.name.clone(), path: range.path.clone(), reason, ..outcome };
    }
    let reason =
        format!("what {} does depends on the version that is installed: {}", range.asked, changes.join(", "));
    let fix = format!("pin it: {}==VERSION", range.name);
    let evidence = vec![FindingEvidence::new(range.path.clone(), range.asked.clone())];
    case.find(
        Severity::Warning,
        codes::VERSION_NOT_PINNED,
        format!("{}: {reason}", range.name),
        evidence,
        fix,
    );
    ArtifactJudgement {
        name: range.name.clone(),
        path: range.path.clone(),
        verdict: Verdict::Unknown,
        error: None,
        reason,
    }
}

fn described(outcome: &ArtifactJudgement) -> String {
    match outcome.error.as_ref().and_then(|error| error.code) {
        Some(code) => format!("fails with error {code}"),
        None => match outcome.verdict {
            Verdict::Works => "works",
            Verdict::Jit => "works by JIT compilation",
            Verdict::Cpu => "uses the CPU",
            Verdict::Unknown => "is unknown",
            Verdict::Fails => "fails",
        }
        .to_owned(),
    }
}
