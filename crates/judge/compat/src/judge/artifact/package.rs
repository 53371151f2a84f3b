//! Judges a package by its name, its CUDA version and its documentation.

use cudock_facts::tables::Toolkit;
use cudock_facts::version::Capability;

use super::ArtifactCase;
use crate::codes;
use crate::evidence::{PackageCode, Runtime};
use crate::judge::{Stop, other_error};
use cudock_host::Verdict;

/// Whether the toolkits of a CUDA version compile for a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compiles {
    /// All of them, or the one that is meant.
    Yes,
    /// None: they dropped it.
    Dropped,
    /// None, or only later ones: the GPU is newer. PTX may still run.
    NotYet,
}

impl ArtifactCase<'_, '_> {
    pub(super) fn package(&mut self, capability: Capability, code: &PackageCode) -> Result<Stop, Stop> {
        let artifact = self.artifact;
        let evidence = self.seen(&artifact.name);
        if let Some(lowest) = code.min_capability.filter(|lowest| capability < *lowest) {
            self.applies("R1", format!("documented for {lowest} and newer"));
            let reason =
                format!("it supports compute capability {lowest} and newer; the GPU has {capability}");
            let fix =
                format!("use a GPU with capability {lowest} or newer, or a package that supports this GPU");
            let error = other_error("unsupported GPU", reason.clone());
            return Err(self.fail(codes::CARD_NOT_SUPPORTED, error, reason, evidence, fix));
        }
        let runtime = artifact.runtime.as_ref();
        let cuda = runtime.map_or_else(String::new, Runtime::named);
        let knows_version = runtime.is_some_and(|runtime| runtime.version.is_some());
        let error = self.case.cuda_error(209);
        match runtime.and_then(|runtime| self.compiles(runtime, capability)) {
            Some(Compiles::Dropped) => {
                self.applies("R1", format!("CUDA {cuda} has no target for {capability}"));
                let reason =
                    format!("it is built for CUDA {cuda}, which no longer supports capability {capability}");
                let fix = "take its package for an older CUDA";
                Err(self.fail(codes::NO_CODE_FOR_GPU, error, reason, evidence, fix))
            }
            Some(Compiles::Yes) if code.compiles => {
                self.applies("S1", format!("CUDA {cuda} compiles for {capability}"));
                let reason = format!(
                    "it compiles its GPU code at run time, and CUDA {cuda} supports capability {capability}"
                );
                Ok(Stop::new(Verdict::Works, reason))
            }
            Some(Compiles::NotYet) if code.to_machine_code && knows_version => {
                self.applies("R1", format!("CUDA {cuda} does not know {capability}"));
                let reason = format!(
                    "it compiles machine code with CUDA {cuda}, which is older than capability {capability}"
                );
                let fix = "use a base image with a CUDA version that supports the GPU (`cudock facts arch`)";
                Err(self.fail(codes::NO_CODE_FOR_GPU, error, reason, evidence, fix))
            }
            Some(Compiles::NotYet) => {
                let reason =
                    format!("CUDA {cuda} is older than capability {capability}: only PTX in it could run");
                Err(self.unknown(codes::BUILD_UNKNOWN, reason, evidence, &code.fix))
            }
            _ => Err(self.unknown(codes::BUILD_UNKNOWN, &code.why, evidence, &code.fix)),
        }
    }

    fn compiles(&self, runtime: &Runtime, card: Capability) -> Option<Compiles> {
        let meant = |toolkit: &&Toolkit| match runtime.version {
            Some(version) => toolkit.cuda == version,
            None => toolkit.cuda.major() == runtime.major,
        };
        let toolkits: Vec<&Toolkit> = self.case.facts.toolkits().toolkit.iter().filter(meant).collect();
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
}
