//! Applies the edits of findings.

use cudock_facts::finding::{Finding, TextEdit};

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

/// Whether two edits touch the same bytes, or insert at the same place.
fn overlap(one: &TextEdit, other: &TextEdit) -> bool {
    let (one, other) = (one.region.span, other.region.span);
    one.start < other.end && other.start < one.end || one.start == other.start
}
