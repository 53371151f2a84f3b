//! Judges code by its targets alone: builds in the tables, and programs whose compiler options are known.

use cudock_facts::finding::{FindingEvidence, Severity};
use cudock_facts::tables::Toolkit;
use cudock_facts::version::{Capability, DriverVersion, PtxArch, PtxIsa, SmArch};

use super::gpu_code::{CodeEvidence, conclude};
use crate::codes;
use crate::evidence::{Artifact, ArtifactKind, Pattern};
use crate::judge::code::{self, Card, Loads};
use crate::judge::{Case, Stop};

pub(super) fn by_table(
    case: &mut Case<'_>,
    artifact: &Artifact,
    card: Card,
    driver: Option<DriverVersion>,
    (sass, ptx, isa): (&[SmArch], Option<&[PtxArch]>, Option<PtxIsa>),
) -> Result<Stop, Stop> {
    // An unknown PTX version is assumed to be one that the driver supports.
    let assumed = isa.or(card.ptx_isa).unwrap_or(PtxIsa::new(1, 0));
    let pattern = Pattern {
        sass: sass.to_vec(),
        ptx: ptx.unwrap_or_default().iter().map(|code| (*code, assumed)).collect(),
        modules: 1,
        ..Pattern::default()
    };
    let toolkit = artifact.build.as_ref().and_then(|build| build.cuda);
    let answer = code::loads(&pattern, card, toolkit);
    if answer == Loads::Nothing && ptx.is_none() && !is_older_than_build(artifact, sass, card.capability) {
        let reason = format!(
            "no machine code for capability {}, and whether it has PTX is not in the tables",
            card.capability
        );
        let fix = artifact.build.as_ref().map_or_else(String::new, |build| {
            build.fix_for_no_code(case.facts, &[card.capability], case.target.driver)
        });
        case.find(
            Severity::Warning,
            codes::BUILD_UNKNOWN,
            format!("{}: {reason}", artifact.name),
            vec![FindingEvidence::new(artifact.path.clone(), "according to the tables")],
            fix,
        );
        return Err(Stop::unknown(reason));
    }
    if let Some(stop) = by_any_toolkit(case, artifact, card, driver, (sass, answer)) {
        return Err(stop);
    }
    let evidence = vec![FindingEvidence::new(
        artifact.path.clone(),
        format!("has {}, according to the tables", code::targets(std::slice::from_ref(&pattern))),
    )];
    conclude(
        case,
        artifact,
        card,
        (answer, std::slice::from_ref(&pattern)),
        209,
        CodeEvidence { evidence, part: None },
    )
}

/// Whether a card is older than all a build of torch was compiled for: its list of architectures adds PTX to a target
/// that is in it, so PTX cannot reach such a card either.
fn is_older_than_build(artifact: &Artifact, sass: &[SmArch], card: Capability) -> bool {
    let is_torch = artifact.build.as_ref().is_some_and(|build| build.name == "torch");
    is_torch && !sass.is_empty() && sass.iter().all(|code| code.capability() > card)
}

/// A program whose compiler version is unknown: the verdict holds if it holds for every toolkit that supports its targets.
fn by_any_toolkit(
    case: &mut Case<'_>,
    artifact: &Artifact,
    card: Card,
    driver: Option<DriverVersion>,
    (sass, answer): (&[SmArch], Loads),
) -> Option<Stop> {
    if artifact.kind != ArtifactKind::Program || artifact.runtime.is_some() || !answer.works() {
        return None;
    }
    let driver = driver?;
    let facts = case.facts;
    let knows = |toolkit: &&Toolkit| sass.iter().all(|code| toolkit.sass.contains(code));
    let is_too_new = |toolkit: &&Toolkit| {
        let floor = facts.drivers().minor_compat(toolkit.cuda.major()).map(|row| row.min_linux);
        let is_jit = matches!(answer, Loads::Jit(_));
        floor.is_some_and(|floor| driver < floor)
            || is_jit && card.ptx_isa.is_some_and(|known| toolkit.ptx_isa > known)
    };
    let first = facts.toolkits().toolkit.iter().filter(knows).find(is_too_new)?.cuda;
    let reason = format!(
        "the CUDA version that compiles it is unknown, and driver {driver} does not run what CUDA {first} compiles"
    );
    case.applies("D2", format!("{}: CUDA {first} on driver {driver}", artifact.name));
    let evidence = vec![FindingEvidence::new(artifact.path.clone(), artifact.name.clone())];
    let fix = "check the program that was built, or update the driver";
    case.find(Severity::Warning, codes::BUILD_UNKNOWN, format!("{}: {reason}", artifact.name), evidence, fix);
    Some(Stop::unknown(reason))
}
