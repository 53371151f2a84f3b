//! Applies the edits of findings.

use cudock_base::bug::Parts;
use std::collections::BTreeMap;

use cudock_base::Span;
use cudock_dockerfile::SyntaxError;
use cudock_facts::finding::{Finding, TextEdit};
use similar::TextDiff;

use crate::{LintOptions, lint};

/// The limit for applying fixes again, as one may bring another finding.
const MAX_ROUNDS: usize = 10;

/// A text after edits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fixed {
    pub text: String,
    /// The number of findings whose edits were applied.
    pub applied: usize,
}

/// Edits by their first byte and the one after their last.
type EditsByBytes<'e> = BTreeMap<(usize, usize), &'e TextEdit>;

/// Applies the first suggestion of each finding, in the order of the file. One that overlaps an applied one is left for the
/// next run.
pub fn apply(text: &str, findings: &[Finding]) -> Fixed {
    let mut taken = EditsByBytes::new();
    let mut applied = 0;
    for suggestion in findings.iter().filter_map(|finding| finding.suggestions.first()) {
        let is_free = |edit: &TextEdit| is_free(&taken, edit.region.span);
        if suggestion.edits.is_empty() || !suggestion.edits.iter().all(is_free) {
            continue;
        }
        taken.extend(
            suggestion.edits.iter().map(|edit| ((edit.region.span.start, edit.region.span.end), edit)),
        );
        applied += 1;
    }
    let mut fixed = String::with_capacity(text.len());
    let mut at = 0;
    for edit in taken.values() {
        let span = edit.region.span;
        fixed.push_str(text.part(at..span.start));
        fixed.push_str(&edit.text);
        at = span.end;
    }
    fixed.push_str(text.part(at..));
    Fixed { text: fixed, applied }
}

/// Lints a Dockerfile and applies fixes until there are none left. Returns the text and the findings that remain. Fixes
/// after which the text could not be parsed are not applied.
pub fn fix_all(
    path: &str,
    text: &str,
    options: &LintOptions<'_>,
) -> Result<(Fixed, Vec<Finding>), SyntaxError> {
    let mut findings = lint(path, text, options)?;
    let mut fixed = Fixed { text: text.to_owned(), applied: 0 };
    for _ in 0..MAX_ROUNDS {
        let next = apply(&fixed.text, &findings);
        if next.applied == 0 {
            break;
        }
        let Ok(remaining) = lint(path, &next.text, options) else { break };
        findings = remaining;
        fixed = Fixed { text: next.text, applied: fixed.applied + next.applied };
    }
    Ok((fixed, findings))
}

/// The changes of a file as a unified diff; empty if there are none.
pub(crate) fn diff(path: &str, before: &str, after: &str) -> String {
    let path = path.trim_start_matches('/');
    let changes = TextDiff::from_lines(before, after);
    changes.unified_diff().header(&format!("a/{path}"), &format!("b/{path}")).to_string()
}

/// Whether no edit touches some bytes, or inserts at the same place. Edits that are taken do not overlap.
fn is_free(taken: &EditsByBytes<'_>, span: Span) -> bool {
    let before = taken.range(..(span.start, 0)).next_back();
    before.is_none_or(|(_, edit)| edit.region.span.end <= span.start)
        && taken.range((span.start, 0)..(span.end.max(span.start + 1), 0)).next().is_none()
}
