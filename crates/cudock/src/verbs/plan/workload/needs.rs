//! What is needed of GPUs and of the machine around them.

use std::collections::BTreeMap;

use cudock_facts::version::Capability;
use cudock_model::Model;
use cudock_plan::{GpuNeeds, MachineNeeds};
use cudock_project::{ByteSize, CapabilityRange};

use super::asking::{Asking, Given, either};
use super::wishes::thousandths;
use crate::failure::Failure;
use crate::verbs::plan::infer::Inferred;

impl Asking<'_> {
    pub(super) fn gpu(&mut self, model: Option<&Model>) -> Result<GpuNeeds, Failure> {
        let (flags, needs) = (self.flags, &self.file().needs);
        let models = match flags.gpu.as_slice() {
            [] => self.gpus(&needs.gpu, Given::Key("needs.gpu"))?,
            names => self.gpus(names, Given::Flag("--gpu"))?,
        };
        let per_instance = self.count(either(flags.gpus, "--gpus", needs.gpus, "needs.gpus"))?;
        let instances = self.count(either(flags.nodes, "--nodes", needs.nodes, "needs.nodes"))?;
        let range = self.capability()?;
        let measured_on = self.measured_gpu()?;
        let speeds = self.speeds(measured_on.is_some())?;
        let memory = self.gpu_memory(model, &models)?;
        Ok(GpuNeeds {
            memory,
            per_instance,
            instances,
            least_capability: range.least,
            greatest_capability: range.greatest,
            models,
            nvlink: flags.nvlink || needs.nvlink == Some(true),
            infiniband: flags.infiniband || needs.infiniband == Some(true),
            measured_on,
            speeds,
        })
    }

    /// One, if it is not given: no assumption worth telling.
    fn count(&self, given: Option<(u32, Given)>) -> Result<u32, Failure> {
        match given {
            Some((0, given)) => Err(self.wrong(given, "it is at least 1", None)),
            Some((count, _)) => Ok(count),
            None => Ok(1),
        }
    }

    fn capability(&self) -> Result<CapabilityRange, Failure> {
        let Some(text) = &self.flags.capability else {
            return Ok(self.file().needs.capability.unwrap_or_default());
        };
        let given = Given::Flag("--capability");
        let one = |text: &str| -> Result<Capability, Failure> {
            text.trim().parse().map_err(|error| self.wrong(given, error, None))
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
            let problem =
                format!("no GPU has a compute capability of at least {least} and at most {greatest}");
            return Err(self.wrong(given, problem, None));
        }
        Ok(range)
    }

    fn measured_gpu(&mut self) -> Result<Option<String>, Failure> {
        let file = self.file().workload.measured_on.as_deref();
        if let Some((name, given)) =
            either(self.flags.measured_on.as_deref(), "--measured-on", file, "workload.measured_on")
        {
            return self.one_gpu(name, given, None).map(Some);
        }
        if let Some(known) = self.measured_on.take() {
            return Ok(Some(known));
        }
        let source = "assumed; name the GPU that was measured with `measured_on` or --measured-on, and others are \
                      reckoned by their published throughput";
        self.assume("workload.measured_on", "times hold on any GPU", source);
        Ok(None)
    }

    fn speeds(&self, measured: bool) -> Result<BTreeMap<String, u64>, Failure> {
        let mut speeds = BTreeMap::new();
        for (name, speed) in &self.file().workload.speeds {
            let given = Given::Key("workload.speeds");
            speeds.insert(self.one_gpu(name, given, Some(name))?, thousandths(*speed).max(1));
        }
        for (name, text) in &self.flags.speed {
            let given = Given::Flag("--speed");
            let speed: Option<f64> =
                text.parse().ok().filter(|speed: &f64| speed.is_finite() && *speed > 0.0);
            let problem =
                || format!("`{text}` is no speed; write how many times as fast it is, as {name}=2.8");
            let speed = speed.ok_or_else(|| self.wrong(given, problem(), None))?;
            if !measured {
                let problem = "speeds are relative to a GPU: name it with --measured-on";
                return Err(self.wrong(given, problem, None));
            }
            speeds.insert(self.one_gpu(name, given, None)?, thousandths(speed).max(1));
        }
        Ok(speeds)
    }

    pub(super) fn machine(&mut self, inferred: &Inferred) -> Result<MachineNeeds, Failure> {
        let needs = &self.file().needs;
        let vcpu = match either(self.flags.vcpu, "--vcpu", needs.cpu, "needs.cpu") {
            Some((0, given)) => return Err(self.wrong(given, "it is at least 1", None)),
            given => given.map_or(0, |(count, _)| count),
        };
        let memory = either(self.flags.ram, "--ram", needs.memory, "needs.memory");
        let memory = memory.map_or(0, |(ByteSize(bytes), _)| bytes);
        let architecture = match (needs.architecture, &inferred.architecture) {
            (Some(given), _) => Some(given.name().to_owned()),
            (None, Some(known)) => known.clone(),
            (None, None) => {
                let source =
                    "assumed: what most images are made for; `architecture` in [needs] names another";
                self.assume("needs.architecture", "x86_64", source);
                Some("x86_64".to_owned())
            }
        };
        Ok(MachineNeeds { vcpu, memory, architecture })
    }
}
