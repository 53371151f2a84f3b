//! Combines `cudock.toml`, flags, model and image into one [`Workload`].
//!
//! A flag overrides the key with the same meaning. Values that neither gives are inferred from the image, the model or a
//! benchmark report, or else assumed; both are recorded with their source. An invalid value is reported with the name of
//! its flag, or with the line and column of its key.
//!
//! Files and images are read first ([`resolve`]); everything after that is a pure function of what was read.

mod assumptions;
mod bench_report;
mod builder;
mod constraints;
mod data;
mod inputs;
mod memory;
mod names;
mod needs;
mod origin;
mod serve;
mod start;
mod subject;
#[cfg(test)]
mod tests;
mod work;

use std::sync::Arc;

use cudock_base::{ErrorKind, Report, UsageError};
use cudock_compat::{GatherError, OnRead};
use cudock_facts::Facts;
use cudock_facts::version::Date;
use cudock_http::Progress;
use cudock_plan::{Verdicts, Workload};
use cudock_project::{Project, WorkloadFlags};

use crate::builder::{WorkloadBuilder, flag_or_key};
use crate::inputs::Inputs;
use crate::subject::Inspection;

#[derive(Debug)]
pub struct Resolved {
    pub workload: Workload,
    /// The verdicts on its image, as far as that was inspected.
    pub verdicts: Verdicts,
}

/// Receives progress about images that are fetched and read.
pub struct Notify<'a> {
    pub progress: Arc<dyn Progress>,
    /// Called before an image is read.
    pub on_read: OnRead<'a>,
}

#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    #[error(transparent)]
    Usage(#[from] UsageError),
    #[error(transparent)]
    Subject(#[from] GatherError),
}

impl Report for WorkloadError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Usage(error) => error.kind(),
            Self::Subject(error) => error.kind(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Usage(error) => error.hints(),
            Self::Subject(error) => error.hints(),
        }
    }
}

/// Resolves a project and flags, inspecting the image and the model.
pub fn resolve(
    facts: &Facts,
    project: &Project,
    flags: &WorkloadFlags,
    today: Date,
    notify: &Notify<'_>,
) -> Result<Resolved, WorkloadError> {
    let inputs = Inputs::read(project, flags);
    let builder = WorkloadBuilder::new(facts, project, flags, &inputs, today);
    // Errors in file and flags are reported before an image is fetched.
    builder.clone().workload(&Inspection::default())?;
    let inspection = subject::inspect(facts, project, flags, today, notify)?;
    let workload = builder.workload(&inspection)?;
    Ok(Resolved { workload, verdicts: inspection.verdicts })
}

impl WorkloadBuilder<'_> {
    fn workload(mut self, inspection: &Inspection) -> Result<Workload, UsageError> {
        let work = self.work()?;
        let model = self.model()?;
        let gpu = self.gpu(model)?;
        let machine = self.machine(inspection)?;
        let data = self.data()?;
        let start = self.start(inspection, model);
        let spot = self.spot(&work)?;
        let constraints = self.constraints(&work)?;
        self.assumptions.extend(inspection.assumptions.iter().cloned());
        let begins = self.begins()?;
        Ok(Workload {
            work,
            gpu,
            machine,
            data,
            start,
            spot,
            constraints,
            begins,
            assumptions: self.assumptions,
        })
    }

    /// The day the work begins. Sizes that were on sale in the past are no longer available.
    fn begins(&self) -> Result<Date, UsageError> {
        let given =
            flag_or_key(self.flags.begins, "--begins", self.file().workload.begins, "workload.begins");
        match given {
            Some((day, origin)) if day < self.today => {
                let problem = format!("{day} is in the past; today is {}", self.today);
                Err(self.invalid(origin, problem, None).hint("omit it to begin today, or name a later day"))
            }
            other => Ok(other.map_or(self.today, |(day, _)| day)),
        }
    }
}
