//! An engine that doubles `F32[rows, 2]`, and fails on demand.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use cudock_engine::{DeviceInfo, Engine, EngineError, Lane, OutputView, Provider};
use cudock_tensor::{DType, Signature, TensorSpec};

/// A value whose batch waits until the test releases it.
pub(crate) const HELD: f32 = 555.0;
/// A value whose batch fails.
pub(crate) const POISON: f32 = 666.0;
/// A value whose batch kills the engine, but only the first one.
pub(crate) const FATAL: f32 = 777.0;
/// A value whose batch kills every engine.
pub(crate) const LETHAL: f32 = 888.0;
/// A value during whose batch somebody else kills every engine.
pub(crate) const TARGET: f32 = 999.0;

/// What a test controls of its engines.
#[derive(Default)]
pub(crate) struct EngineControl {
    is_released: Mutex<bool>,
    released: Condvar,
    held: AtomicUsize,
    pub(crate) starts: AtomicUsize,
    start_behavior: Mutex<StartBehavior>,
    start_changed: Condvar,
    running: AtomicUsize,
    most_running: AtomicUsize,
    /// Batches with as many rows or more do not fit into memory, if not zero.
    pub(crate) too_many_rows: AtomicUsize,
}

/// What engines do when they are started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum StartBehavior {
    #[default]
    Start,
    /// They wait until the behavior changes.
    Wait,
    Fail,
    /// They run on the CPU whatever is requested.
    WithoutGpu,
}

impl EngineControl {
    /// Number of batches that were or are held.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::SeqCst)
    }

    /// Lets held batches run.
    pub(crate) fn release(&self) {
        *self.is_released.lock().unwrap() = true;
        self.released.notify_all();
    }

    pub(crate) fn set_starts(&self, behavior: StartBehavior) {
        *self.start_behavior.lock().unwrap() = behavior;
        self.start_changed.notify_all();
    }

    /// Number of engines that run, and the most that have run at one time.
    pub(crate) fn running(&self) -> (usize, usize) {
        (self.running.load(Ordering::SeqCst), self.most_running.load(Ordering::SeqCst))
    }
}

pub(crate) struct DoublingEngine {
    signature: Signature,
    device: DeviceInfo,
    control: Arc<EngineControl>,
    number: usize,
}

impl DoublingEngine {
    pub(crate) fn start(control: &Arc<EngineControl>, requested: Provider) -> Result<Self, EngineError> {
        let behavior = control.start_behavior.lock().unwrap();
        let waits = |behavior: &mut StartBehavior| *behavior == StartBehavior::Wait;
        let behavior = *control.start_changed.wait_while(behavior, waits).unwrap();
        let number = control.starts.fetch_add(1, Ordering::SeqCst);
        if behavior == StartBehavior::Fail {
            return Err(EngineError::Failed("no engine today".to_owned()));
        }
        let provider = if behavior == StartBehavior::WithoutGpu { Provider::Cpu } else { requested };
        let running = control.running.fetch_add(1, Ordering::SeqCst) + 1;
        control.most_running.fetch_max(running, Ordering::SeqCst);
        let spec = |name: &str| TensorSpec::new(name, DType::F32, [None, Some(2)]);
        Ok(Self {
            signature: Signature { inputs: vec![spec("x")], outputs: vec![spec("y")], batched: true },
            device: DeviceInfo {
                provider,
                name: if provider.is_gpu() { "gpu" } else { "cpu" }.to_owned(),
                gpu: provider.is_gpu().then_some(0),
                skipped_providers: vec![(Provider::Cuda, "fell off the bus".to_owned())],
                notes: Vec::new(),
                engine: "doubling".to_owned(),
                precision: None,
            },
            control: Arc::clone(control),
            number,
        })
    }
}

impl Drop for DoublingEngine {
    fn drop(&mut self) {
        self.control.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Engine for DoublingEngine {
    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn device(&self) -> &DeviceInfo {
        &self.device
    }

    fn take_lanes(&mut self) -> Vec<Box<dyn Lane>> {
        let (input, output) = (Vec::new(), Vec::new());
        vec![Box::new(DoublingLane {
            input,
            output,
            control: Arc::clone(&self.control),
            number: self.number,
        })]
    }
}

struct DoublingLane {
    input: Vec<u8>,
    output: Vec<u8>,
    control: Arc<EngineControl>,
    number: usize,
}

impl Lane for DoublingLane {
    fn input(&mut self, _index: usize, _shape: &[usize], bytes: usize) -> Result<&mut [u8], EngineError> {
        self.input.resize(bytes, 0);
        Ok(&mut self.input)
    }

    fn run_while(
        &mut self,
        _limit: Duration,
        _is_wanted: &dyn Fn() -> bool,
    ) -> Result<Vec<OutputView<'_>>, EngineError> {
        let values: Vec<f32> =
            self.input.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect();
        if values.contains(&HELD) {
            self.control.held.fetch_add(1, Ordering::SeqCst);
            let is_released = self.control.is_released.lock().unwrap();
            drop(self.control.released.wait_while(is_released, |is_released| !*is_released).unwrap());
        }
        let too_many = self.control.too_many_rows.load(Ordering::SeqCst);
        if too_many > 0 && values.len() / 2 >= too_many {
            return Err(EngineError::DeviceMemory("no memory".to_owned()));
        }
        if values.contains(&POISON) {
            return Err(EngineError::Failed("poison".to_owned()));
        }
        if values.contains(&FATAL) && self.number == 0 || values.contains(&LETHAL) {
            return Err(EngineError::Died("fatal input".to_owned()));
        }
        if values.contains(&TARGET) {
            return Err(EngineError::Killed("signal 9".to_owned()));
        }
        self.output = values.iter().flat_map(|value| (value * 2.0).to_le_bytes()).collect();
        Ok(vec![OutputView { dtype: DType::F32, shape: vec![values.len() / 2, 2], data: &self.output }])
    }
}
