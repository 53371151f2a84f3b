//! Comments that switch findings off.

use std::collections::{BTreeMap, HashSet};

use cudock_dockerfile::{Build, Stage};
use cudock_facts::finding::Finding;

use crate::rules::rule;

/// The comments of a file that switch findings off.
#[derive(Default)]
pub(crate) struct Ignores {
    /// Ignored names by the first line of an instruction, with its last line: those in comments before
    /// or in it.
    by_line: BTreeMap<usize, (usize, HashSet<String>)>,
    /// The names that are off in the whole file.
    everywhere: HashSet<String>,
    /// Whether all checks of `BuildKit` are off.
    skips_buildkit: bool,
}

impl Ignores {
    /// Reads `# cudock: ignore=CD0712 (reason)`, `# hadolint ignore=DL3006`, both with `global` before `ignore`, and
    /// `BuildKit`'s `# check=skip=Name`. Names are compared without case.
    pub(crate) fn read<'b>(build: &'b Build<'_>) -> Self {
        let mut ignores = Self::default();
        let heads = build.head.iter().map(|step| &step.instruction);
        let of_stage = |stage: &'b Stage<'b>| {
            std::iter::once(&stage.from).chain(stage.steps.iter().map(|step| &step.instruction))
        };
        let instructions: Vec<_> = heads.chain(build.stages.iter().flat_map(of_stage)).collect();
        for comment in &build.comments {
            let Some((list, is_global)) = ignore_list(&comment.text) else { continue };
            if is_global {
                ignores.everywhere.extend(names(list));
                continue;
            }
            // A comment belongs to the instruction it is in, or else to the next one.
            let at = instructions.partition_point(|one| one.span.end <= comment.span.start);
            let Some(instruction) = instructions.get(at) else { continue };
            let end = instruction.here_docs.last().map_or(instruction.span.end, |here_doc| here_doc.span.end);
            let end_line = build.lines.line(end.saturating_sub(1));
            let (_, listed) =
                ignores.by_line.entry(instruction.span.line).or_insert_with(|| (end_line, HashSet::new()));
            listed.extend(names(list));
        }
        for list in skipped_checks(build) {
            ignores.skips_buildkit |= names(list).any(|name| name == "all");
            ignores.everywhere.extend(names(list));
        }
        ignores
    }

    pub(crate) fn covers(&self, finding: &Finding) -> bool {
        if self.by_line.is_empty() && self.everywhere.is_empty() {
            return false;
        }
        let rule = rule(finding.code);
        let also = rule.map_or(&[][..], |rule| rule.also);
        let mut own =
            std::iter::once(finding.code).chain(rule.map(|rule| rule.name)).chain(also.iter().copied());
        let line = finding.location.as_ref().map(|location| location.region.span.line);
        let here = line
            .and_then(|line| Some((line, self.by_line.range(..=line).next_back()?.1)))
            .and_then(|(line, (last, names))| (line <= *last).then_some(names));
        self.skips_buildkit && also.iter().any(|name| is_buildkit_check(name))
            || own.any(|name| {
                let name = name.to_ascii_lowercase();
                self.everywhere.contains(&name) || here.is_some_and(|names| names.contains(&name))
            })
    }
}

/// The list of names in a comment, and whether it holds for the whole file.
fn ignore_list(comment: &str) -> Option<(&str, bool)> {
    let rest = comment.strip_prefix("cudock:").or_else(|| comment.strip_prefix("hadolint"))?.trim_start();
    let (rest, is_global) =
        rest.strip_prefix("global").map_or((rest, false), |rest| (rest.trim_start(), true));
    Some((rest.strip_prefix("ignore")?.trim_start().strip_prefix('=')?, is_global))
}

/// The names of a list in lower case: separated by commas, up to what does not belong to it, such as a reason.
fn names(list: &str) -> impl Iterator<Item = String> {
    let mut is_over = false;
    let parts = list.split(',').map(str::trim).map_while(move |part| {
        if std::mem::replace(&mut is_over, part.contains(|end: char| end.is_whitespace() || end == '(')) {
            return None;
        }
        part.split(|end: char| end.is_whitespace() || end == '(').next().filter(|name| !name.is_empty())
    });
    parts.map(str::to_ascii_lowercase)
}

/// The lists of `# check=skip=A,B;error=true`. It is a directive: nothing but directives may come before it.
fn skipped_checks<'b>(build: &'b Build<'_>) -> impl Iterator<Item = &'b str> {
    let directives = build.comments.iter().zip(1..).take_while(|(comment, line)| {
        let key = comment.text.split_once('=').map(|(key, _)| key.trim());
        comment.span.line == *line
            && key.is_some_and(|key| !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric()))
    });
    let checks = directives.filter_map(|(comment, _)| {
        let (key, settings) = comment.text.split_once('=')?;
        key.trim().eq_ignore_ascii_case("check").then_some(settings)
    });
    checks.flat_map(|settings| settings.split(';')).filter_map(|setting| setting.trim().strip_prefix("skip="))
}

/// Names of `BuildKit`'s checks are words; those of hadolint are letters and a number.
fn is_buildkit_check(name: &str) -> bool {
    name.contains(|letter: char| letter.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_skipped_by_a_directive_alone() {
        let skipped = |text: &str| {
            let file = cudock_dockerfile::parse(text).unwrap();
            let build = Build::read(&file).unwrap();
            skipped_checks(&build).flat_map(names).collect::<Vec<_>>()
        };
        for (head, expected) in [
            ("# check=skip=StageNameCasing", &["stagenamecasing"][..]),
            ("# syntax=docker/dockerfile:1\n#check = error=true;skip=A,B", &["a", "b"]),
            ("# check=skip=all", &["all"]),
            ("# check=error=true", &[]),
            ("# a comment\n# check=skip=A", &[]),
            ("\n# check=skip=A", &[]),
        ] {
            assert_eq!(skipped(&format!("{head}\nFROM a\n# check=skip=Z\n")), expected, "{head}");
        }
    }
}
