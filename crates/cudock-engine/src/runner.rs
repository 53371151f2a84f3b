//! Runs batches that lie in a lane's memory.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cudock_map::SharedMemory;
use cudock_tensor::{DType, Signature, elements};
use ort::session::Session;

use crate::cancel::Canceller;
use crate::cuda::Stream;
use crate::gpu::LaneGpu;
use crate::plan::{Extent, Parts, Plan, foreseen};
use crate::recording::{is_regular, nobody_else_runs, nobody_records, recording_failed};
use crate::value::{Names, Value};
use crate::{EngineError, Lane, OutputView, value};

/// Plans a lane keeps. Beyond that all are made anew: a model whose shapes vary that much gains little from them.
const PLANS: usize = 512;
/// Recordings a lane makes at most: each keeps device memory.
const RECORDINGS: u32 = 64;

/// What all lanes of a model share and nothing changes.
pub(crate) struct Model {
    pub(crate) signature: Signature,
    pub(crate) names: Names,
    /// Row counts whose launches are recorded.
    pub(crate) graphs: Vec<usize>,
}

/// A session, which runs one batch at a time, and the stream it works on if that is ours.
pub(crate) struct SharedSession {
    pub(crate) session: Mutex<Session>,
    pub(crate) stream: Option<Stream>,
}

/// A lane's memory and all that is needed to run what lies there.
pub(crate) struct Runner {
    model: Arc<Model>,
    session: Arc<SharedSession>,
    inputs: Vec<SharedMemory>,
    outputs: Vec<SharedMemory>,
    batch: Vec<Extent>,
    results: Vec<Extent>,
    /// Whether each output's shape is what the model says; one that once was not is never foreseen again.
    foreseeable: Vec<bool>,
    plans: HashMap<Vec<usize>, Plan>,
    gpu: Option<LaneGpu>,
    /// Recordings of this lane have numbers from here on.
    first_recording: u32,
    recordings: u32,
    canceller: Canceller,
}

impl Runner {
    /// A lane with that number, over memory that is there already or still to grow.
    pub(crate) fn new(
        number: u32,
        model: Arc<Model>,
        session: Arc<SharedSession>,
        inputs: Vec<SharedMemory>,
        outputs: Vec<SharedMemory>,
        gpu: Option<LaneGpu>,
    ) -> Self {
        Self {
            batch: vec![Extent::default(); inputs.len()],
            results: vec![Extent::default(); outputs.len()],
            foreseeable: vec![true; outputs.len()],
            plans: HashMap::new(),
            first_recording: number.saturating_mul(RECORDINGS) + 1,
            recordings: 0,
            canceller: Canceller::default(),
            model,
            session,
            inputs,
            outputs,
            gpu,
        }
    }

    /// Says that an input of the coming batch lies in its memory, where the other side wrote it.
    pub(crate) fn accept(&mut self, index: usize, shape: &[usize], bytes: usize) -> Result<(), EngineError> {
        self.set_extent(index, shape, bytes)?;
        let memory = self.inputs.get_mut(index).ok_or_else(|| no_input(index))?;
        let moved = memory.follow(bytes).map_err(|source| EngineError::Room(bytes, source))?;
        self.moved(moved, index);
        Ok(())
    }

    /// What stops batches of this lane.
    pub(crate) fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }

    /// Runs the batch; what came out is in [`Runner::results`].
    pub(crate) fn run_batch(&mut self) -> Result<(), EngineError> {
        self.canceller.next_batch();
        let outcome = match self.attempt() {
            Err(EngineError::Failed(text))
                if is_about_output_shapes(&text) && self.foreseeable.contains(&true) =>
            {
                self.foreseeable.fill(false);
                self.plans.clear();
                self.attempt()
            }
            outcome => outcome,
        };
        match (outcome, &self.gpu) {
            (Err(EngineError::Failed(text)), Some(gpu)) => {
                Err(match gpu.finish().err().or_else(|| gpu.broken()) {
                    Some(broken) => EngineError::Died(format!("{text}; {broken}")),
                    None => EngineError::Failed(text),
                })
            }
            (outcome, _) => outcome,
        }
    }

    /// How many inputs the model has.
    pub(crate) fn input_count(&self) -> usize {
        self.inputs.len()
    }

    /// What the last batch gave.
    pub(crate) fn results(&self) -> &[Extent] {
        &self.results
    }

    fn attempt(&mut self) -> Result<(), EngineError> {
        self.settle_bools();
        let key: Vec<usize> = self
            .batch
            .iter()
            .flat_map(|extent| std::iter::once(extent.shape.len()).chain(extent.shape.iter().copied()))
            .collect();
        let has_strings = self.model.signature.inputs.iter().any(|spec| spec.dtype == DType::String);
        let known = self.plans.remove(&key);
        let (mut plan, will_record) = {
            let _held = nobody_records();
            let plan = known.map_or_else(|| self.plan(), Ok)?;
            let will_record = plan.will_record();
            (plan, will_record)
        };
        let outcome = if will_record {
            let _alone = nobody_else_runs();
            self.run_plan(&plan).map_err(|error| recording_failed(&error))
        } else {
            let _held = nobody_records();
            self.run_plan(&plan)
        };
        if will_record && outcome.is_ok() {
            plan.recorded_by = Some(std::thread::current().id());
        }
        if !has_strings {
            if self.plans.len() >= PLANS {
                self.plans.retain(|_, plan| plan.recorded);
            }
            self.plans.insert(key, plan);
        }
        outcome
    }

    fn run_plan(&mut self, plan: &Plan) -> Result<(), EngineError> {
        if let Some(gpu) = &self.gpu {
            gpu.enter().map_err(failed)?;
        }
        self.copy_in(plan)?;
        let made = {
            let mut session = self.session.session.lock().unwrap_or_else(PoisonError::into_inner);
            let streams = plan.placed.as_ref().and(self.gpu.as_ref()).zip(self.session.stream.as_ref());
            if let Some((gpu, stream)) = streams {
                gpu.before_work(stream).map_err(failed)?;
            }
            let run =
                || value::run(&mut session, &plan.options, &self.model.names, &plan.inputs, &plan.outputs);
            let made = self.canceller.run(&plan.options, run).map_err(EngineError::Failed)?;
            if let Some((gpu, stream)) = streams {
                gpu.after_work(stream).map_err(failed)?;
            }
            made
        };
        self.copy_out(plan)?;
        for (index, (value, foreseen)) in made.into_iter().zip(&plan.outputs).enumerate() {
            match value {
                Some(value) => self.keep(index, &value)?,
                None if foreseen.is_some() => {}
                None => {
                    return Err(EngineError::Failed(format!(
                        "output {index} of the model came without a value"
                    )));
                }
            }
        }
        Ok(())
    }

    fn copy_in(&self, plan: &Plan) -> Result<(), EngineError> {
        let (Some(placed), Some(gpu)) = (&plan.placed, &self.gpu) else { return Ok(()) };
        for ((place, memory), extent) in placed.inputs.iter().zip(&self.inputs).zip(&self.batch) {
            if let Some(place) = place {
                gpu.copy_in(&memory.mapping(), place, extent.bytes).map_err(failed)?;
            }
        }
        Ok(())
    }

    fn copy_out(&mut self, plan: &Plan) -> Result<(), EngineError> {
        for (result, extent) in self.results.iter_mut().zip(&plan.extents) {
            if let Some(extent) = extent {
                result.clone_from(extent);
            }
        }
        let (Some(placed), Some(gpu)) = (&plan.placed, &self.gpu) else { return Ok(()) };
        for ((place, memory), result) in placed.outputs.iter().zip(&self.outputs).zip(&self.results) {
            if let Some(place) = place {
                gpu.copy_out(place, &memory.mapping(), result.bytes).map_err(failed)?;
            }
        }
        gpu.finish().map_err(failed)
    }

    /// Copies an output that the engine made into the lane's memory.
    fn keep(&mut self, index: usize, value: &Value) -> Result<(), EngineError> {
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

    fn plan(&mut self) -> Result<Plan, EngineError> {
        let batched = self.model.signature.batched;
        let rows = self.batch.first().and_then(|extent| extent.shape.first()).copied().unwrap_or(1);
        let extents: Vec<Option<Extent>> = self
            .model
            .signature
            .outputs
            .iter()
            .zip(&self.foreseeable)
            .map(|(spec, foreseeable)| foreseen(spec, batched, rows).filter(|_| *foreseeable))
            .collect();
        for (index, extent) in extents.iter().enumerate() {
            self.grow_output(index, extent.as_ref().map_or(0, |extent| extent.bytes))?;
        }
        let wanted =
            batched && self.model.graphs.contains(&rows) && is_regular(&self.model.signature, &self.batch);
        let recording =
            (wanted && self.recordings < RECORDINGS).then(|| self.first_recording + self.recordings);
        let model = Arc::clone(&self.model);
        let parts = Parts {
            signature: &model.signature,
            inputs: &self.inputs,
            outputs: &self.outputs,
            batch: &self.batch,
            extents,
            recording,
            records: !model.graphs.is_empty(),
        };
        let plan = match &mut self.gpu {
            Some(gpu) if self.session.stream.is_some() => Plan::on_device(parts, gpu),
            _ => Plan::on_host(parts),
        }
        .map_err(EngineError::Failed)?;
        self.recordings += u32::from(plan.recorded);
        Ok(plan)
    }

    /// A byte that is neither 0 nor 1 is true, too, but not to C++.
    fn settle_bools(&mut self) {
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
            let text = format!("input {:?}: {} {shape:?} does not take {bytes} bytes", spec.name, spec.dtype);
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
        let moved = memory.grow(bytes).map_err(|source| EngineError::Room(bytes, source))?;
        self.moved(moved, self.inputs.len() + index);
        Ok(())
    }

    /// Lets go of what was made for a tensor's old address. Plans on the device do not know that address.
    fn moved(&mut self, moved: bool, tensor: usize) {
        if !moved {
            return;
        }
        self.plans.retain(|_, plan| plan.placed.is_some());
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
        let moved = memory.grow(bytes).map_err(|source| EngineError::Room(bytes, source))?;
        self.moved(moved, index);
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

/// The outputs of a batch, as they lie in a lane's memory.
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
                EngineError::Room(result.bytes, io::Error::new(io::ErrorKind::InvalidData, text))
            })?;
            Ok(OutputView { dtype: spec.dtype, shape: result.shape.clone(), data })
        })
        .collect()
}

/// Whether the engine failed because an output was not as the model says. The engine has no code for it, only words.
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
