//! From the section `[sweep]` to a plan.

use super::early_termination::EarlyTermination;
use super::options::SweepOptions;
use super::parameters;
use super::plan::SweepPlan;
use crate::config::choice::{Choice, foreign_key};
use crate::config::keys::{Keys, TRIALS};
use crate::config::problem::Problem;
use crate::sampler::{STARTUP_TRIALS, SamplerKind};

impl SweepOptions {
    /// Validates the section and fills in what it does not set. `name` is that of the project, and `image` that of the
    /// trials unless the section has one.
    pub fn resolve(&self, name: String, image: Option<String>) -> Result<SweepPlan, Problem> {
        let plan = SweepPlan {
            name,
            command: self.command.clone(),
            image: self.image.clone().or(image),
            space: parameters::space(&self.parameters)?,
            machine: parameters::machine(&self.parameters)?,
            pass: self.pass.unwrap_or_default(),
            metrics: self.metrics.source()?,
            sampler: self.sampler()?,
            seed: self.seed.unwrap_or(0),
            policy: self.early_termination.as_ref().map(EarlyTermination::policy).transpose()?,
            limits: self.limits,
            gpus_per_trial: self.gpus_per_trial.unwrap_or(1),
            trials_per_gpu: self.trials_per_gpu.unwrap_or(1),
            gpu_memory: self.gpu_memory.map(|size| size.0),
            retries: self.retries.unwrap_or(1),
            objectives: self.objectives.clone(),
        };
        plan.validate().map(|()| plan)
    }

    fn sampler(&self) -> Result<SamplerKind, Problem> {
        let mut keys = Keys::default();
        for (key, value) in [(STARTUP_TRIALS, self.startup_trials), (TRIALS, self.limits.trials)] {
            if let Some(value) = value {
                keys.set(key, value.into());
            }
        }
        let name = self.sampler.map_or("random", Choice::name);
        if let Some((key, users)) = foreign_key::<SamplerKind>(name, &keys) {
            let users: Vec<String> = users.iter().map(|name| format!("\"{name}\"")).collect();
            let message = format!(
                "`{key}` is for `sampler = {}`: remove it, or change the sampler",
                users.join(" or ")
            );
            return Err(Problem::new(key, message));
        }
        self.sampler.map_or(Ok(SamplerKind::Random), |sampler| sampler.read(&keys))
    }
}
