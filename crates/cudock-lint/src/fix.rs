//! Applies the edits of findings.

use cudock_dockerfile::SyntaxError;
use cudock_facts::finding::{Finding, TextEdit};
use similar::TextDiff;

/// The limit for applying fixes again, as one may bring another finding.
const MAX_ROUNDS: usize = 10;

/// A text after edits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fixed {
    pub text: String,
    /// The number of findings whose edits were applied.
    pub applied: usize,
}

/// Applies the first suggestion of each finding, in the order of the file. One that overlaps an applied one is left for the
/// next run.
pub fn apply(text: &str, findings: &[Finding]) -> Fixed {
    let mut taken: Vec<&TextEdit> = Vec::new();
    let mut applied = 0;
    for suggestion in findings.iter().filter_map(|finding| finding.suggestions.first()) {
        let overlaps = |edit: &TextEdit| taken.iter().any(|other| overlap(edit, other));
        if suggestion.edits.is_empty() || suggestion.edits.iter().any(overlaps) {
            continue;
        }
        taken.extend(&suggestion.edits);
        applied += 1;
    }
    taken.sort_by_key(|edit| edit.region.span.start);
    let mut fixed = String::with_capacity(text.len());
    let mut at = 0;
    for edit in taken {
        let span = edit.region.span;
        fixed.push_str(text.get(at..span.start).unwrap_or_default());
        fixed.push_str(&edit.text);
        at = span.end;
    }
    fixed.push_str(text.get(at..).unwrap_or_default());
    Fixed { text: fixed, applied }
}

/// Applies fixes until there are none left, and returns the text with the findings that remain. `lint` finds them in a
/// text; fixes after which it cannot read the text are not applied.
pub(crate) fn fix_all(
    text: &str,
    lint: impl Fn(&str) -> Result<Vec<Finding>, SyntaxError>,
) -> Result<(Fixed, Vec<Finding>), SyntaxError> {
    let mut findings = lint(text)?;
    let mut fixed = Fixed { text: text.to_owned(), applied: 0 };
    for _ in 0..MAX_ROUNDS {
        let next = apply(&fixed.text, &findings);
        if next.applied == 0 {
            break;
        }
        let Ok(remaining) = lint(&next.text) else { break };
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

/// Whether two edits touch the same bytes, or insert at the same place.
fn overlap(one: &TextEdit, other: &TextEdit) -> bool {
    let (one, other) = (one.region.span, other.region.span);
    one.start < other.end && other.start < one.end || one.start == other.start
}
