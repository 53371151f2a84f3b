//! Judges a package by its name, its CUDA version and its documentation.

use cudock_facts::finding::{FindingEvidence, Severity};
use cudock_facts::tables::Toolkit;
use cudock_facts::version::Capability;

use crate::codes;
use crate::evidence::{Artifact, PackageCode, Runtime};
use crate::judge::{Case, Stop, fails, other_error};

/// Whether the toolkits of a CUDA compile for a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compiles {
    /// All of them, or the one that is meant.
    Yes,
    /// None: they dropped it.
    Dropped,
    /// None, or only later ones: the card is newer. PTX may still run.
    NotYet,
}

pub(super) fn package(
    case: &mut Case<'_>,
    artifact: &Artifact,
    capability: Capability,
    code: &PackageCode,
) -> Result<Stop, Stop> {
    let evidence = vec![FindingEvidence::new(artifact.path.clone(), artifact.name.clone())];
    if let Some(lowest) = code.min_capability.filter(|lowest| capability < *lowest) {
        case.applies("R1", format!("{}: documented for {lowest} and newer", artifact.name));
        let reason = format!("it supports compute capability {lowest} and newer; the GPU has {capability}");
        let message = format!("{}: {reason}", artifact.name);
        let fix = format!("use a GPU with capability {lowest} or newer, or a package that supports this GPU");
        case.find(Severity::Error, codes::CARD_NOT_SUPPORTED, message, evidence, fix);
        return Err(fails(other_error("unsupported GPU", reason.clone()), reason));
    }
    let supports = artifact.runtime.as_ref().and_then(|runtime| compiles(case, runtime, capability));
    let cuda = artifact.runtime.as_ref().map_or_else(String::new, |runtime| {
        runtime.version.map_or_else(|| runtime.major.to_string(), |version| version.to_string())
    });
    let knows_version = artifact.runtime.as_ref().is_some_and(|runtime| runtime.version.is_some());
    match supports {
        Some(Compiles::Dropped) => {
            case.applies("R1", format!("{}: CUDA {cuda} has no target for {capability}", artifact.name));
            let reason =
                format!("it is built for CUDA {cuda}, which no longer supports capability {capability}");
            let fix = "take its package for an older CUDA";
            Err(case.fail_artifact(
                artifact,
                codes::NO_CODE_FOR_GPU,
                case.cuda_error(209),
                reason,
                evidence,
                fix,
            ))
        }
        Some(Compiles::Yes) if code.compiles => {
            case.applies("S1", format!("{}: CUDA {cuda} compiles for {capability}", artifact.name));
            let reason = format!(
                "it compiles its GPU code at run time, and CUDA {cuda} supports capability {capability}"
            );
            Ok(Stop::works(reason))
        }
        Some(Compiles::NotYet) if code.to_machine_code && knows_version => {
            case.applies("R1", format!("{}: CUDA {cuda} does not know {capability}", artifact.name));
            let reason = format!(
                "it compiles machine code with CUDA {cuda}, which is older than capability {capability}"
            );
            let fix = "use a base image with a CUDA version that supports the GPU (`cudock facts arch`)";
            Err(case.fail_artifact(
                artifact,
                codes::NO_CODE_FOR_GPU,
                case.cuda_error(209),
                reason,
                evidence,
                fix,
            ))
        }
        Some(Compiles::NotYet) => {
            let reason =
                format!("CUDA {cuda} is older than capability {capability}: only PTX in it could run");
            let message = format!("{}: {reason}", artifact.name);
            case.find(Severity::Warning, codes::BUILD_UNKNOWN, message, evidence, code.fix.clone());
            Err(Stop::unknown(reason))
        }
        _ => {
            let message = format!("{}: {}", artifact.name, code.why);
            case.find(Severity::Warning, codes::BUILD_UNKNOWN, message, evidence, code.fix.clone());
            Err(Stop::unknown(code.why.clone()))
        }
    }
}

fn compiles(case: &Case<'_>, runtime: &Runtime, card: Capability) -> Option<Compiles> {
    let meant = |toolkit: &&Toolkit| match runtime.version {
        Some(version) => toolkit.cuda == version,
        None => toolkit.cuda.major() == runtime.major,
    };
    let toolkits: Vec<&Toolkit> = case.facts.toolkits().toolkit.iter().filter(meant).collect();
    let newest = toolkits.last()?.sass.iter().map(|code| code.capability()).max()?;
    let runs = |toolkit: &&Toolkit| toolkit.sass.iter().any(|code| code.runs_on(card));
    Some(if toolkits.iter().all(runs) {
        Compiles::Yes
    } else if toolkits.iter().any(runs) || card > newest {
        Compiles::NotYet
    } else {
        Compiles::Dropped
    })
}
