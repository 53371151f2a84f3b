//! Runs batches in a lane's memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cudock_base::lock;
use cudock_engine::{CancelBatch, EngineError, Extent, Lane, LaneMemory, OutputView, SharedLane};
use cudock_tensor::{DType, Signature};
use ort::session::Session;

use crate::cancel::Canceler;
use crate::cuda::CudaStream;
use crate::gpu::LaneGpu;
use crate::graph_capture::{block_capture, capture_failed, exclusive_capture, is_capturable};
use crate::memory_limit::is_out_of_memory;
use crate::ort_tensor::{self, OrtTensor, TensorNames};
use crate::run_plan::{RunPlan, RunPlanInputs, known_extent};

/// Maximum number of plans of a lane. Beyond that all are dropped: a model whose shapes vary that
/// much gains little from them.
const MAX_PLANS: usize = 512;
/// Maximum number of CUDA graphs of a lane: each keeps device memory.
const MAX_GRAPHS: u32 = 64;

/// Immutable data that all lanes of a model share.
pub(crate) struct LoadedModel {
    pub(crate) signature: Arc<Signature>,
    pub(crate) names: TensorNames,
    /// Row counts that are captured as CUDA graphs.
    pub(crate) graphs: Vec<usize>,
}

/// A session, which runs one batch at a time, and its stream if we own it.
pub(crate) struct SharedSession {
    pub(crate) session: Mutex<Session>,
    pub(crate) stream: Option<CudaStream>,
}

/// A lane's memory and everything needed to run its batches.
pub(crate) struct Runner {
    model: Arc<LoadedModel>,
    session: Arc<SharedSession>,
    memory: LaneMemory,
    /// Whether each output's shape is as declared; an output for which it once was not is not trusted again.
    has_known_shape: Vec<bool>,
    plans: HashMap<Vec<usize>, RunPlan>,
    gpu: Option<LaneGpu>,
    /// First graph id of this lane.
    first_graph_id: u32,
    captured_graphs: u32,
    canceler: Canceler,
}

impl Runner {
    pub(crate) fn new(
        number: u32,
        model: Arc<LoadedModel>,
        session: Arc<SharedSession>,
        memory: LaneMemory,
        gpu: Option<LaneGpu>,
    ) -> Self {
        Self {
            has_known_shape: vec![true; memory.outputs.len()],
            plans: HashMap::new(),
            first_graph_id: number.saturating_mul(MAX_GRAPHS) + 1,
            captured_graphs: 0,
            canceler: Canceler::default(),
            model,
            session,
            memory,
            gpu,
        }
    }

    fn attempt(&mut self) -> Result<(), EngineError> {
        self.normalize_bools();
        let key: Vec<usize> = self
            .memory
            .batch
            .iter()
            .flat_map(|extent| std::iter::once(extent.shape.len()).chain(extent.shape.iter().copied()))
            .collect();
        let has_strings = self.model.signature.inputs.iter().any(|spec| spec.dtype == DType::String);
        let known = self.plans.remove(&key);
        let mut plan = {
            let _held = block_capture();
            known.map_or_else(|| self.plan(), Ok)?
        };
        let will_capture = plan.will_capture();
        let result = if will_capture {
            let _alone = exclusive_capture();
            self.run_plan(&plan).map_err(|error| capture_failed(&error))
        } else {
            let _held = block_capture();
            self.run_plan(&plan)
        };
        if will_capture && result.is_ok() {
            plan.captured_by = Some(std::thread::current().id());
        }
        if !has_strings {
            if self.plans.len() >= MAX_PLANS {
                self.plans.retain(|_, plan| plan.captured);
            }
            self.plans.insert(key, plan);
        }
        result
    }

    fn run_plan(&mut self, plan: &RunPlan) -> Result<(), EngineError> {
        if let Some(gpu) = &self.gpu {
            gpu.gpu.enter().map_err(EngineError::Failed)?;
        }
        self.copy_in(plan)?;
        let made = {
            let mut session = lock(&self.session.session);
            let streams = plan.buffers.as_ref().and(self.gpu.as_ref()).zip(self.session.stream.as_ref());
            if let Some((gpu, stream)) = streams {
                stream.wait_for(&gpu.stream).map_err(EngineError::Failed)?;
            }
            let run = || {
                ort_tensor::run(&mut session, &plan.options, &self.model.names, &plan.inputs, &plan.outputs)
            };
            let made = self.canceler.run(&plan.options, run).map_err(EngineError::Failed)?;
            if let Some((gpu, stream)) = streams {
                gpu.stream.wait_for(stream).map_err(EngineError::Failed)?;
            }
            made
        };
        self.copy_out(plan)?;
        for (index, (value, known_extent)) in made.into_iter().zip(&plan.outputs).enumerate() {
            match value {
                Some(value) => self.store_output(index, &value)?,
                None if known_extent.is_some() => {}
                None => {
                    return Err(EngineError::Failed(format!("output {index} of the model has no value")));
                }
            }
        }
        Ok(())
    }

    fn copy_in(&self, plan: &RunPlan) -> Result<(), EngineError> {
        let (Some(buffers), Some(gpu)) = (&plan.buffers, &self.gpu) else { return Ok(()) };
        for ((buffer, memory), extent) in
            buffers.inputs.iter().zip(&self.memory.inputs).zip(&self.memory.batch)
        {
            if let Some(buffer) = buffer {
                gpu.stream.copy_in(&memory.mapping(), buffer, extent.bytes).map_err(EngineError::Failed)?;
            }
        }
        Ok(())
    }

    fn copy_out(&mut self, plan: &RunPlan) -> Result<(), EngineError> {
        for (result, extent) in self.memory.results.iter_mut().zip(&plan.extents) {
            if let Some(extent) = extent {
                result.clone_from(extent);
            }
        }
        let (Some(buffers), Some(gpu)) = (&plan.buffers, &self.gpu) else { return Ok(()) };
        for ((buffer, memory), result) in
            buffers.outputs.iter().zip(&self.memory.outputs).zip(&self.memory.results)
        {
            if let Some(buffer) = buffer {
                gpu.stream.copy_out(buffer, &memory.mapping(), result.bytes).map_err(EngineError::Failed)?;
            }
        }
        gpu.stream.finish().map_err(EngineError::Failed)
    }

    /// Copies an output that the engine allocated into the lane's memory.
    fn store_output(&mut self, index: usize, value: &OrtTensor) -> Result<(), EngineError> {
        let dtype = self.model.signature.outputs.get(index).map_or(DType::F32, |spec| spec.dtype);
        let shape = value.shape().map_err(EngineError::Failed)?;
        let strings;
        let data = if dtype == DType::String {
            strings = value.string_bytes().map_err(EngineError::Failed)?;
            &strings
        } else {
            value.host_bytes(dtype).map_err(EngineError::Failed)?
        };
        let has_moved = self.memory.write_output(index, shape, data)?;
        self.after_growth(has_moved, self.memory.inputs.len() + index);
        Ok(())
    }

    fn plan(&mut self) -> Result<RunPlan, EngineError> {
        let batched = self.model.signature.batched;
        let rows = self.memory.batch.first().and_then(|extent| extent.shape.first()).copied().unwrap_or(1);
        let extents: Vec<Option<Extent>> = self
            .model
            .signature
            .outputs
            .iter()
            .zip(&self.has_known_shape)
            .map(|(spec, has_known_shape)| known_extent(spec, batched, rows).filter(|_| *has_known_shape))
            .collect();
        for (index, extent) in extents.iter().enumerate() {
            let has_moved =
                self.memory.grow_output(index, extent.as_ref().map_or(0, |extent| extent.bytes))?;
            self.after_growth(has_moved, self.memory.inputs.len() + index);
        }
        let wanted = batched
            && self.model.graphs.contains(&rows)
            && is_capturable(&self.model.signature, &self.memory.batch);
        let graph_id =
            (wanted && self.captured_graphs < MAX_GRAPHS).then(|| self.first_graph_id + self.captured_graphs);
        let model = Arc::clone(&self.model);
        let parts = RunPlanInputs {
            signature: &model.signature,
            inputs: &self.memory.inputs,
            outputs: &self.memory.outputs,
            batch: &self.memory.batch,
            extents,
            graph_id,
            uses_graphs: !model.graphs.is_empty(),
        };
        let plan = match &mut self.gpu {
            Some(gpu) if self.session.stream.is_some() => RunPlan::on_device(parts, gpu),
            _ => RunPlan::on_host(parts),
        }
        .map_err(EngineError::Failed)?;
        self.captured_graphs += u32::from(plan.captured);
        Ok(plan)
    }

    /// The error of a batch that failed with this text.
    fn classify(&mut self, text: String) -> EngineError {
        if let Some(gpu) = &self.gpu
            && let Some(broken) = gpu.stream.finish().err().or_else(|| gpu.stream.sticky_error())
        {
            return EngineError::Died(format!("{text}; {broken}"));
        }
        if !is_out_of_memory(&text) {
            return EngineError::Failed(text);
        }
        // The batch will be run again in parts, which need no more than their own memory.
        self.plans.retain(|_, plan| plan.captured);
        if let Some(gpu) = &mut self.gpu {
            gpu.release_buffers();
        }
        EngineError::DeviceMemory(text)
    }

    /// Any nonzero byte is true, but C++ requires 1.
    fn normalize_bools(&mut self) {
        for ((spec, extent), memory) in
            self.model.signature.inputs.iter().zip(&self.memory.batch).zip(&mut self.memory.inputs)
        {
            if spec.dtype == DType::Bool
                && let Some(bytes) = memory.bytes_mut().get_mut(..extent.bytes)
            {
                for byte in bytes {
                    *byte = u8::from(*byte != 0);
                }
            }
        }
    }

    /// Drops everything that refers to a tensor's old address. Plans on the device do not contain it.
    fn after_growth(&mut self, has_moved: bool, tensor: usize) {
        if !has_moved {
            return;
        }
        self.plans.retain(|_, plan| plan.buffers.is_some());
        let memory = self.memory.inputs.iter().chain(&self.memory.outputs).nth(tensor);
        if let (Some(gpu), Some(memory)) = (&mut self.gpu, memory) {
            gpu.pin(tensor, memory);
        }
    }
}

impl SharedLane for Runner {
    fn accept(&mut self, index: usize, shape: &[usize], bytes: usize) -> Result<(), EngineError> {
        let has_moved = self.memory.follow_input(index, shape, bytes)?;
        self.after_growth(has_moved, index);
        Ok(())
    }

    fn run_batch(&mut self, batch: u64) -> Result<&[Extent], EngineError> {
        self.canceler.begin(batch);
        let result = match self.attempt() {
            Err(EngineError::Failed(text))
                if is_about_output_shapes(&text) && self.has_known_shape.contains(&true) =>
            {
                self.has_known_shape.fill(false);
                self.plans.clear();
                self.attempt()
            }
            result => result,
        };
        match result {
            Err(EngineError::Failed(text)) => Err(self.classify(text)),
            result => result.map(|()| self.memory.results.as_slice()),
        }
    }

    fn canceler(&self) -> CancelBatch {
        let canceler = self.canceler.clone();
        Box::new(move |batch| canceler.cancel(batch))
    }
}

impl Lane for Runner {
    fn input(&mut self, index: usize, shape: &[usize], bytes: usize) -> Result<&mut [u8], EngineError> {
        let has_moved = self.memory.grow_input(index, shape, bytes)?;
        self.after_growth(has_moved, index);
        Ok(self.memory.input_mut(index))
    }

    fn run_while(
        &mut self,
        _limit: Duration,
        _is_wanted: &dyn Fn() -> bool,
    ) -> Result<Vec<OutputView<'_>>, EngineError> {
        // These runs are never canceled.
        self.run_batch(1)?;
        self.memory.output_views()
    }
}

/// Whether the engine failed because an output has another shape than declared. The engine has no error code for it,
/// only text.
fn is_about_output_shapes(text: &str) -> bool {
    text.contains("The output OrtValue provided for output") || text.contains("shape verification failed")
}
