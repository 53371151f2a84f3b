//! Judges a framework with a range of versions: if all of them have the same verdict, that is the verdict.

use cudock_facts::finding::Severity;
use cudock_host::Verdict;

use super::libcuda::Libcuda;
use super::{ArtifactJudgement, Case, Stop, artifact, seen};
use crate::codes;
use crate::evidence::Range;

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
        judged.push((version, outcome, own.findings, own.rules));
    }
    let answer =
        |outcome: &ArtifactJudgement| (outcome.verdict, outcome.error.as_ref().map(|error| error.code));
    let alike = judged.chunk_by(|a, b| answer(&a.1) == answer(&b.1)).filter_map(<[_]>::first);
    let changes: Vec<String> =
        alike.map(|(version, outcome, ..)| format!("{} from {version} on", described(outcome))).collect();
    let (name, path) = (range.name.clone(), range.path.clone());
    if let Some((_, outcome, findings, rules)) = judged.pop().filter(|_| changes.len() == 1) {
        case.findings.extend(findings);
        case.rules.extend(rules);
        let reason = format!("{} (every version in {} does)", outcome.reason, range.asked);
        return ArtifactJudgement { name, path, reason, ..outcome };
    }
    let reason =
        format!("what {} does depends on the version that is installed: {}", range.asked, changes.join(", "));
    let message = format!("{name}: {reason}");
    let fix = format!("pin it: {name}==VERSION");
    let evidence = seen(path.clone(), range.asked.clone());
    case.find(Severity::Warning, codes::VERSION_NOT_PINNED, message, evidence, fix);
    ArtifactJudgement { name, path, verdict: Verdict::Unknown, error: None, reason }
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
