//! Checks whether a started program sees a GPU.

use super::{Case, Stop, fails, other_error, seen};
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
    const NAME: &str = "CUDA_VISIBLE_DEVICES";
    let Some(value) = case.variable(NAME) else { return Ok(()) };
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
    let (detail, hides, error, fix) = match (known_absent, twice) {
        (false, false) => {
            case.applies("V4", format!("`{value}` shows at least one GPU"));
            return Ok(());
        }
        (false, true) => ("names a GPU twice", "names a GPU twice", 101, "name each GPU once"),
        (true, _) => {
            ("shows none", "hides every GPU", 100, "unset CUDA_VISIBLE_DEVICES, or list existing GPUs")
        }
    };
    case.applies("V4", format!("`{value}` {detail}"));
    let reason = format!("{NAME} is `{value}`: it {hides}");
    Err(case.fail(codes::HIDDEN_BY_ENVIRONMENT, case.cuda_error(error), reason, seen(NAME, value), fix))
}
