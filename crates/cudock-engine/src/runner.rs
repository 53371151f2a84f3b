//! Runs batches in a lane's memory.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cudock_map::SharedMemory;
use cudock_tensor::{DType, Signature, elements};
use ort::session::Session;

use crate::cancel::Canceler;
use crate::cuda::CudaStream;
use crate::gpu::LaneGpu;
use crate::graph_capture::{block_capture, capture_failed, exclusive_capture, is_capturable};
use crate::ort_tensor::{OrtTensor, TensorNames};
use crate::run_plan::{Extent, RunPlan, RunPlanInputs, known_extent};
use crate::{EngineError, Lane, OutputView, ort_tensor};

/// Most plans of a lane. Beyond that all are dropped: a model whose shapes vary that much gains little from them.
const MAX_PLANS: usize = 512;
/// Most CUDA graphs of a lane: each keeps device memory.
const MAX_GRAPHS: u32 = 64;

/// Immutable data that all lanes of a model share.
pub(crate) struct LoadedModel {
    pub(crate) signature: Signature,
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
    inputs: Vec<SharedMemory>,
    outputs: Vec<SharedMemory>,
    batch: Vec<Extent>,
    results: Vec<Extent>,
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
    /// Creates a lane over existing or empty memory.
    pub(crate) fn new(
        number: u32,
        model: Arc<LoadedModel>,
        session: Arc<SharedSession>,
        inputs: Vec<SharedMemory>,
        outputs: Vec<SharedMemory>,
        gpu: Option<LaneGpu>,
    ) -> Self {
        Self {
            batch: vec![Extent::default(); inputs.len()],
            results: vec![Extent::default(); outputs.len()],
            has_known_shape: vec![true; outputs.len()],
            plans: HashMap::new(),
            first_graph_id: number.saturating_mul(MAX_GRAPHS) + 1,
            captured_graphs: 0,
            canceler: Canceler::default(),
            model,
            session,
            inputs,
            outputs,
            gpu,
        }
    }

    /// Accepts an input of the next batch that the other side has written to its memory.
    pub(crate) fn accept(&mut self, index: usize, shape: &[usize], bytes: usize) -> Result<(), EngineError> {
        self.set_extent(index, shape, bytes)?;
        let memory = self.inputs.get_mut(index).ok_or_else(|| no_input(index))?;
        let on_moved = memory.follow(bytes).map_err(|source| EngineError::OutOfMemory(bytes, source))?;
        self.on_moved(on_moved, index);
        Ok(())
    }

    /// Cancels batches of this lane.
    pub(crate) fn canceler(&self) -> Canceler {
        self.canceler.clone()
    }

    /// Runs the batch; the outputs are in [`Runner::results`].
    pub(crate) fn run_batch(&mut self) -> Result<(), EngineError> {
        self.canceler.next_batch();
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
        match (result, &self.gpu) {
            (Err(EngineError::Failed(text)), Some(gpu)) => {
                Err(match gpu.finish().err().or_else(|| gpu.sticky_error()) {
                    Some(broken) => EngineError::Died(format!("{text}; {broken}")),
                    None => EngineError::Failed(text),
                })
            }
            (result, _) => result,
        }
    }

    /// Number of inputs.
    pub(crate) fn input_count(&self) -> usize {
        self.inputs.len()
    }

    /// Extents of the last batch's outputs.
    pub(crate) fn results(&self) -> &[Extent] {
        &self.results
    }

    fn attempt(&mut self) -> Result<(), EngineError> {
        self.normalize_bools();
        let key: Vec<usize> = self
            .batch
            .iter()
            .flat_map(|extent| std::iter::once(extent.shape.len()).chain(extent.shape.iter().copied()))
            .collect();
        let has_strings = self.model.signature.inputs.iter().any(|spec| spec.dtype == DType::String);
        let known = self.plans.remove(&key);
        let (mut plan, will_capture) = {
            let _held = block_capture();
            let plan = known.map_or_else(|| self.plan(), Ok)?;
            let will_capture = plan.will_capture();
            (plan, will_capture)
        };
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
            gpu.enter().map_err(failed)?;
        }
        self.copy_in(plan)?;
        let made = {
            let mut session = self.session.session.lock().unwrap_or_else(PoisonError::into_inner);
            let streams = plan.buffers.as_ref().and(self.gpu.as_ref()).zip(self.session.stream.as_ref());
            if let Some((gpu, stream)) = streams {
                gpu.before_work(stream).map_err(failed)?;
            }
            let run = || {
                ort_tensor::run(&mut session, &plan.options, &self.model.names, &plan.inputs, &plan.outputs)
            };
            let made = self.canceler.run(&plan.options, run).map_err(EngineError::Failed)?;
            if let Some((gpu, stream)) = streams {
                gpu.after_work(stream).map_err(failed)?;
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
        for ((buffer, memory), extent) in buffers.inputs.iter().zip(&self.inputs).zip(&self.batch) {
            if let Some(buffer) = buffer {
                gpu.copy_in(&memory.mapping(), buffer, extent.bytes).map_err(failed)?;
            }
        }
        Ok(())
    }

    fn copy_out(&mut self, plan: &RunPlan) -> Result<(), EngineError> {
        for (result, extent) in self.results.iter_mut().zip(&plan.extents) {
            if let Some(extent) = extent {
                result.clone_from(extent);
            }
        }
        let (Some(buffers), Some(gpu)) = (&plan.buffers, &self.gpu) else { return Ok(()) };
        for ((buffer, memory), result) in buffers.outputs.iter().zip(&self.outputs).zip(&self.results) {
            if let Some(buffer) = buffer {
                gpu.copy_out(buffer, &memory.mapping(), result.bytes).map_err(failed)?;
            }
        }
        gpu.finish().map_err(failed)
    }

    /// Copies an output that the engine allocated into the lane's memory.
    fn store_output(&mut self, index: usize, value: &OrtTensor) -> Result<(), EngineError> {
        let dtype =
            self.model.signature.outputs.get(index).map(|spec| spec.dtype).ok_or_else(|| no_output(index))?;
        let shape = value.shape().map_err(EngineError::Failed)?;
        let strings;
        let data = if dtype == DType::String {
            strings = value.string_bytes().map_err(EngineError::Failed)?;
            &strings
        } else {
            value.host_bytes(dtype).map_err(EngineError::Failed)?
        };
        self.grow_output(index, data.len())?;
        let room = self.outputs.get_mut(index).and_then(|memory| memory.bytes_mut().get_mut(..data.len()));
        room.ok_or_else(|| no_output(index))?.copy_from_slice(data);
        if let Some(result) = self.results.get_mut(index) {
            *result = Extent { shape, bytes: data.len() };
        }
        Ok(())
    }

    fn plan(&mut self) -> Result<RunPlan, EngineError> {
        let batched = self.model.signature.batched;
        let rows = self.batch.first().and_then(|extent| extent.shape.first()).copied().unwrap_or(1);
        let extents: Vec<Option<Extent>> = self
            .model
            .signature
            .outputs
            .iter()
            .zip(&self.has_known_shape)
            .map(|(spec, has_known_shape)| known_extent(spec, batched, rows).filter(|_| *has_known_shape))
            .collect();
        for (index, extent) in extents.iter().enumerate() {
            self.grow_output(index, extent.as_ref().map_or(0, |extent| extent.bytes))?;
        }
        let wanted =
            batched && self.model.graphs.contains(&rows) && is_capturable(&self.model.signature, &self.batch);
        let graph_id =
            (wanted && self.captured_graphs < MAX_GRAPHS).then(|| self.first_graph_id + self.captured_graphs);
        let model = Arc::clone(&self.model);
        let parts = RunPlanInputs {
            signature: &model.signature,
            inputs: &self.inputs,
            outputs: &self.outputs,
            batch: &self.batch,
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

    /// Any nonzero byte is true, but C++ requires 1.
    fn normalize_bools(&mut self) {
        for ((spec, extent), memory) in
            self.model.signature.inputs.iter().zip(&self.batch).zip(&mut self.inputs)
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

    fn set_extent(&mut self, index: usize, shape: &[usize], bytes: usize) -> Result<(), EngineError> {
        let spec = self.model.signature.inputs.get(index).ok_or_else(|| no_input(index))?;
        let expected = spec.dtype.size().and_then(|size| elements(shape)?.checked_mul(size));
        if expected.is_some_and(|expected| expected != bytes)
            || (expected.is_none() && spec.dtype != DType::String)
        {
            let text = format!("input {:?}: {} {shape:?} does not have {bytes} bytes", spec.name, spec.dtype);
            return Err(EngineError::Failed(text));
        }
        let extent = self.batch.get_mut(index).ok_or_else(|| no_input(index))?;
        extent.shape.clear();
        extent.shape.extend_from_slice(shape);
        extent.bytes = bytes;
        Ok(())
    }

    fn grow_output(&mut self, index: usize, bytes: usize) -> Result<(), EngineError> {
        let memory = self.outputs.get_mut(index).ok_or_else(|| no_output(index))?;
        let on_moved = memory.grow(bytes).map_err(|source| EngineError::OutOfMemory(bytes, source))?;
        self.on_moved(on_moved, self.inputs.len() + index);
        Ok(())
    }

    /// Drops everything that refers to a tensor's old address. Plans on the device do not contain it.
    fn on_moved(&mut self, on_moved: bool, tensor: usize) {
        if !on_moved {
            return;
        }
        self.plans.retain(|_, plan| plan.buffers.is_some());
        let memory =
            self.inputs.get(tensor).or_else(|| self.outputs.get(tensor.checked_sub(self.inputs.len())?));
        if let (Some(gpu), Some(memory)) = (&mut self.gpu, memory) {
            gpu.pin(tensor, memory);
        }
    }
}

impl Lane for Runner {
    fn input(&mut self, index: usize, shape: &[usize], bytes: usize) -> Result<&mut [u8], EngineError> {
        self.set_extent(index, shape, bytes)?;
        let memory = self.inputs.get_mut(index).ok_or_else(|| no_input(index))?;
        let on_moved = memory.grow(bytes).map_err(|source| EngineError::OutOfMemory(bytes, source))?;
        self.on_moved(on_moved, index);
        let room = self.inputs.get_mut(index).and_then(|memory| memory.bytes_mut().get_mut(..bytes));
        room.ok_or_else(|| no_input(index))
    }

    fn run_while(
        &mut self,
        _limit: Duration,
        _is_wanted: &dyn Fn() -> bool,
    ) -> Result<Vec<OutputView<'_>>, EngineError> {
        self.run_batch()?;
        views(&self.model.signature, &self.results, &self.outputs)
    }
}

/// The outputs of a batch in a lane's memory.
pub(crate) fn views<'lane>(
    signature: &Signature,
    results: &[Extent],
    memories: &'lane [SharedMemory],
) -> Result<Vec<OutputView<'lane>>, EngineError> {
    signature
        .outputs
        .iter()
        .zip(results)
        .zip(memories)
        .map(|((spec, result), memory)| {
            let data = memory.bytes().get(..result.bytes).ok_or_else(|| {
                let text = format!("output {:?} has {} bytes", spec.name, result.bytes);
                EngineError::OutOfMemory(result.bytes, io::Error::new(io::ErrorKind::InvalidData, text))
            })?;
            Ok(OutputView { dtype: spec.dtype, shape: result.shape.clone(), data })
        })
        .collect()
}

/// Whether the engine failed because an output has another shape than declared. The engine has no error code for it,
/// only text.
fn is_about_output_shapes(text: &str) -> bool {
    text.contains("The output OrtValue provided for output") || text.contains("shape verification failed")
}

fn failed(error: impl std::fmt::Display) -> EngineError {
    EngineError::Failed(error.to_string())
}

fn no_input(index: usize) -> EngineError {
    EngineError::Failed(format!("the model has no input {index}"))
}

fn no_output(index: usize) -> EngineError {
    EngineError::Failed(format!("the model has no output {index}"))
}
