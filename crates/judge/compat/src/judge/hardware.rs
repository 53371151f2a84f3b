//! Checks whether the processor, the GPU and the driver support the subject at all.

use cudock_facts::tables::Vendor;

use super::{Case, Stop, other_error, seen};
use crate::codes;

pub(super) fn check(case: &mut Case<'_>) -> Result<(), Stop> {
    processor(case)?;
    vendor(case)?;
    driver_support(case)
}

fn processor(case: &mut Case<'_>) -> Result<(), Stop> {
    let (Some(subject), Some(arch)) = (&case.evidence.cpu, case.target.traits.cpu) else { return Ok(()) };
    let machine = arch.oci_name();
    case.applies("Q1", format!("built for {subject}, the machine is {machine}"));
    if *subject == arch {
        return Ok(());
    }
    let reason = format!("it is built for {subject}, and the machine is {machine}");
    let evidence = seen(case.evidence.subject.clone(), format!("architecture {subject}"));
    let fix = format!("build or pull it for linux/{machine}, or choose a machine with {subject}");
    let error = other_error("exec format error", "exec format error");
    Err(case.fail(codes::WRONG_PLATFORM, error, reason, evidence, fix))
}

fn vendor(case: &mut Case<'_>) -> Result<(), Stop> {
    if case.target.traits.vendor == Vendor::Nvidia {
        return Ok(());
    }
    let gpu = case.target.gpu.clone().unwrap_or_default();
    case.applies("N1", format!("{gpu} is AMD's"));
    let reason = format!("{gpu} is not an NVIDIA GPU: CUDA cannot use it");
    let error = other_error("no CUDA device", "no NVIDIA device");
    let fix = "choose an NVIDIA GPU, or a ROCm build of the program";
    Err(case.fail(codes::NOT_NVIDIA, error, reason, seen(gpu, "vendor in the tables"), fix))
}

/// Whether the driver supports the GPU: neither too old for it nor too new.
fn driver_support(case: &mut Case<'_>) -> Result<(), Stop> {
    let (Some(capability), Some(driver)) = (case.target.capability, case.target.driver) else {
        return Ok(());
    };
    // On a probed machine, the diagnosis says whether the driver supports the GPU.
    if case.target.traits.machine.is_some() {
        return Ok(());
    }
    let drivers = case.facts.drivers();
    let Some(architecture) = drivers.architecture_of(capability) else { return Ok(()) };
    let gpu = case.target.gpu.clone().unwrap_or_else(|| format!("capability {capability}"));
    if let Some(last) = architecture.last_driver_branch.filter(|last| *last < driver.branch()) {
        case.applies("Q2", format!("{} ends with R{last}", architecture.name));
        let reason = format!(
            "driver {driver} no longer supports {gpu}: R{last} is the last branch for {}",
            architecture.name
        );
        let evidence = seen(gpu, format!("{}, last branch R{last}", architecture.name));
        let fix = format!("install a driver of the branch R{last}");
        return Err(case.fail(codes::BRANCH_DROPPED_CARD, case.cuda_error(100), reason, evidence, fix));
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
        let evidence = seen(gpu, format!("first toolkit {first}"));
        let fix = format!("install a driver of the branch {branch}");
        return Err(case.fail(codes::DRIVER_TOO_OLD_FOR_CARD, case.cuda_error(100), reason, evidence, fix));
    }
    case.applies("Q2", format!("driver {driver} supports {gpu}"));
    Ok(())
}
