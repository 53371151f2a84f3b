//! Building the image of a project.

use std::sync::Arc;

use cudock_base::Environment;
use cudock_build::{BuildRequest, text};
use cudock_facts::Facts;
use cudock_project::Project;

use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, line};
use crate::steps::progress::Lines;

/// Prints the report of a build. Returns [`Outcome::No`] if the image would not run.
pub(crate) fn report(built: &cudock_build::BuildReport, explain: bool, format: Format) -> Outcome {
    match format {
        Format::Json => output::report(built),
        Format::Text => text::lines(built, explain).iter().for_each(line),
    }
    if built.runs() { Outcome::Yes } else { Outcome::No }
}

/// The image of a project by its lock, for the targets that its file names.
pub(crate) fn request<'a>(
    project: &'a Project,
    lock: &'a cudock_lock::LockFile,
    facts: &'a Facts,
    environment: &'a Environment,
) -> Result<BuildRequest<'a>, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::outside(format!("cannot find cudock itself: {error}")))?;
    let (today, progress) = (output::today(), Arc::new(Lines::default()));
    let (targets, destination, compression) = (&[] as &[String], None, None);
    Ok(BuildRequest {
        project,
        lock,
        facts,
        environment,
        targets,
        destination,
        compression,
        program,
        explain: false,
        today,
        progress,
    })
}
