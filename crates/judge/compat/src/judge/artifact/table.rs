//! Judges code by its targets alone: builds in the tables, and programs whose compiler options are known.

use cudock_facts::tables::Toolkit;
use cudock_facts::version::{Capability, DriverVersion, PtxArch, PtxIsa, SmArch};

use super::ArtifactCase;
use super::gpu_code::CodeEvidence;
use crate::codes;
use crate::evidence::{ArtifactKind, Pattern};
use crate::judge::Stop;
use crate::judge::code::{self, Card, Loads};

impl ArtifactCase<'_, '_> {
    pub(super) fn by_table(
        &mut self,
        card: Card,
        driver: Option<DriverVersion>,
        (sass, ptx, isa): (&[SmArch], Option<&[PtxArch]>, Option<PtxIsa>),
    ) -> Result<Stop, Stop> {
        // An unknown PTX version is assumed to be one that the driver supports.
        let assumed = isa.or(card.ptx_isa).unwrap_or(PtxIsa::new(1, 0));
        let patterns = [Pattern {
            sass: sass.to_vec(),
            ptx: ptx.unwrap_or_default().iter().map(|code| (*code, assumed)).collect(),
            modules: 1,
            ..Pattern::default()
        }];
        let build = self.artifact.build.as_ref();
        let [pattern] = &patterns;
        let answer = code::loads(pattern, card, build.and_then(|build| build.cuda));
        if answer == Loads::Nothing && ptx.is_none() && !self.is_older_than_build(sass, card.capability) {
            let reason = format!(
                "no machine code for capability {}, and whether it has PTX is not in the tables",
                card.capability
            );
            let fix = build.map_or_else(String::new, |build| {
                build.fix_for_no_code(self.case.facts, &[card.capability], self.case.target.driver)
            });
            let evidence = self.seen("according to the tables");
            return Err(self.unknown(codes::BUILD_UNKNOWN, reason, evidence, fix));
        }
        if let Some(stop) = self.by_any_toolkit(card, driver, (sass, answer)) {
            return Err(stop);
        }
        let evidence = self.seen(format!("has {}, according to the tables", code::targets(&patterns)));
        self.conclude(card, (answer, &patterns), 209, CodeEvidence { evidence, part: None })
    }

    /// Whether a GPU is older than all those a build of torch was compiled for: its list of
    /// architectures adds PTX to a target that is in it, so PTX cannot run on such a GPU either.
    fn is_older_than_build(&self, sass: &[SmArch], card: Capability) -> bool {
        let is_torch = self.artifact.build.as_ref().is_some_and(|build| build.name == "torch");
        is_torch && !sass.is_empty() && sass.iter().all(|code| code.capability() > card)
    }

    /// A program whose compiler version is unknown: the verdict holds if it holds for every toolkit that supports its
    /// targets.
    fn by_any_toolkit(
        &mut self,
        card: Card,
        driver: Option<DriverVersion>,
        (sass, answer): (&[SmArch], Loads),
    ) -> Option<Stop> {
        let artifact = self.artifact;
        if artifact.kind != ArtifactKind::Program || artifact.runtime.is_some() || !answer.works() {
            return None;
        }
        let driver = driver?;
        let facts = self.case.facts;
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
        self.applies("D2", format!("CUDA {first} on driver {driver}"));
        let evidence = self.seen(&artifact.name);
        let fix = "check the program that was built, or update the driver";
        Some(self.unknown(codes::BUILD_UNKNOWN, reason, evidence, fix))
    }
}
