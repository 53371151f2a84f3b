//! The engine process.

use cudock_base::bug::Parts;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::process::{Signal, getpid, kill_process};
use serde::de::DeserializeOwned;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::channel::{
    CancelRequest, LoadReply, PacketSocket, receive_descriptors, receive_message, send_message, wait,
};
use crate::wire::{PACKET, read_request, write_extents, write_failure};
use crate::{EngineError, EngineSettings, Extent, LaneMemory, SharedEngine, SharedLane};

/// Runs the engine that `load` returns for the settings that arrive on standard input, which must be the socket that
/// [`crate::IsolatedEngine::start`] passes to its command. Does not return while the other end is open, and kills this
/// process, whatever the engine is doing, when it closes.
///
/// SIGINT and SIGTERM are ignored: the server still has batches for this process, and closes the socket when it is
/// done. A parent-death signal is not used, because the kernel sends it when the thread ends that started this process,
/// not the server.
pub fn serve_child<Kind: DeserializeOwned + Send + 'static>(load: LoadEngine<Kind>) -> ExitCode {
    match serve(load) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: engine process: {error}");
            ExitCode::FAILURE
        }
    }
}

type LoadEngine<Kind> = fn(EngineSettings<Kind>) -> Result<Box<dyn SharedEngine>, EngineError>;

fn serve<Kind: DeserializeOwned + Send + 'static>(load: LoadEngine<Kind>) -> io::Result<()> {
    let ignored = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&ignored))?;
    }
    // When memory runs out, the kernel should kill this process and not the server. Raising the score is always
    // permitted.
    let _ = std::fs::write("/proc/self/oom_score_adj", "500");
    let mut control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let settings: EngineSettings<Kind> = receive_message(&mut control)?;
    let lanes = settings.lanes.max(1);
    let mut replies = control.try_clone()?;
    let loading = std::thread::Builder::new()
        .name("load".to_owned())
        .spawn(move || report_load(load(settings), &mut replies))?;
    if !wait(&control) {
        end_now();
    }
    let engine = loading.join().map_err(|_| io::Error::other("loading panicked"))??;
    let Some(engine) = engine else { return Ok(()) };
    let signature = Arc::new(engine.signature().clone());
    let tensors = signature.inputs.len() + signature.outputs.len();
    let mut cancelers = Vec::new();
    for number in 0..lanes {
        let mut descriptors = receive_descriptors(&control, 1 + tensors)?.into_iter();
        let mut packets = PacketSocket::from_fd(descriptors.next().ok_or(io::ErrorKind::UnexpectedEof)?);
        let memory = LaneMemory::from_descriptors(&signature, descriptors)?;
        let mut lane = engine.open_lane(number, memory).map_err(io::Error::other)?;
        cancelers.push(lane.canceler());
        let inputs = signature.inputs.len();
        std::thread::Builder::new()
            .name(format!("lane {number}"))
            .spawn(move || serve_lane(&mut packets, lane.as_mut(), inputs))?;
    }
    while wait(&control) {
        let CancelRequest { lane, batch } = receive_message(&mut control)?;
        if let Some(cancel) = cancelers.get(lane) {
            cancel(batch);
        }
    }
    end_now();
    Ok(())
}

/// Reports the result of loading the model; returns `None` if it cannot be loaded.
fn report_load(
    loaded: Result<Box<dyn SharedEngine>, EngineError>,
    replies: &mut UnixStream,
) -> io::Result<Option<Box<dyn SharedEngine>>> {
    let (reply, engine) = match loaded {
        Ok(engine) => {
            let (signature, device) = (engine.signature().clone(), engine.device().clone());
            (
                LoadReply::Ready { process: std::process::id(), signature, device: Box::new(device) },
                Some(engine),
            )
        }
        Err(EngineError::Library { library, reason }) => (LoadReply::Library { library, reason }, None),
        Err(EngineError::Load { reason, .. }) => (LoadReply::Load { reason }, None),
        Err(EngineError::NoGpu(reason)) => (LoadReply::NoGpu { reason }, None),
        Err(error) => (LoadReply::Load { reason: error.to_string() }, None),
    };
    send_message(replies, &reply)?;
    Ok(engine)
}

/// Runs a lane's batches until the server closes the lane. A broken GPU stays broken for this process, which therefore
/// reports it and ends.
fn serve_lane(packets: &mut PacketSocket, lane: &mut dyn SharedLane, inputs: usize) {
    let mut request = vec![0; PACKET];
    let mut reply = Vec::new();
    let mut inputs = vec![Extent::default(); inputs];
    while let Ok(length @ 1..) = packets.receive(&mut request, None) {
        let packet = request.part(..length);
        let Ok(batch) = read_request(packet, &mut inputs) else { break };
        let result = run(lane, batch, &inputs);
        let is_broken = matches!(result, Err(EngineError::Died(_)));
        match result {
            Ok(results) => write_extents(&mut reply, batch, results),
            Err(error) => write_failure(&mut reply, batch, &error),
        }
        if packets.send(&reply).is_err() {
            break;
        }
        if is_broken {
            end_now();
        }
    }
}

fn run<'lane>(
    lane: &'lane mut dyn SharedLane,
    batch: u64,
    inputs: &[Extent],
) -> Result<&'lane [Extent], EngineError> {
    for (index, extent) in inputs.iter().enumerate() {
        lane.accept(index, &extent.shape, extent.bytes)?;
    }
    lane.run_batch(batch)
}

/// Kills this process without the library's cleanup, which may wait for a GPU that does not respond.
fn end_now() {
    let _ = kill_process(getpid(), Signal::KILL);
}
