//! Checks whether the driver is new enough for the CUDA runtime of an artifact.

use cudock_facts::finding::Severity;
use cudock_facts::version::DriverVersion;

use super::ArtifactCase;
use crate::codes;
use crate::evidence::Runtime;
use crate::judge::libcuda::Driver;
use crate::judge::{Stop, seen};

impl ArtifactCase<'_, '_> {
    /// Whether the driver is new enough for the CUDA runtime.
    pub(super) fn runtime(&mut self, driver: &Driver) -> Result<(), Stop> {
        let (Some(runtime), Some(version)) = (&self.artifact.runtime, driver.version) else { return Ok(()) };
        let named = runtime.named();
        // A branch older than the tables has a CUDA older than they know.
        let own = driver.cuda;
        let has = own.map_or_else(String::new, |own| format!(" (CUDA {own})"));
        if own.is_some_and(|own| own.major() > runtime.major) {
            self.applies("D1", format!("CUDA {named} on driver {version}{has}"));
            return Ok(());
        }
        let floor = self.floor(runtime);
        let newer = runtime.version.filter(|runtime| own.is_none_or(|own| *runtime > own));
        let too_old = match floor {
            // Its own CUDA, or an older one of the major: that needs no floor.
            Some(floor) => version < floor && (newer.is_some() || runtime.version.is_none()),
            None => newer.is_some() || own.is_some_and(|own| own.major() < runtime.major),
        };
        let evidence = seen(runtime.path.clone(), format!("CUDA runtime {named}"));
        if too_old {
            let needed = floor.map_or_else(|| "a newer one".to_owned(), |floor| format!("{floor} or newer"));
            self.applies("D2", format!("CUDA {named} needs driver {needed}, {version} is older"));
            let reason = format!("driver {version}{has} is too old for CUDA {named}, which needs {needed}");
            let fix = self.artifact.build.as_ref().map_or_else(
                || format!("update the driver to {needed}, or build with a CUDA the driver has"),
                |build| build.fix_for_old_driver(self.case.facts, floor, self.case.target.driver),
            );
            let error = self.case.cuda_error(35);
            return Err(self.fail(codes::DRIVER_TOO_OLD, error, reason, evidence, fix));
        }
        let Some(newer) = newer else {
            self.applies("D2", format!("CUDA {named} on driver {version}"));
            return Ok(());
        };
        self.applies("D3", format!("CUDA {newer} on driver {version}{has}"));
        let message = format!(
            "{} brings CUDA {newer}, newer than the driver's{has}: machine code runs, PTX compiled at run time does not (error 222)",
            self.artifact.name
        );
        let fix = "nothing to do, unless it generates PTX at run time: then update the driver";
        self.case.find(Severity::Note, codes::RUNTIME_NEWER_THAN_DRIVER, message, evidence, fix);
        Ok(())
    }

    /// The lowest driver for a runtime: its major's floor, or before there were such, that of its
    /// toolkit; a framework may require more, never less.
    fn floor(&self, runtime: &Runtime) -> Option<DriverVersion> {
        let (facts, wsl) = (self.case.facts, self.case.target.traits.wsl);
        let row = facts.drivers().minor_compat(runtime.major);
        let of_major = row.and_then(|row| if wsl { row.min_windows } else { Some(row.min_linux) });
        let of_toolkit = || {
            let releases = facts.toolkits().releases_of(runtime.version?);
            releases.filter_map(|release| if wsl { release.min_windows } else { release.min_linux }).min()
        };
        of_major.or_else(of_toolkit).max(self.artifact.own_floor.filter(|_| !wsl))
    }
}
