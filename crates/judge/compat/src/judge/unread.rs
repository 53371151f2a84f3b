//! Turns a verdict of `cpu` into `unknown` if something was not read: `cpu` needs positive evidence.

use std::collections::HashSet;

use cudock_facts::finding::{Finding, Severity};
use cudock_host::Verdict;

use super::{Case, Stop, seen};
use crate::codes;

/// Applies what was not read to a verdict, and lists it as findings.
pub(super) fn weigh(case: &mut Case<'_>, outcome: Stop) -> Stop {
    let evidence = case.evidence;
    let Some(first) = evidence.unread.first() else { return outcome };
    // An error explains the verdict by itself, independent of unread content.
    let is_open = outcome.verdict == Verdict::Cpu && outcome.error.is_none();
    let is_unknown = is_open || outcome.verdict == Verdict::Unknown;
    let severity = if is_unknown { Severity::Warning } else { Severity::Note };
    // There may be thousands, too many to compare each with all others.
    let mut reported = HashSet::new();
    for unread in evidence.unread.iter().filter(|unread| reported.insert(*unread)) {
        let at = seen(unread.at.clone(), unread.what.clone());
        let finding = Finding::new(codes::NOT_READ, severity, unread.describe(), unread.fix.clone());
        case.findings.push(finding.with_evidence(at));
    }
    if !is_open {
        return outcome;
    }
    let more = match evidence.unread.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    let reason = if evidence.artifacts.is_empty() {
        format!("nothing that uses a GPU was found, but not all was read: {}{more}", first.describe())
    } else {
        format!("{}, but not all was read: {}{more}", outcome.reason, first.describe())
    };
    Stop::new(Verdict::Unknown, reason)
}
