//! What a user wants to run: `cudock.toml`, flags, model and image become one [`Workload`].
//!
//! A flag overrides the key of the same meaning. What neither gives is taken from the image, the model or a benchmark
//! report, and assumed where there is none; both are recorded with their source, so that users see what an answer rests on.
//! A value that cannot be used is refused with the name of its flag, or with the line and column of its key.
//!
//! Files and images are read first ([`resolve`]); everything after that is a pure function of what was read.

mod assumptions;
mod bench_report;
mod builder;
mod data;
mod flags;
mod inputs;
mod memory;
mod names;
mod needs;
mod serve;
mod start;
mod subject;
#[cfg(test)]
mod tests;
mod wishes;
mod work;

use std::sync::Arc;

use cudock_base::{ErrorKind, Report, UsageError};
use cudock_compat::{GatherError, OnRead};
use cudock_facts::Facts;
use cudock_facts::version::Date;
use cudock_http::Progress;
use cudock_plan::{Verdicts, Workload};
use cudock_project::Project;

use crate::builder::{Builder, flag_or_key};
pub use crate::flags::{ManagementFlag, WorkloadFlags};
use crate::inputs::Inputs;
use crate::subject::Inspection;

/// A workload, and where its image runs.
#[derive(Debug)]
pub struct Resolved {
    /// What is to be run.
    pub workload: Workload,
    /// Where its image runs, as far as that was inspected.
    pub verdicts: Verdicts,
}

/// Is told about images that are fetched and read.
pub struct Notify<'a> {
    /// About downloads.
    pub progress: Arc<dyn Progress>,
    /// Before an image is read.
    pub on_read: OnRead<'a>,
}

/// Why a workload cannot be told from file and flags.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// A value that cannot be used.
    #[error(transparent)]
    Usage(#[from] UsageError),
    /// The image or program cannot be inspected.
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

/// Resolves a project and flags, inspecting the image and the model that they name.
pub fn resolve(
    facts: &Facts,
    project: &Project,
    flags: &WorkloadFlags,
    today: Date,
    notify: &Notify<'_>,
) -> Result<Resolved, WorkloadError> {
    let inputs = Inputs::read(project, flags);
    let builder = Builder::new(facts, project, flags, &inputs, today);
    // Errors in file and flags are reported before an image is fetched.
    builder.clone().workload(&Inspection::default())?;
    let inspection = subject::inspect(facts, project, flags, today, notify)?;
    let workload = builder.workload(&inspection)?;
    Ok(Resolved { workload, verdicts: inspection.verdicts })
}

impl Builder<'_> {
    fn workload(mut self, inspection: &Inspection) -> Result<Workload, UsageError> {
        let work = self.work()?;
        let model = self.model()?;
        let gpu = self.gpu(model)?;
        let machine = self.machine(inspection)?;
        let data = self.data()?;
        let start = self.start(inspection, model);
        let spot = self.spot(&work)?;
        let wishes = self.wishes(&work)?;
        self.assumptions.extend(inspection.assumptions.iter().cloned());
        let begins = self.begins()?;
        Ok(Workload { work, gpu, machine, data, start, spot, wishes, begins, assumptions: self.assumptions })
    }

    /// The day the work begins. Sizes that were on sale in the past are no longer available.
    fn begins(&self) -> Result<Date, UsageError> {
        let given =
            flag_or_key(self.flags.begins, "--begins", self.file().workload.begins, "workload.begins");
        match given {
            Some((day, origin)) if day < self.today => {
                let problem = format!("{day} is in the past; today is {}", self.today);
                Err(self
                    .invalid(origin, problem, None)
                    .hint("leave it out to begin today, or name a later day"))
            }
            other => Ok(other.map_or(self.today, |(day, _)| day)),
        }
    }
}
