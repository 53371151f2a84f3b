//! Whether the processor and the card can run it at all.

use cudock_facts::finding::{FindingEvidence, Severity};
use cudock_facts::tables::Vendor;

use super::{Case, Stop, fails, other_error};
use crate::codes;

pub(super) fn check(case: &mut Case<'_>) -> Result<(), Stop> {
    processor(case)?;
    vendor(case)?;
    driven(case)
}

fn processor(case: &mut Case<'_>) -> Result<(), Stop> {
    let (Some(subject), Some(machine)) = (&case.evidence.cpu, &case.target.traits.cpu) else { return Ok(()) };
    case.applies("Q1", format!("built for {subject}, the machine is {machine}"));
    if subject == machine {
        return Ok(());
    }
    let reason = format!("it is built for {subject}, and the machine is {machine}");
    let evidence =
        vec![FindingEvidence::new(case.evidence.subject.clone(), format!("architecture {subject}"))];
    let fix = format!("build or pull it for linux/{machine}, or choose a machine with {subject}");
    case.find(Severity::Error, codes::WRONG_PLATFORM, reason.clone(), evidence, fix);
    Err(fails(other_error("exec format error", "exec format error"), reason))
}

fn vendor(case: &mut Case<'_>) -> Result<(), Stop> {
    if case.target.traits.vendor == Vendor::Nvidia {
        return Ok(());
    }
    let gpu = case.target.gpu.clone().unwrap_or_default();
    case.applies("N1", format!("{gpu} is AMD's"));
    let reason = format!("{gpu} is not an NVIDIA card: CUDA cannot use it");
    let evidence = vec![FindingEvidence::new(gpu, "vendor in the tables")];
    case.find(
        Severity::Error,
        codes::NOT_NVIDIA,
        reason.clone(),
        evidence,
        "choose an NVIDIA card, or a ROCm build of the program",
    );
    Err(fails(other_error("no CUDA device", "no NVIDIA device"), reason))
}

/// Whether the driver knows the card, and still knows it.
fn driven(case: &mut Case<'_>) -> Result<(), Stop> {
    let (Some(capability), Some(driver)) = (case.target.capability, case.target.driver) else {
        return Ok(());
    };
    // A machine's own driver has the card already, or the doctor has said that it has not.
    if case.target.traits.machine.is_some() {
        return Ok(());
    }
    let drivers = case.facts.drivers();
    let Some(architecture) = drivers.architecture_of(capability) else { return Ok(()) };
    let gpu = case.target.gpu.clone().unwrap_or_else(|| format!("capability {capability}"));
    if let Some(last) = architecture.last_driver_branch.filter(|last| *last < driver.branch()) {
        case.applies("Q2", format!("{} ends with R{last}", architecture.name));
        let reason =
            format!("driver {driver} no longer drives {gpu}: {} cards end with R{last}", architecture.name);
        let evidence = vec![FindingEvidence::new(gpu, format!("{}, last branch R{last}", architecture.name))];
        case.find(
            Severity::Error,
            codes::BRANCH_DROPPED_CARD,
            reason.clone(),
            evidence,
            format!("install a driver of the branch R{last}"),
        );
        return Err(fails(case.cuda_error(100), reason));
    }
    let first = architecture.first_toolkit_of.get(&capability).copied().or(architecture.first_toolkit);
    let knows = drivers.branch_of(driver).map(|branch| branch.cuda);
    if let (Some(first), Some(knows)) = (first, knows)
        && knows < first
    {
        case.applies("Q2", format!("{gpu} is known from CUDA {first} on"));
        let reason =
            format!("driver {driver} (CUDA {knows}) is too old to know {gpu}, which came with CUDA {first}");
        let branch = drivers
            .branch_with(first)
            .map_or_else(|| "newer".to_owned(), |branch| format!("R{} or newer", branch.branch));
        let evidence = vec![FindingEvidence::new(gpu, format!("first toolkit {first}"))];
        case.find(
            Severity::Error,
            codes::DRIVER_TOO_OLD_FOR_CARD,
            reason.clone(),
            evidence,
            format!("install a driver of the branch {branch}"),
        );
        return Err(fails(case.cuda_error(100), reason));
    }
    case.applies("Q2", format!("driver {driver} drives {gpu}"));
    Ok(())
}
