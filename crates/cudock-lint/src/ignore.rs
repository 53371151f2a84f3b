//! Comments that switch findings off.

use cudock_dockerfile::Build;
use cudock_facts::finding::Finding;

use crate::rules::rule;

/// The comments of a file that switch findings off.
pub(crate) struct Ignores {
    /// The lines of an instruction that a comment is before, and the codes.
    by_line: Vec<(std::ops::RangeInclusive<usize>, Vec<String>)>,
    /// The codes that are off in the whole file.
    everywhere: Vec<String>,
}

impl Ignores {
    /// Reads `# cudock: ignore=CD0712 (reason)`, `# hadolint ignore=DL3006` and `# check=skip=Name`.
    pub(crate) fn read(build: &Build<'_>) -> Self {
        let mut ignores = Self { by_line: Vec::new(), everywhere: Vec::new() };
        let steps = build.stages.iter().flat_map(|stage| &stage.steps).map(|step| &step.instruction);
        let froms = build.stages.iter().map(|stage| &stage.from);
        let heads = build.head.iter().map(|step| &step.instruction);
        let mut instructions: Vec<_> = steps.chain(froms).chain(heads).collect();
        instructions.sort_by_key(|instruction| instruction.span.start);
        for comment in &build.comments {
            let Some((codes, is_global)) = codes(&comment.text) else { continue };
            if is_global {
                ignores.everywhere.extend(codes);
                continue;
            }
            // A comment belongs to the instruction it is in, or else to the next one.
            let at = instructions.partition_point(|one| one.span.end <= comment.span.start);
            let Some(instruction) = instructions.get(at) else { continue };
            let end = instruction.here_docs.last().map_or(instruction.span.end, |here_doc| here_doc.span.end);
            let lines = instruction.span.line..=build.lines.line(end.saturating_sub(1));
            ignores.by_line.push((lines, codes));
        }
        ignores
    }

    pub(crate) fn covers(&self, finding: &Finding) -> bool {
        let is_own = |code: &String| {
            code == finding.code || rule(finding.code).is_some_and(|rule| rule.also.contains(&code.as_str()))
        };
        let line = finding.location.as_ref().map(|location| location.region.span.line);
        self.everywhere.iter().any(is_own)
            || self.by_line.iter().any(|(lines, codes)| {
                line.is_some_and(|line| lines.contains(&line)) && codes.iter().any(is_own)
            })
    }
}

/// The codes of a comment, and whether it holds for the whole file.
fn codes(comment: &str) -> Option<(Vec<String>, bool)> {
    let split = |list: &str| {
        let list = list.split(['(', ';']).next().unwrap_or_default();
        list.split([',', ' ']).filter(|code| !code.is_empty()).map(str::to_owned).collect()
    };
    if let Some(rest) = comment.strip_prefix("cudock:") {
        let rest = rest.trim();
        let (rest, is_global) = rest.strip_prefix("global").map_or((rest, false), |rest| (rest.trim(), true));
        return Some((split(rest.strip_prefix("ignore=")?), is_global));
    }
    if let Some(rest) = comment.strip_prefix("hadolint") {
        let rest = rest.trim();
        let (rest, is_global) = rest.strip_prefix("global").map_or((rest, false), |rest| (rest.trim(), true));
        return Some((split(rest.strip_prefix("ignore=")?), is_global));
    }
    Some((split(comment.strip_prefix("check=skip=")?), true))
}
