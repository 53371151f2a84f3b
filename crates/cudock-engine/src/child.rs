//! What the engine's process does.

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
use crate::channel::{Answer, Packets, receive_descriptors, receive_message, send_message, wait};
use crate::plan::Extent;
use crate::runner::Runner;
use crate::wire::{PACKET, done, read_request, refused};
use crate::{Engine, EngineError, EngineSettings, OnnxEngine};

/// Serves the engine whose settings come on standard input, which must be the socket that
/// [`crate::IsolatedEngine::start`] gives its command. Does not return as long as the other end is open, and ends this
/// process, whatever the engine is doing, when it closes.
///
/// Signals that ask a server to end are not for this process: the server still has batches for it, and closes the
/// socket when it is done. A parent-death signal is not used, because the kernel sends that one when the thread ends
/// which started this process, and not the server.
pub fn serve_child() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: the engine's process: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> io::Result<()> {
    let ignored = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&ignored))?;
    }
    // Where memory runs out, the kernel shall end this process and not the server. It may always be made more likely.
    let _ = std::fs::write("/proc/self/oom_score_adj", "500");
    let mut control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let settings: EngineSettings = receive_message(&mut control)?;
    let lanes = settings.lanes.max(1);
    let mut answers = control.try_clone()?;
    let loading =
        std::thread::Builder::new().name("load".to_owned()).spawn(move || load(&settings, &mut answers))?;
    if !wait(&control) {
        end_now();
    }
    let engine = loading.join().map_err(|_| io::Error::other("loading panicked"))??;
    let Some(engine) = engine else { return Ok(()) };
    let mut cancellers = Vec::new();
    for number in 0..lanes {
        let (mut packets, mut runner) = open_lane(&engine, &control, number)?;
        cancellers.push(runner.canceller());
        std::thread::Builder::new()
            .name(format!("lane {number}"))
            .spawn(move || serve_lane(&mut packets, &mut runner))?;
    }
    while wait(&control) {
        let Cancel { lane, batch } = receive_message(&mut control)?;
        if let Some(canceller) = cancellers.get(lane) {
            canceller.cancel(batch);
        }
    }
    end_now();
    Ok(())
}

/// Loads the model and answers how that went. None if it cannot be loaded: then there is nothing more to do.
fn load(settings: &EngineSettings, answers: &mut UnixStream) -> io::Result<Option<OnnxEngine>> {
    let (answer, engine) = match OnnxEngine::load(settings) {
        Ok(engine) => {
            let (signature, device) = (engine.signature().clone(), engine.device().clone());
            (Answer::Ready { signature, device }, Some(engine))
        }
        Err(EngineError::Library { reason, .. }) => (Answer::Library { reason }, None),
        Err(EngineError::Load { reason, .. }) => (Answer::Load { reason }, None),
        Err(error) => (Answer::Load { reason: error.to_string() }, None),
    };
    send_message(answers, &answer)?;
    Ok(engine)
}

fn open_lane(engine: &OnnxEngine, control: &UnixStream, number: usize) -> io::Result<(Packets, Runner)> {
    let (inputs, outputs) = (engine.signature().inputs.len(), engine.signature().outputs.len());
    let mut descriptors = receive_descriptors(control, 1 + inputs + outputs)?.into_iter();
    let packets = Packets::over(descriptors.next().ok_or(io::ErrorKind::UnexpectedEof)?);
    let mut memories: Vec<SharedMemory> = descriptors
        .map(|descriptor: OwnedFd| SharedMemory::from_descriptor(descriptor))
        .collect::<io::Result<_>>()?;
    let outputs = memories.split_off(inputs.min(memories.len()));
    let runner = engine.lane(number, memories, outputs).map_err(io::Error::other)?;
    Ok((packets, runner))
}

/// Runs a lane's batches until the server closes the lane. A GPU that is broken stays so for this process, which
/// therefore says so and ends.
fn serve_lane(packets: &mut Packets, runner: &mut Runner) {
    let mut request = vec![0; PACKET];
    let mut reply = Vec::new();
    while let Ok(length @ 1..) = packets.receive(&mut request, None) {
        let outcome = run(runner, request.get(..length).unwrap_or_default());
        match &outcome {
            Ok(()) => done(&mut reply, runner.results()),
            Err(EngineError::Failed(text)) => refused(&mut reply, text, false),
            Err(EngineError::Died(text)) => refused(&mut reply, text, true),
            Err(error) => refused(&mut reply, &error.to_string(), false),
        }
        if packets.send(&reply).is_err() {
            break;
        }
        if matches!(outcome, Err(EngineError::Died(_))) {
            end_now();
        }
    }
}

fn run(runner: &mut Runner, request: &[u8]) -> Result<(), EngineError> {
    let mut batch = vec![Extent::default(); runner.input_count()];
    read_request(request, &mut batch).map_err(|nonsense| EngineError::Failed(nonsense.to_string()))?;
    for (index, extent) in batch.iter().enumerate() {
        runner.accept(index, &extent.shape, extent.bytes)?;
    }
    runner.run_batch()
}

/// Ends this process without the library's own ending, which may wait for a GPU that never answers.
fn end_now() {
    let _ = kill_process(getpid(), Signal::KILL);
}
