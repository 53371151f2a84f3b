//! An engine in a process of its own.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use cudock_map::SharedMemory;
use cudock_tensor::{DType, Signature, elements};

use crate::cancel::Cancel;
use crate::channel::{Answer, Packets, receive_message, send_descriptors, send_message};
use crate::onnx::room;
use crate::plan::Extent;
use crate::process::Process;
use crate::runner::views;
use crate::wire::{PACKET, Reply, read_reply, request};
use crate::{Device, Engine, EngineError, EngineSettings, ExitCheck, Lane, OutputView, Usage, usage};

/// The environment variable in which the engine's process finds CUDA's libraries.
const LIBRARY_PATH: &str = "LD_LIBRARY_PATH";

/// How often a batch that takes long is asked whether anybody still waits for it.
const ASK_WHETHER_WANTED: Duration = Duration::from_millis(50);

/// A model in a process of its own: whatever the engine's library does there, this process goes on.
pub struct IsolatedEngine {
    process: Arc<Process>,
    signature: Arc<Signature>,
    device: Device,
    lanes: Vec<IsolatedLane>,
}

impl IsolatedEngine {
    /// Starts `command`, which must call [`crate::serve_child`], and has it load the model within the limit.
    ///
    /// The command's standard input is taken for the control stream and its standard output closed; it gets a process
    /// group of its own, so that an interrupt typed at the terminal reaches the server alone.
    pub fn start(
        settings: &EngineSettings,
        mut command: Command,
        limit: Duration,
    ) -> Result<Self, EngineError> {
        let wrong = |reason: String| EngineError::Load { model: settings.model.clone(), reason };
        let failed = |error: io::Error| wrong(format!("the engine's process cannot be started: {error}"));
        let (mut control, theirs) = UnixStream::pair().map_err(failed)?;
        command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::null()).process_group(0);
        if let Some(path) = library_path(settings) {
            command.env(LIBRARY_PATH, path);
        }
        let child = command.spawn().map_err(failed)?;
        drop(command);
        let process = Process::new(child, control.try_clone().map_err(failed)?);
        control.set_read_timeout(Some(limit.max(Duration::from_millis(1)))).map_err(failed)?;
        let answer = send_message(&mut control, settings).and_then(|()| receive_message(&mut control));
        let (signature, device) = match answer {
            Ok(Answer::Ready { signature, device }) => (Arc::new(signature), device),
            Ok(Answer::Load { reason }) => return Err(wrong(reason)),
            Ok(Answer::Library { reason }) => {
                return Err(EngineError::Library { library: settings.library.clone(), reason });
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                process.stop("it took too long to load");
                return Err(wrong(format!("it was not loaded within {} s", limit.as_secs_f32())));
            }
            Err(_) => return Err(wrong(format!("the engine died while loading ({})", process.ended()))),
        };
        let process = Arc::new(process);
        let lanes = (0..settings.lanes.max(1))
            .map(|number| {
                IsolatedLane::open(number, &process, &signature, &control, device.provider.on_gpu())
            })
            .collect::<io::Result<_>>()
            .map_err(failed)?;
        Ok(Self { process, signature, device, lanes })
    }
}

impl Engine for IsolatedEngine {
    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn device(&self) -> &Device {
        &self.device
    }

    fn take_lanes(&mut self) -> Vec<Box<dyn Lane>> {
        std::mem::take(&mut self.lanes).into_iter().map(|lane| Box::new(lane) as Box<dyn Lane>).collect()
    }

    fn usage(&self) -> Usage {
        usage::of_process(self.process.number())
    }

    fn process(&self) -> Option<u32> {
        Some(self.process.number())
    }

    fn exit_check(&self) -> Option<ExitCheck> {
        let process = Arc::clone(&self.process);
        Some(Box::new(move || process.has_exited()))
    }
}

/// Where the engine's process looks for libraries: the folders in the settings before those of this process.
fn library_path(settings: &EngineSettings) -> Option<OsString> {
    if settings.library_path.is_empty() {
        return None;
    }
    let inherited = std::env::var_os(LIBRARY_PATH).unwrap_or_default();
    let inherited = std::env::split_paths(&inherited).filter(|folder| !folder.as_os_str().is_empty());
    std::env::join_paths(settings.library_path.iter().cloned().chain(inherited)).ok()
}

/// Memory that a lane keeps for its next batch.
const KEPT: usize = 8 << 20;

struct IsolatedLane {
    number: usize,
    /// Batches that were sent.
    batches: u64,
    /// Whether the device reads the lane's memory by itself; such memory must stay where it is.
    on_gpu: bool,
    process: Arc<Process>,
    signature: Arc<Signature>,
    packets: Packets,
    inputs: Vec<SharedMemory>,
    outputs: Vec<SharedMemory>,
    batch: Vec<Extent>,
    results: Vec<Extent>,
    request: Vec<u8>,
    reply: Box<[u8]>,
}

impl IsolatedLane {
    fn open(
        number: usize,
        process: &Arc<Process>,
        signature: &Arc<Signature>,
        control: &UnixStream,
        on_gpu: bool,
    ) -> io::Result<Self> {
        let (ours, theirs) = Packets::pair()?;
        let inputs = room(signature.inputs.len())?;
        let outputs = room(signature.outputs.len())?;
        let memories = inputs.iter().chain(&outputs).map(AsFd::as_fd);
        let descriptors: Vec<BorrowedFd<'_>> = std::iter::once(theirs.as_fd()).chain(memories).collect();
        send_descriptors(control, &descriptors)?;
        Ok(Self {
            number,
            batches: 0,
            on_gpu,
            process: Arc::clone(process),
            signature: Arc::clone(signature),
            packets: ours,
            batch: vec![Extent::default(); inputs.len()],
            results: vec![Extent::default(); outputs.len()],
            inputs,
            outputs,
            request: Vec::new(),
            reply: vec![0; PACKET].into_boxed_slice(),
        })
    }

    fn exchange(&mut self, limit: Duration, is_wanted: &dyn Fn() -> bool) -> Result<Reply, EngineError> {
        if let Some(end) = self.process.end() {
            return Err(EngineError::Died(end));
        }
        request(&mut self.request, &self.batch);
        if self.packets.send(&self.request).is_err() {
            return Err(EngineError::Died(self.process.ended()));
        }
        self.batches += 1;
        match self.receive(limit, is_wanted) {
            Ok(0) => Err(EngineError::Died(self.process.ended())),
            Ok(length) => {
                let packet = self.reply.get(..length).unwrap_or_default();
                read_reply(packet, &mut self.results).map_err(|nonsense| self.distrust(&nonsense.to_string()))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.process.stop("it hung and was stopped");
                Err(EngineError::Hung(limit))
            }
            Err(error) => Err(self.distrust(&error.to_string())),
        }
    }

    /// Waits for the reply, and asks the engine to stop once nobody wants it. It is still waited for: the lane's memory
    /// is the engine's until then.
    fn receive(&mut self, limit: Duration, is_wanted: &dyn Fn() -> bool) -> io::Result<usize> {
        let mut waited = Duration::ZERO;
        let mut cancelled = false;
        loop {
            let left = limit.saturating_sub(waited);
            let slice = if cancelled { left } else { ASK_WHETHER_WANTED.min(left) };
            match self.packets.receive(&mut self.reply, Some(slice)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && waited + slice < limit => {
                    waited += slice;
                    if !cancelled && !is_wanted() {
                        cancelled = true;
                        self.process.cancel(&Cancel { lane: self.number, batch: self.batches });
                    }
                }
                received => return received,
            }
        }
    }

    /// Sees to it that the outputs are where the engine says, and that they are whole.
    fn check(&mut self) -> Result<(), EngineError> {
        for (index, result) in self.results.iter().enumerate() {
            let (Some(spec), Some(memory)) = (self.signature.outputs.get(index), self.outputs.get_mut(index))
            else {
                break;
            };
            let expected = spec.dtype.size().and_then(|size| elements(&result.shape)?.checked_mul(size));
            let whole = spec.dtype == DType::String || expected == Some(result.bytes);
            if let Err(reason) = if whole { memory.follow(result.bytes).map(drop) } else { Err(torn(result)) }
            {
                let text = format!("output {:?}: {reason}", spec.name);
                return Err(self.distrust(&text));
            }
        }
        Ok(())
    }

    /// An engine that says what cannot be is stopped: its memory is in disorder.
    fn distrust(&self, reason: &str) -> EngineError {
        EngineError::Died(self.process.stop(reason))
    }
}

impl Lane for IsolatedLane {
    fn input(&mut self, index: usize, shape: &[usize], bytes: usize) -> Result<&mut [u8], EngineError> {
        let none = || EngineError::Failed(format!("the model has no input {index}"));
        let extent = self.batch.get_mut(index).ok_or_else(none)?;
        extent.shape.clear();
        extent.shape.extend_from_slice(shape);
        extent.bytes = bytes;
        let memory = self.inputs.get_mut(index).ok_or_else(none)?;
        memory.grow(bytes).map_err(|source| EngineError::Room(bytes, source))?;
        memory.bytes_mut().get_mut(..bytes).ok_or_else(none)
    }

    fn run_while(
        &mut self,
        limit: Duration,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Vec<OutputView<'_>>, EngineError> {
        match self.exchange(limit, is_wanted)? {
            Reply::Done => {}
            Reply::Failed(text) => return Err(EngineError::Failed(text)),
            Reply::Broken(text) => return Err(self.distrust(&text)),
        }
        self.check()?;
        views(&self.signature, &self.results, &self.outputs)
    }

    fn trim(&mut self) {
        if self.on_gpu {
            return;
        }
        let inputs = self.inputs.iter_mut().zip(&self.batch);
        for (memory, extent) in inputs.chain(self.outputs.iter_mut().zip(&self.results)) {
            if extent.bytes > KEPT {
                // Memory that cannot be given back is used again.
                let _ = memory.discard(KEPT);
            }
        }
    }
}

fn torn(result: &Extent) -> io::Error {
    let text = format!("{:?} in {} bytes", result.shape, result.bytes);
    io::Error::new(io::ErrorKind::InvalidData, text)
}
