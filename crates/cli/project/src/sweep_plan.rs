//! The plan of the sweep that a project describes.

use cudock_sweep::{Problem, SweepPlan};

use crate::{ManifestText, Project, ProjectError};

impl Project {
    /// Validates the section `[sweep]` and fills in what it does not set.
    pub fn sweep_plan(&self) -> Result<SweepPlan, ProjectError> {
        let Some(options) = &self.manifest.sweep else {
            let problem =
                "there is no `[sweep]` section: add one with `command`, `parameters` and `objectives`";
            return Err(self.text.key_error("sweep", problem, None));
        };
        let plan = options.resolve(self.name(), self.manifest.workload.image.clone());
        plan.map_err(|problem| locate(&self.text, problem))
    }
}

/// An error at the key, or at the innermost table around it that is in the file.
fn locate(text: &ManifestText, problem: Problem) -> ProjectError {
    let mut key = problem.key.as_str();
    if text.has(key) {
        return text.value_error(key, problem.message, None);
    }
    while let Some((table, _)) = key.rsplit_once('.') {
        key = table;
        if text.has(key) {
            break;
        }
    }
    text.key_error(key, problem.message, None)
}
