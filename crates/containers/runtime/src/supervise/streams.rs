//! Supervises a running process in one thread: copies its output to the log and to our outputs, forwards signals and input,
//! and collects its exit code.

use cudock_base::bug::Parts;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use cudock_base::text::terminal::RawMode;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::container::log::{LogWriter, Stream, read_some};
use crate::error::{OnError, RuntimeError};
use crate::start::user::Identity;
use crate::supervise::signal::FORWARDED;
use crate::supervise::terminal::copy_size;

/// Number of interrupts after which the process is killed.
const MAX_INTERRUPTS: u32 = 3;

/// How long output may arrive after the process has exited.
const OUTPUT_GRACE: Duration = Duration::from_secs(2);

/// Blocked signals, read from a descriptor.
#[derive(Debug)]
pub(crate) struct Signals {
    descriptor: SignalFd,
    /// The signals that were blocked before.
    before: SigSet,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignalEvent {
    /// One or more children exited.
    Child,
    Resized,
    Forward(Signal),
}

impl Signals {
    /// Blocks the signals and reads them from a descriptor from now on.
    pub(crate) fn block() -> Result<Self, RuntimeError> {
        let set: SigSet = FORWARDED.into_iter().chain([Signal::SIGCHLD, Signal::SIGWINCH]).collect();
        let before = set.thread_swap_mask(SigmaskHow::SIG_BLOCK).when("cannot block signals")?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        Ok(Self { descriptor: SignalFd::with_flags(&set, flags).when("cannot read signals")?, before })
    }

    /// Gives signals their usual effect again. Otherwise they stay blocked, also in a program that this process becomes.
    pub(crate) fn unblock(self) {
        let _ = self.before.thread_set_mask();
    }

    pub(crate) fn next(&mut self) -> Option<SignalEvent> {
        let info = self.descriptor.read_signal().ok().flatten()?;
        let number = i32::try_from(info.ssi_signo).ok()?;
        Some(match Signal::try_from(number).ok()? {
            Signal::SIGCHLD => SignalEvent::Child,
            Signal::SIGWINCH => SignalEvent::Resized,
            other => SignalEvent::Forward(other),
        })
    }

    /// The next termination signal, if one was received.
    pub(crate) fn stop_requested(&mut self) -> Option<Signal> {
        while let Some(event) = self.next() {
            if let SignalEvent::Forward(signal) = event
                && asks_to_stop(signal)
            {
                return Some(signal);
            }
        }
        None
    }

    /// Waits up to `limit` for a termination signal. Returns whether one was received.
    pub(crate) fn stop_requested_within(&mut self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        loop {
            if self.stop_requested().is_some() {
                return true;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let mut polled = [PollFd::new(self.descriptor.as_fd(), PollFlags::POLLIN)];
            let _ = poll(&mut polled, timeout(left));
        }
    }
}

impl AsFd for Signals {
    /// Readable when a signal came.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

fn asks_to_stop(signal: Signal) -> bool {
    !matches!(signal, Signal::SIGUSR1 | Signal::SIGUSR2)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessEnd {
    /// The exit code; 128 plus the signal's number if a signal ended it.
    pub(crate) code: i32,
    pub(crate) stop_requested: bool,
}

/// Our ends of the streams of a process.
#[derive(Debug, Default)]
pub(crate) struct StreamEnds {
    pub(crate) outputs: Vec<(File, Stream)>,
    pub(crate) terminal: Option<File>,
    /// Whether its output is copied to our own outputs.
    pub(crate) attached: bool,
    /// Whether our standard input is copied to its terminal.
    pub(crate) typed: bool,
    /// The pipe for our standard input, without a terminal.
    pub(crate) input: Option<StdinPipe>,
}

/// The standard input of a process. It is never written to with blocking: a process that waits for its output to be read
/// while we wait for it to read its input would wait forever.
#[derive(Debug)]
pub(crate) struct StdinPipe {
    pipe: File,
    pending: Vec<u8>,
    ended: bool,
}

impl StdinPipe {
    fn fill(&mut self, buffer: &mut [u8]) {
        match read_some(io::stdin().lock(), buffer) {
            Ok(count @ 1..) => self.pending.extend_from_slice(buffer.part(..count)),
            _ => self.ended = true,
        }
    }

    /// Writes as much as the pipe takes. Returns false at the end.
    fn flush(&mut self) -> bool {
        if !self.pending.is_empty() {
            match (&self.pipe).write(&self.pending) {
                Ok(count) => drop(self.pending.drain(..count)),
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                // The process has closed it.
                Err(_) => return false,
            }
        }
        !(self.ended && self.pending.is_empty())
    }
}

/// Pipes for a process, and our ends of them. The process never gets a file or terminal of the caller, which it could reopen
/// or inject input into.
pub(crate) fn pipes(stdin: bool, attached: bool) -> Result<([OwnedFd; 3], StreamEnds), RuntimeError> {
    let pipe = || io::pipe().when("cannot create a pipe");
    let (input, stdin) = if stdin {
        let (theirs, ours) = pipe()?;
        let ours = OwnedFd::from(ours);
        rustix::fs::fcntl_setfl(&ours, rustix::fs::OFlags::NONBLOCK).when("cannot create a pipe")?;
        let input = StdinPipe { pipe: ours.into(), pending: Vec::new(), ended: false };
        (Some(input), OwnedFd::from(theirs))
    } else {
        (None, File::open("/dev/null").when("cannot open /dev/null")?.into())
    };
    let ((out_reader, stdout), (err_reader, stderr)) = (pipe()?, pipe()?);
    let outputs = vec![
        (File::from(OwnedFd::from(out_reader)), Stream::Out),
        (File::from(OwnedFd::from(err_reader)), Stream::Err),
    ];
    let ends = StreamEnds { outputs, terminal: None, attached, typed: false, input };
    Ok(([stdin, stdout.into(), stderr.into()], ends))
}

/// Makes the user of a process the owner of its pipes and terminal, so that it can open `/dev/stdout` and the like.
pub(crate) fn give_to(streams: &[OwnedFd], identity: &Identity) {
    for stream in streams {
        let Ok(about) = rustix::fs::fstat(stream) else { continue };
        let pipe = FileType::from_raw_mode(about.st_mode) == FileType::Fifo;
        if identity.uid != 0 && (pipe || rustix::termios::isatty(stream)) {
            // Fails for a user that is not mapped outside.
            let _ = rustix::fs::fchown(stream, Some(rustix::fs::Uid::from_raw(identity.uid)), None);
        }
    }
}

impl StreamEnds {
    pub(crate) fn of_terminal(terminal: OwnedFd, attached: bool, typed: bool) -> Self {
        Self { outputs: Vec::new(), terminal: Some(File::from(terminal)), attached, typed, input: None }
    }
}

/// Supervises a process until it has exited and all of its output was read. Calls `on_child` when any child has exited.
pub(crate) fn supervise_process(
    pid: i32,
    mut ends: StreamEnds,
    signals: &mut Signals,
    mut log: Option<&mut LogWriter>,
    on_child: &mut dyn FnMut(),
) -> Result<ProcessEnd, RuntimeError> {
    let raw = if ends.attached && ends.typed && ends.terminal.is_some() { RawMode::enter() } else { None };
    if let Some(terminal) = ends.terminal.as_ref().filter(|_| ends.attached) {
        copy_size(terminal.as_fd());
    }
    // It may have exited before signals were blocked.
    let mut ended = reap(pid).map(|ended| (ended, Instant::now()));
    let mut stop_requested = false;
    let mut interrupts = 0;
    let mut buffer = vec![0_u8; 64 << 10];
    loop {
        if let Some((ended, at)) = ended {
            let silent = ends.outputs.is_empty() && ends.terminal.is_none();
            if silent || at.elapsed() > OUTPUT_GRACE {
                if let Some(log) = log {
                    let _ = log.finish();
                }
                drop(raw);
                return Ok(ProcessEnd { stop_requested, ..ended });
            }
        }
        let ready = wait(&ends, signals, ended.is_some())?;
        if ready.signal {
            while let Some(event) = signals.next() {
                match event {
                    SignalEvent::Child => on_child(),
                    SignalEvent::Resized => {
                        ends.terminal.iter().for_each(|terminal| copy_size(terminal.as_fd()));
                    }
                    SignalEvent::Forward(signal) => {
                        stop_requested |= asks_to_stop(signal);
                        interrupts += u32::from(signal == Signal::SIGINT);
                        let signal = if interrupts >= MAX_INTERRUPTS { Signal::SIGKILL } else { signal };
                        crate::supervise::signal::deliver(pid, signal);
                    }
                }
            }
            if ended.is_none() {
                ended = reap(pid).map(|ended| (ended, Instant::now()));
            }
        }
        if ready.typed && ends.input.is_none() && !copy_keys(&mut ends, &mut buffer) {
            ends.typed = false;
        }
        if let Some(input) = &mut ends.input {
            if ready.typed {
                input.fill(&mut buffer);
            }
            if !input.flush() {
                ends.input = None;
            }
        }
        let before = Instant::now();
        read_outputs(&mut ends, &ready, &mut buffer, &mut log);
        if let Some((_, at)) = &mut ended {
            // Time in which our own reader was slow does not count.
            *at += before.elapsed();
        }
    }
}

struct Ready {
    signal: bool,
    typed: bool,
    terminal: bool,
    outputs: Vec<bool>,
}

fn wait(ends: &StreamEnds, signals: &Signals, exited: bool) -> Result<Ready, RuntimeError> {
    let stdin = io::stdin();
    let mut polled = vec![PollFd::new(signals.descriptor.as_fd(), PollFlags::POLLIN)];
    polled.extend(ends.outputs.iter().map(|(file, _)| PollFd::new(file.as_fd(), PollFlags::POLLIN)));
    let terminal = ends.terminal.as_ref().map(|file| {
        polled.push(PollFd::new(file.as_fd(), PollFlags::POLLIN));
        polled.len() - 1
    });
    let typed = (ends.typed && ends.terminal.is_some() && !exited).then(|| {
        polled.push(PollFd::new(stdin.as_fd(), PollFlags::POLLIN));
        polled.len() - 1
    });
    let reads = |input: &StdinPipe| input.pending.is_empty() && !input.ended && !exited;
    let piped = ends.input.as_ref().filter(|input| reads(input)).map(|_| {
        polled.push(PollFd::new(stdin.as_fd(), PollFlags::POLLIN));
        polled.len() - 1
    });
    if let Some(input) = ends.input.as_ref().filter(|input| !input.pending.is_empty()) {
        polled.push(PollFd::new(input.pipe.as_fd(), PollFlags::POLLOUT));
    }
    let limit = if exited { timeout(OUTPUT_GRACE) } else { PollTimeout::NONE };
    match poll(&mut polled, limit) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => {}
        Err(error) => return Err(RuntimeError::system("cannot wait for the container", error)),
    }
    let has = |index: usize| {
        polled.get(index).and_then(|polled| polled.revents()).is_some_and(|events| !events.is_empty())
    };
    Ok(Ready {
        signal: has(0),
        typed: typed.or(piped).is_some_and(has),
        terminal: terminal.is_some_and(has),
        outputs: (1..=ends.outputs.len()).map(has).collect(),
    })
}

/// Copies available output to the log and to our own outputs, and drops streams at their end.
fn read_outputs(ends: &mut StreamEnds, ready: &Ready, buffer: &mut [u8], log: &mut Option<&mut LogWriter>) {
    let attached = ends.attached;
    let mut closed = Vec::new();
    for (index, (file, stream)) in ends.outputs.iter().enumerate() {
        if ready.outputs.get(index) == Some(&true) && !copy_output(file, *stream, attached, buffer, log) {
            closed.push(index);
        }
    }
    for index in closed.into_iter().rev() {
        ends.outputs.remove(index);
    }
    if ready.terminal
        && let Some(terminal) = &ends.terminal
        && !copy_output(terminal, Stream::Out, attached, buffer, log)
    {
        ends.terminal = None;
    }
}

/// Copies available output. Returns false at the end.
fn copy_output(
    file: &File,
    stream: Stream,
    attached: bool,
    buffer: &mut [u8],
    log: &mut Option<&mut LogWriter>,
) -> bool {
    // A terminal whose other end is closed returns an error instead of an end.
    let Ok(count @ 1..) = read_some(file, buffer) else { return false };
    let bytes = buffer.part(..count);
    if let Some(log) = log {
        // On a full disk the container continues without a log.
        let _ = log.write(stream, bytes);
    }
    // If our output has no reader, closing the pipe makes the next write of the process fail, as in
    // a pipeline.
    !attached || forward(stream, bytes)
}

/// Writes to our own output. Returns false if it has no reader any more.
fn forward(stream: Stream, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        let written = match stream {
            Stream::Out => rustix::io::write(rustix::stdio::stdout(), bytes),
            Stream::Err => rustix::io::write(rustix::stdio::stderr(), bytes),
        };
        match written {
            Ok(count) => bytes = bytes.part(count..),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                // A process that shares it has made it non-blocking.
                let output =
                    if stream == Stream::Out { rustix::stdio::stdout() } else { rustix::stdio::stderr() };
                let _ = poll(&mut [PollFd::new(output, PollFlags::POLLOUT)], PollTimeout::NONE);
            }
            Err(Errno::PIPE) => return false,
            // For example a file on a full disk: the container continues, and its log is kept.
            Err(_) => return true,
        }
    }
    true
}

fn copy_keys(ends: &mut StreamEnds, buffer: &mut [u8]) -> bool {
    let Ok(count @ 1..) = read_some(io::stdin().lock(), buffer) else { return false };
    let keys = buffer.part(..count);
    ends.terminal.as_mut().is_some_and(|terminal| terminal.write_all(keys).is_ok())
}

fn reap(pid: i32) -> Option<ProcessEnd> {
    let status = waitpid(Pid::from_raw(pid), Some(WaitPidFlag::WNOHANG)).ok()?;
    match status {
        WaitStatus::Exited(_, code) => Some(ProcessEnd { code, stop_requested: false }),
        WaitStatus::Signaled(_, signal, _) => {
            Some(ProcessEnd { code: 128 + signal as i32, stop_requested: false })
        }
        _ => None,
    }
}

fn timeout(limit: Duration) -> PollTimeout {
    let milliseconds = limit.as_millis().saturating_add(1);
    PollTimeout::try_from(i32::try_from(milliseconds).unwrap_or(i32::MAX)).unwrap_or(PollTimeout::MAX)
}
