//! Checks whether a started program sees a GPU.

use cudock_facts::finding::FindingEvidence;

use super::{Case, Stop, fails, other_error};
use crate::codes;

pub(super) fn check(case: &mut Case<'_>) -> Result<(), Stop> {
    blocked(case)?;
    visible(case)
}

/// Problems of the machine itself.
fn blocked(case: &mut Case<'_>) -> Result<(), Stop> {
    let Some((error, finding)) =
        case.target.traits.machine.as_ref().and_then(|machine| machine.blocked.clone())
    else {
        return Ok(());
    };
    case.applies("M1", finding.message.clone());
    let reason = finding.message.clone();
    case.findings.push(finding);
    let error =
        error.map_or_else(|| other_error("no CUDA device", reason.clone()), |code| case.cuda_error(code));
    Err(fails(error, reason))
}

/// `CUDA_VISIBLE_DEVICES` hides everything after the first entry that does not exist.
fn visible(case: &mut Case<'_>) -> Result<(), Stop> {
    let Some(value) = case.evidence.environment.get("CUDA_VISIBLE_DEVICES").cloned() else { return Ok(()) };
    let count = case.target.traits.gpu_count;
    let uuids = case.target.traits.machine.as_ref().map(|machine| machine.uuids.clone()).unwrap_or_default();
    let entries: Vec<&str> = value.split(',').map(str::trim).collect();
    let first = entries.first().copied().unwrap_or_default();
    let known_absent = match first.parse::<i64>() {
        Ok(index) => index < 0 || count.is_some_and(|count| index >= i64::from(count)),
        Err(_) if first.starts_with("GPU-") || first.starts_with("MIG-") => {
            !uuids.is_empty() && !uuids.iter().any(|uuid| uuid.starts_with(first))
        }
        Err(_) => true,
    };
    let twice = entries
        .iter()
        .enumerate()
        .any(|(index, entry)| entries.get(..index).is_some_and(|before| before.contains(entry)));
    if !known_absent && twice {
        case.applies("V4", format!("`{value}` names a GPU twice"));
        let reason = format!("CUDA_VISIBLE_DEVICES is `{value}`: it names a GPU twice");
        let evidence = vec![FindingEvidence::new("CUDA_VISIBLE_DEVICES", value)];
        return Err(case.fail(
            codes::HIDDEN_BY_ENVIRONMENT,
            case.cuda_error(101),
            reason,
            evidence,
            "name each GPU once",
        ));
    }
    if !known_absent {
        case.applies("V4", format!("`{value}` shows at least one GPU"));
        return Ok(());
    }
    case.applies("V4", format!("`{value}` shows none"));
    let reason = format!("CUDA_VISIBLE_DEVICES is `{value}`: it hides every GPU");
    let evidence = vec![FindingEvidence::new("CUDA_VISIBLE_DEVICES", value)];
    Err(case.fail(
        codes::HIDDEN_BY_ENVIRONMENT,
        case.cuda_error(100),
        reason,
        evidence,
        "unset CUDA_VISIBLE_DEVICES, or list existing GPUs",
    ))
}
