//! Whether what a file asks for can be installed at all.

use super::{Case, Stop, fails, other_error};

pub(super) fn check(case: &mut Case<'_>) -> Result<(), Stop> {
    let Some(failure) = &case.evidence.install_failure else { return Ok(()) };
    let reason = failure.finding.message.clone();
    case.findings.push(failure.finding.clone());
    Err(fails(other_error("pip", failure.error.clone()), reason))
}
