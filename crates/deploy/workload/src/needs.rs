//! The GPUs and the machine that a workload needs.

use std::collections::BTreeMap;

use cudock_base::UsageError;
use cudock_facts::version::Capability;
use cudock_model::Model;
use cudock_plan::{GpuNeeds, MachineNeeds};
use cudock_project::{ByteSize, CapabilityRange};

use crate::assumptions::assumptions;
use crate::builder::{WorkloadBuilder, flag_or_key, names_of};
use crate::origin::Origin;
use crate::subject::{Inspection, Processor};

impl WorkloadBuilder<'_> {
    pub(crate) fn gpu(&mut self, model: Option<&Model>) -> Result<GpuNeeds, UsageError> {
        let (flags, needs) = (self.flags, &self.file().needs);
        let models = self.gpus(names_of(&flags.gpu, "--gpu", &needs.gpu, "needs.gpu"))?;
        let per_instance = self.count(flag_or_key(flags.gpus, "--gpus", needs.gpus, "needs.gpus"))?;
        let instances = self.count(flag_or_key(flags.nodes, "--nodes", needs.nodes, "needs.nodes"))?;
        let range = self.capability()?;
        let measured_on = self.measured_gpu()?;
        let speeds = self.speeds(measured_on.is_some())?;
        let memory = self.gpu_memory(model, &models)?;
        Ok(GpuNeeds {
            memory,
            // One is not worth recording as an assumption.
            per_instance: per_instance.unwrap_or(1),
            instances: instances.unwrap_or(1),
            least_capability: range.least,
            greatest_capability: range.greatest,
            precision: needs.precision,
            models,
            nvlink: flags.nvlink || needs.nvlink == Some(true),
            infiniband: flags.infiniband || needs.infiniband == Some(true),
            measured_on,
            speeds,
        })
    }

    pub(crate) fn count(&self, given: Option<(u32, Origin)>) -> Result<Option<u32>, UsageError> {
        self.above_zero(given, "must be at least 1")
    }

    fn capability(&self) -> Result<CapabilityRange, UsageError> {
        let Some(text) = &self.flags.capability else {
            return Ok(self.file().needs.capability.unwrap_or_default());
        };
        let given = Origin::Flag("--capability");
        let one = |text: &str| -> Result<Capability, UsageError> {
            text.trim().parse().map_err(|error| self.invalid(given, error, None))
        };
        let range = match text.split_once('-') {
            None => CapabilityRange { least: Some(one(text)?), greatest: None },
            Some((least, greatest)) => {
                CapabilityRange { least: Some(one(least)?), greatest: Some(one(greatest)?) }
            }
        };
        if let (Some(least), Some(greatest)) = (range.least, range.greatest)
            && least > greatest
        {
            let problem = format!("no compute capability is at least {least} and at most {greatest}");
            return Err(self.invalid(given, problem, None));
        }
        Ok(range)
    }

    fn measured_gpu(&mut self) -> Result<Option<String>, UsageError> {
        let file = self.file().workload.measured_on.as_deref();
        if let Some((name, given)) =
            flag_or_key(self.flags.measured_on.as_deref(), "--measured-on", file, "workload.measured_on")
        {
            return self.one_gpu(name, given, None).map(Some);
        }
        if let Some(known) = self.measured_on.take() {
            return Ok(Some(known));
        }
        Ok(self.default(&assumptions().measured_on))
    }

    fn speeds(&self, measured: bool) -> Result<BTreeMap<String, u64>, UsageError> {
        let mut speeds = BTreeMap::new();
        for (name, speed) in &self.file().workload.speeds {
            let given = Origin::Key("workload.speeds");
            speeds.insert(self.one_gpu(name, given, Some(name))?, billionths(*speed));
        }
        for (name, text) in &self.flags.speed {
            let given = Origin::Flag("--speed");
            let speed: Option<f64> =
                text.parse().ok().filter(|speed: &f64| speed.is_finite() && *speed > 0.0);
            let problem = || format!("invalid speed `{text}`: expected a factor, such as {name}=2.8");
            let speed = speed.ok_or_else(|| self.invalid(given, problem(), None))?;
            if !measured {
                let problem = "needs the GPU that it is relative to: add --measured-on";
                return Err(self.invalid(given, problem, None));
            }
            speeds.insert(self.one_gpu(name, given, None)?, billionths(speed));
        }
        Ok(speeds)
    }

    pub(crate) fn machine(&mut self, inspection: &Inspection) -> Result<MachineNeeds, UsageError> {
        let needs = &self.file().needs;
        let vcpu = self.count(flag_or_key(self.flags.vcpu, "--vcpu", needs.cpu, "needs.cpu"))?;
        let memory = flag_or_key(self.flags.ram, "--ram", needs.memory, "needs.memory");
        let memory = memory.map_or(0, |(ByteSize(bytes), _)| bytes);
        let architecture = match (needs.architecture, &inspection.architecture) {
            (Some(given), _) => Some(given.into()),
            (None, Some(Processor::One(name))) => Some(name.clone()),
            (None, Some(Processor::Any)) => None,
            (None, None) => Some(self.default(&assumptions().architecture).into()),
        };
        Ok(MachineNeeds { vcpu: vcpu.unwrap_or(0), memory, architecture })
    }
}

/// Converts a speed to billionths, at least one.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped before")]
fn billionths(speed: f64) -> u64 {
    (speed * 1e9).round().clamp(1.0, 1e18) as u64
}
