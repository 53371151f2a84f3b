//! Checks whether the driver is new enough for the CUDA runtime of an artifact.

use cudock_facts::finding::{FindingEvidence, Severity};
use cudock_facts::version::DriverVersion;

use crate::codes;
use crate::evidence::{Artifact, Runtime};
use crate::judge::libcuda::Driver;
use crate::judge::{Case, Stop};

/// Whether the driver is new enough for the CUDA runtime.
pub(super) fn runtime(case: &mut Case<'_>, artifact: &Artifact, driver: &Driver) -> Result<(), Stop> {
    let Some(runtime) = &artifact.runtime else { return Ok(()) };
    let Some(version) = driver.version else { return Ok(()) };
    let named = runtime.version.map_or_else(|| runtime.major.to_string(), |version| version.to_string());
    // A branch older than the tables has a CUDA older than they know.
    let own = driver.cuda;
    let has = own.map_or_else(String::new, |own| format!(" (CUDA {own})"));
    if own.is_some_and(|own| own.major() > runtime.major) {
        case.applies("D1", format!("{}: CUDA {named} on driver {version}{has}", artifact.name));
        return Ok(());
    }
    let floor = floor(case, artifact, runtime);
    let newer = runtime.version.filter(|runtime| own.is_none_or(|own| *runtime > own));
    let too_old = match floor {
        // Its own CUDA, or an older one of the major: that needs no floor.
        Some(floor) => version < floor && (newer.is_some() || runtime.version.is_none()),
        None => newer.is_some() || own.is_some_and(|own| own.major() < runtime.major),
    };
    let evidence = vec![FindingEvidence::new(runtime.path.clone(), format!("CUDA runtime {named}"))];
    if too_old {
        let needed = or_newer(floor);
        case.applies(
            "D2",
            format!("{}: CUDA {named} needs driver {needed}, {version} is older", artifact.name),
        );
        let reason = format!("driver {version}{has} is too old for CUDA {named}, which needs {needed}");
        let fix = artifact.build.as_ref().map_or_else(
            || format!("update the driver to {needed}, or build with a CUDA the driver has"),
            |build| build.fix_for_old_driver(case.facts, floor, case.target.driver),
        );
        return Err(case.fail_artifact(
            artifact,
            codes::DRIVER_TOO_OLD,
            case.cuda_error(35),
            reason,
            evidence,
            fix,
        ));
    }
    let Some(newer) = newer else {
        case.applies("D2", format!("{}: CUDA {named} on driver {version}", artifact.name));
        return Ok(());
    };
    case.applies("D3", format!("{}: CUDA {newer} on driver {version}{has}", artifact.name));
    let message = format!(
        "{} brings CUDA {newer}, newer than the driver's{has}: machine code runs, PTX compiled at run time does not (error 222)",
        artifact.name
    );
    let fix = "nothing to do, unless it generates PTX at run time: then update the driver";
    case.find(Severity::Note, codes::RUNTIME_NEWER_THAN_DRIVER, message, evidence, fix);
    Ok(())
}

/// The lowest driver for a runtime: its major's floor, or before there were such, that of its toolkit; a framework may
/// ask for more, never for less.
fn floor(case: &Case<'_>, artifact: &Artifact, runtime: &Runtime) -> Option<DriverVersion> {
    let wsl = case.target.traits.wsl;
    let row = case.facts.drivers().minor_compat(runtime.major);
    let of_major = row.and_then(|row| if wsl { row.min_windows } else { Some(row.min_linux) });
    let of_toolkit = || {
        let releases = case.facts.toolkits().releases_of(runtime.version?);
        releases.filter_map(|release| if wsl { release.min_windows } else { release.min_linux }).min()
    };
    let own = artifact.own_floor.filter(|_| !wsl);
    of_major.or_else(of_toolkit).max(own)
}

fn or_newer(floor: Option<DriverVersion>) -> String {
    floor.map_or_else(|| "a newer one".to_owned(), |floor| format!("{floor} or newer"))
}
