//! From `cudock.toml` and flags to the workload that is planned for.
//!
//! A flag stands over the key of the same meaning. What neither says is taken from the image, the model or the report of
//! a measurement where there is one, and assumed where not; both are written down with where they come from, for the
//! user to see what a plan rests on. What cannot be is refused with the flag's name, or the key's line and column.

mod asking;
mod bench;
mod data;
mod flags;
mod memory;
mod names;
mod needs;
mod serve;
mod start;
#[cfg(test)]
mod tests;
mod wishes;
mod work;

use cudock_facts::Facts;
use cudock_facts::version::Date;
use cudock_plan::{Verdicts, Workload};
use cudock_project::Project;

use self::asking::{Asking, either};
pub(crate) use self::flags::PlanFlags;
use super::infer::{self, Inferred};
use crate::failure::Failure;

/// A question to the planner.
pub(super) struct Asked {
    /// What is to be done.
    pub(super) workload: Workload,
    /// Where its image runs, as far as that was looked at.
    pub(super) verdicts: Verdicts,
}

/// Reads file and flags, and looks at image and model.
pub(super) fn understand(
    facts: &Facts,
    project: &Project,
    flags: &PlanFlags,
    today: Date,
) -> Result<Asked, Failure> {
    let asking = Asking::new(facts, project, flags, today);
    // Cheap mistakes are told before anything is fetched.
    asking.clone().workload(&Inferred::default())?;
    let inferred = infer::subject(facts, project, flags, today)?;
    let workload = asking.workload(&inferred)?;
    Ok(Asked { workload, verdicts: inferred.verdicts })
}

impl Asking<'_> {
    fn workload(mut self, inferred: &Inferred) -> Result<Workload, Failure> {
        let work = self.work()?;
        let model = self.model()?;
        let gpu = self.gpu(model.as_ref())?;
        let machine = self.machine(inferred)?;
        let data = self.data()?;
        let start = self.start(inferred, model.as_ref());
        let spot = self.spot(&work)?;
        let wishes = self.wishes(&work)?;
        self.assumptions.extend(inferred.assumptions.iter().cloned());
        let begins = self.begins()?;
        Ok(Workload { work, gpu, machine, data, start, spot, wishes, begins, assumptions: self.assumptions })
    }
}

impl Asking<'_> {
    /// The day it begins. What was on sale in the past is no longer to be had.
    fn begins(&self) -> Result<Date, Failure> {
        let given = either(self.flags.begins, "--begins", self.file().workload.begins, "workload.begins");
        match given {
            Some((day, given)) if day < self.today => {
                let problem = format!("{day} is in the past; today is {}", self.today);
                Err(self.wrong(given, problem, None).hint("leave it out to begin today, or name a later day"))
            }
            other => Ok(other.map_or(self.today, |(day, _)| day)),
        }
    }
}
