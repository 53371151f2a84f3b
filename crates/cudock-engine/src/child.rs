//! The engine process.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use cudock_map::SharedMemory;
use rustix::process::{Signal, getpid, kill_process};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::cancel::Cancel;
use crate::channel::{LoadReply, PacketSocket, receive_descriptors, receive_message, send_message, wait};
use crate::run_plan::Extent;
use crate::runner::Runner;
use crate::wire::{PACKET, read_request, write_done, write_failure};
use crate::{Engine, EngineError, EngineSettings, OnnxEngine};

/// Runs the engine whose settings arrive on standard input, which must be the socket that
/// [`crate::IsolatedEngine::start`] passes to its command. Does not return while the other end is open, and kills this
/// process, whatever the engine is doing, when it closes.
///
/// SIGINT and SIGTERM are ignored: the server still has batches for this process, and closes the socket when it is
/// done. A parent-death signal is not used, because the kernel sends it when the thread ends that started this process,
/// not the server.
pub fn serve_child() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: engine process: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> io::Result<()> {
    let ignored = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&ignored))?;
    }
    // When memory runs out, the kernel should kill this process and not the server. Raising the score is always
    // permitted.
    let _ = std::fs::write("/proc/self/oom_score_adj", "500");
    let mut control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let settings: EngineSettings = receive_message(&mut control)?;
    let lanes = settings.lanes.max(1);
    let mut replies = control.try_clone()?;
    let loading =
        std::thread::Builder::new().name("load".to_owned()).spawn(move || load(&settings, &mut replies))?;
    if !wait(&control) {
        end_now();
    }
    let engine = loading.join().map_err(|_| io::Error::other("loading panicked"))??;
    let Some(engine) = engine else { return Ok(()) };
    let mut cancelers = Vec::new();
    for number in 0..lanes {
        let (mut packets, mut runner) = open_lane(&engine, &control, number)?;
        cancelers.push(runner.canceler());
        std::thread::Builder::new()
            .name(format!("lane {number}"))
            .spawn(move || serve_lane(&mut packets, &mut runner))?;
    }
    while wait(&control) {
        let Cancel { lane, batch } = receive_message(&mut control)?;
        if let Some(canceler) = cancelers.get(lane) {
            canceler.cancel(batch);
        }
    }
    end_now();
    Ok(())
}

/// Loads the model and reports the result; `None` if it cannot be loaded.
fn load(settings: &EngineSettings, replies: &mut UnixStream) -> io::Result<Option<OnnxEngine>> {
    let (reply, engine) = match OnnxEngine::load(settings) {
        Ok(engine) => {
            let (signature, device) = (engine.signature().clone(), engine.device().clone());
            (LoadReply::Ready { signature, device }, Some(engine))
        }
        Err(EngineError::Library { reason, .. }) => (LoadReply::Library { reason }, None),
        Err(EngineError::Load { reason, .. }) => (LoadReply::Load { reason }, None),
        Err(error) => (LoadReply::Load { reason: error.to_string() }, None),
    };
    send_message(replies, &reply)?;
    Ok(engine)
}

fn open_lane(engine: &OnnxEngine, control: &UnixStream, number: usize) -> io::Result<(PacketSocket, Runner)> {
    let (inputs, outputs) = (engine.signature().inputs.len(), engine.signature().outputs.len());
    let mut descriptors = receive_descriptors(control, 1 + inputs + outputs)?.into_iter();
    let packets = PacketSocket::from_fd(descriptors.next().ok_or(io::ErrorKind::UnexpectedEof)?);
    let mut memories: Vec<SharedMemory> = descriptors
        .map(|descriptor: OwnedFd| SharedMemory::from_descriptor(descriptor))
        .collect::<io::Result<_>>()?;
    let outputs = memories.split_off(inputs.min(memories.len()));
    let runner = engine.lane(number, memories, outputs).map_err(io::Error::other)?;
    Ok((packets, runner))
}

/// Runs a lane's batches until the server closes the lane. A broken GPU stays broken for this process, which therefore
/// reports it and ends.
fn serve_lane(packets: &mut PacketSocket, runner: &mut Runner) {
    let mut request = vec![0; PACKET];
    let mut reply = Vec::new();
    while let Ok(length @ 1..) = packets.receive(&mut request, None) {
        let result = run(runner, request.get(..length).unwrap_or_default());
        match &result {
            Ok(()) => write_done(&mut reply, runner.results()),
            Err(EngineError::Failed(text)) => write_failure(&mut reply, text, false),
            Err(EngineError::Died(text)) => write_failure(&mut reply, text, true),
            Err(error) => write_failure(&mut reply, &error.to_string(), false),
        }
        if packets.send(&reply).is_err() {
            break;
        }
        if matches!(result, Err(EngineError::Died(_))) {
            end_now();
        }
    }
}

fn run(runner: &mut Runner, request: &[u8]) -> Result<(), EngineError> {
    let mut batch = vec![Extent::default(); runner.input_count()];
    read_request(request, &mut batch).map_err(|invalid| EngineError::Failed(invalid.to_string()))?;
    for (index, extent) in batch.iter().enumerate() {
        runner.accept(index, &extent.shape, extent.bytes)?;
    }
    runner.run_batch()
}

/// Kills this process without the library's cleanup, which may wait for a GPU that does not respond.
fn end_now() {
    let _ = kill_process(getpid(), Signal::KILL);
}
