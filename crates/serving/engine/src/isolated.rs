//! An engine in a process of its own.

use cudock_base::bug::Parts;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use cudock_tensor::Signature;
use serde::Serialize;

use crate::channel::{
    CancelRequest, LoadReply, PacketSocket, receive_message, send_descriptors, send_message,
};
use crate::output::OutputSink;
use crate::process::{EngineMark, EngineProcess};
use crate::wire::{BatchReply, PACKET, read_reply, write_extents};
use crate::{DeviceInfo, Engine, EngineError, EngineSettings, ExitCheck, Lane, LaneMemory, OutputView};

/// The environment variable in which the engine process finds CUDA's libraries.
const LIBRARY_PATH: &str = "LD_LIBRARY_PATH";

/// Interval at which a long-running batch is checked for clients that still wait.
const CANCEL_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// A model in a process of its own: whatever the engine's library does, this process survives.
pub struct IsolatedEngine {
    /// The id that the engine has given for itself.
    id: u32,
    process: Arc<EngineProcess>,
    signature: Arc<Signature>,
    device: DeviceInfo,
    lanes: Vec<IsolatedLane>,
}

impl IsolatedEngine {
    /// Starts `engine`, which must call [`crate::serve_child`], by `owner`, which must call [`crate::own_engine`], and makes
    /// it load the model within the limit.
    ///
    /// The engine's standard input becomes the control stream. What it prints goes to `output`; without one, its
    /// standard output is closed and its standard error is that of this process. Its process group is not that of this
    /// process, so that Ctrl-C at the terminal reaches only the server.
    pub fn start<Kind: Serialize>(
        settings: &EngineSettings<Kind>,
        owner: Command,
        engine: &Command,
        limit: Duration,
        output: Option<&OutputSink>,
    ) -> Result<Self, EngineError> {
        let load_error = |reason: String| EngineError::Load { model: settings.model.clone(), reason };
        let start_error = |error: io::Error| load_error(format!("cannot start the engine process: {error}"));
        let (mut control, theirs) = UnixStream::pair().map_err(start_error)?;
        let mut command = owned(owner, engine);
        let mark = EngineMark::new();
        mark.put(&mut command);
        command.stdin(Stdio::from(OwnedFd::from(theirs))).process_group(0);
        match output {
            Some(_) => command.stdout(Stdio::piped()).stderr(Stdio::piped()),
            None => command.stdout(Stdio::null()),
        };
        if let Some(path) = library_path(&settings.library_path) {
            command.env(LIBRARY_PATH, path);
        }
        let ours = control.try_clone().map_err(start_error)?;
        let mut process = EngineProcess::new(command.spawn().map_err(start_error)?, ours, mark);
        // Its end of the control stream.
        drop(command);
        if let Some(sink) = output {
            process.read_output(sink).map_err(start_error)?;
        }
        control.set_read_timeout(Some(limit.max(Duration::from_millis(1)))).map_err(start_error)?;
        let reply = exchange(&mut control, settings);
        let (id, signature, device) = match reply {
            Ok(LoadReply::Ready { process, signature, device }) => (process, Arc::new(signature), *device),
            Ok(LoadReply::Load { reason }) => return Err(load_error(reason)),
            Ok(LoadReply::NoGpu { reason }) => return Err(EngineError::NoGpu(reason)),
            Ok(LoadReply::Library { library, reason }) => {
                return Err(EngineError::Library { library, reason });
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                process.stop("it took too long to load");
                return Err(load_error(format!("timed out after {} s", limit.as_secs_f32())));
            }
            Err(_) => {
                let reason = process.wait_for_exit().text;
                return Err(load_error(format!("the engine died while loading ({reason})")));
            }
        };
        let process = Arc::new(process);
        let is_gpu = device.provider.is_gpu();
        let lanes = (0..settings.lanes.max(1))
            .map(|number| IsolatedLane::open(number, &process, &signature, &control, is_gpu))
            .collect::<io::Result<_>>()
            .map_err(start_error)?;
        Ok(Self { id, process, signature, device, lanes })
    }
}

impl Engine for IsolatedEngine {
    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn device(&self) -> &DeviceInfo {
        &self.device
    }

    fn take_lanes(&mut self) -> Vec<Box<dyn Lane>> {
        std::mem::take(&mut self.lanes).into_iter().map(|lane| Box::new(lane) as Box<dyn Lane>).collect()
    }

    fn process(&self) -> Option<u32> {
        Some(self.id)
    }

    fn exit_check(&self) -> Option<ExitCheck> {
        let process = Arc::clone(&self.process);
        Some(Box::new(move || process.has_exited()))
    }
}

/// Sends the settings and receives the reply. An owner that could not start its engine has replied and closed the stream,
/// maybe before the settings were sent.
fn exchange(control: &mut UnixStream, settings: &impl Serialize) -> io::Result<LoadReply> {
    match send_message(control, settings) {
        Err(error) if !matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => {
            Err(error)
        }
        _ => receive_message(control),
    }
}

/// The command of the owner, with the engine's program, arguments and variables.
fn owned(mut owner: Command, engine: &Command) -> Command {
    owner.arg(engine.get_program()).args(engine.get_args());
    for (name, value) in engine.get_envs() {
        match value {
            Some(value) => owner.env(name, value),
            None => owner.env_remove(name),
        };
    }
    owner
}

/// The library path of the engine process: the directories of the settings before those of this process.
fn library_path(directories: &[PathBuf]) -> Option<OsString> {
    if directories.is_empty() {
        return None;
    }
    let inherited = std::env::var_os(LIBRARY_PATH).unwrap_or_default();
    let inherited = std::env::split_paths(&inherited).filter(|directory| !directory.as_os_str().is_empty());
    std::env::join_paths(directories.iter().cloned().chain(inherited)).ok()
}

/// Memory that a lane keeps for its next batch.
const MAX_RETAINED: usize = 8 << 20;

struct IsolatedLane {
    number: usize,
    /// The number of the current or last batch. Its reply has it, too: an engine that replies twice, or a copy of it that a
    /// model has forked, must not answer for another batch.
    batch: u64,
    /// Whether the device accesses the lane's memory directly; such memory must not move.
    is_gpu: bool,
    process: Arc<EngineProcess>,
    packets: PacketSocket,
    memory: LaneMemory,
    request: Vec<u8>,
    reply: Box<[u8]>,
}

impl IsolatedLane {
    fn open(
        number: usize,
        process: &Arc<EngineProcess>,
        signature: &Arc<Signature>,
        control: &UnixStream,
        is_gpu: bool,
    ) -> io::Result<Self> {
        let (ours, theirs) = PacketSocket::pair()?;
        let memory = LaneMemory::new(signature)?;
        let descriptors: Vec<_> = std::iter::once(theirs.as_fd()).chain(memory.descriptors()).collect();
        send_descriptors(control, &descriptors)?;
        Ok(Self {
            number,
            batch: 0,
            is_gpu,
            process: Arc::clone(process),
            packets: ours,
            memory,
            request: Vec::new(),
            reply: vec![0; PACKET].into_boxed_slice(),
        })
    }

    fn send_and_receive(
        &mut self,
        limit: Duration,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<BatchReply, EngineError> {
        if let Some(end) = self.process.exit_reason() {
            return Err(end.error());
        }
        self.batch += 1;
        write_extents(&mut self.request, self.batch, &self.memory.batch);
        if self.packets.send(&self.request).is_err() {
            return Err(self.process.wait_for_exit().error());
        }
        match self.receive(limit, is_wanted) {
            Ok(0) => Err(self.process.wait_for_exit().error()),
            Ok(length) => {
                let packet = self.reply.part(..length);
                match read_reply(packet, &mut self.memory.results) {
                    Ok((batch, reply)) if batch == self.batch => Ok(reply),
                    Ok((batch, _)) => {
                        let expected = self.batch;
                        Err(self.kill_untrusted(&format!("it replied to batch {batch}, not to {expected}")))
                    }
                    Err(invalid) => Err(self.kill_untrusted(&invalid.to_string())),
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.process.stop("it timed out and was killed");
                Err(EngineError::TimedOut(limit))
            }
            Err(error) => Err(self.kill_untrusted(&error.to_string())),
        }
    }

    /// Waits for the reply, and cancels the batch once no client wants it. It still waits then,
    /// because the engine uses the lane's memory until it replies.
    fn receive(&mut self, limit: Duration, is_wanted: &dyn Fn() -> bool) -> io::Result<usize> {
        let mut waited = Duration::ZERO;
        let mut canceled = false;
        loop {
            let left = limit.saturating_sub(waited);
            let slice = if canceled { left } else { CANCEL_CHECK_INTERVAL.min(left) };
            match self.packets.receive(&mut self.reply, Some(slice)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && waited + slice < limit => {
                    waited += slice;
                    if !canceled && !is_wanted() {
                        canceled = true;
                        self.process.cancel(&CancelRequest { lane: self.number, batch: self.batch });
                    }
                }
                received => return received,
            }
        }
    }

    /// Checks that the outputs are complete and within the shared memory.
    fn check(&mut self) -> Result<(), EngineError> {
        let LaneMemory { signature, outputs, results, .. } = &mut self.memory;
        let invalid =
            signature.outputs.iter().zip(outputs).zip(results).find_map(|((spec, memory), result)| {
                let reason = if result.fits(spec.dtype) {
                    memory.follow(result.bytes).err()?.to_string()
                } else {
                    format!("{:?} in {} bytes", result.shape, result.bytes)
                };
                Some(format!("output {:?}: {reason}", spec.name))
            });
        invalid.map_or(Ok(()), |reason| Err(self.kill_untrusted(&reason)))
    }

    /// Kills an engine that is broken, or whose reply is impossible because its memory is corrupt.
    fn kill_untrusted(&self, reason: &str) -> EngineError {
        // However it ends now, this is why.
        self.process.stop(reason);
        EngineError::Died(reason.to_owned())
    }
}

impl Lane for IsolatedLane {
    fn input(&mut self, index: usize, shape: &[usize], bytes: usize) -> Result<&mut [u8], EngineError> {
        self.memory.grow_input(index, shape, bytes)?;
        Ok(self.memory.input_mut(index))
    }

    fn run_while(
        &mut self,
        limit: Duration,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Vec<OutputView<'_>>, EngineError> {
        match self.send_and_receive(limit, is_wanted)? {
            BatchReply::Done => {}
            BatchReply::Failed(text) => return Err(EngineError::Failed(text)),
            BatchReply::Broken(text) => return Err(self.kill_untrusted(&text)),
            BatchReply::OutOfMemory(text) => return Err(EngineError::DeviceMemory(text)),
            BatchReply::InvalidRows(rows) => return Err(EngineError::InvalidRows(rows)),
        }
        self.check()?;
        self.memory.output_views()
    }

    fn trim(&mut self) {
        if self.is_gpu {
            return;
        }
        let LaneMemory { inputs, outputs, batch, results, .. } = &mut self.memory;
        for (memory, extent) in inputs.iter_mut().zip(batch).chain(outputs.iter_mut().zip(results)) {
            if extent.bytes > MAX_RETAINED {
                // Memory that cannot be released is reused.
                let _ = memory.discard(MAX_RETAINED);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    /// An owner that reads `read` bytes of the settings, replies and ends.
    fn reply_after(read: usize) -> LoadReply {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        let owner = move || {
            theirs.read_exact(&mut vec![0; read]).unwrap();
            send_message(&mut theirs, &LoadReply::Load { reason: "no such program".to_owned() }).unwrap();
            drop(theirs);
        };
        if read == 0 {
            owner();
            return exchange(&mut ours, &"settings").unwrap();
        }
        let owner = std::thread::spawn(owner);
        let reply = exchange(&mut ours, &"x".repeat(4 << 20)).unwrap();
        owner.join().unwrap();
        reply
    }

    #[test]
    fn the_reply_of_an_owner_that_has_ended_is_read() {
        for read in [0, 1, 4, 5, 4096, 1 << 20] {
            let reply = reply_after(read);
            assert!(matches!(&reply, LoadReply::Load { reason } if reason == "no such program"), "{read}");
        }
    }
}
