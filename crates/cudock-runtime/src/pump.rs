//! Everything that happens while a container runs, in one thread: what it writes goes to the log and to us, what we are
//! told by signals goes to it, and its end is noticed.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::error::{OnSystem, RuntimeError};
use crate::log::{Stream, Writer, read_some};
use crate::terminal::{Raw, copy_size};
use crate::user::Identity;

/// The signals that are passed on to the container.
const PASSED: [Signal; 6] =
    [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGUSR1, Signal::SIGUSR2];

/// So many interrupts mean that whoever sends them is not being heard.
const ENOUGH: u32 = 3;

/// How long output may come after the end of the first process.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Our side of signals: they wait to be read instead of interrupting.
#[derive(Debug)]
pub(crate) struct Signals {
    descriptor: SignalFd,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    /// A child ended, or several.
    Child,
    /// Our terminal changed its size.
    Resized,
    /// One of those that are passed on.
    Passed(Signal),
}

impl Signals {
    /// From now on signals wait to be read.
    pub(crate) fn hold() -> Result<Self, RuntimeError> {
        let mut set = SigSet::empty();
        for signal in PASSED.into_iter().chain([Signal::SIGCHLD, Signal::SIGWINCH]) {
            set.add(signal);
        }
        set.thread_block().when("cannot block signals")?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        Ok(Self { descriptor: SignalFd::with_flags(&set, flags).when("cannot read signals")? })
    }

    /// The next that came.
    pub(crate) fn next(&mut self) -> Option<Heard> {
        let info = self.descriptor.read_signal().ok().flatten()?;
        let number = i32::try_from(info.ssi_signo).ok()?;
        Some(match Signal::try_from(number).ok()? {
            Signal::SIGCHLD => Heard::Child,
            Signal::SIGWINCH => Heard::Resized,
            other => Heard::Passed(other),
        })
    }

    /// Waits for a signal that asks us to end, for so long at most. Whether one came.
    pub(crate) fn asked_to_end_within(&mut self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        loop {
            while let Some(heard) = self.next() {
                if matches!(heard, Heard::Passed(_)) {
                    return true;
                }
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

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    /// 128 and the signal's number where a signal ended it.
    pub(crate) code: i32,
    /// Whether SIGKILL did.
    pub(crate) killed: bool,
    /// Whether we were told to end it.
    pub(crate) told: bool,
}

/// What a process is connected to on our side.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    /// Where its outputs come out.
    pub(crate) outputs: Vec<(File, Stream)>,
    /// Its terminal.
    pub(crate) terminal: Option<File>,
    /// Whether what it writes goes to our own outputs, too.
    pub(crate) attached: bool,
    /// Whether our standard input goes to its terminal.
    pub(crate) typed: bool,
    /// Where our standard input goes without a terminal.
    pub(crate) input: Option<Input>,
}

/// The pipe that a process reads as its standard input. It never makes us wait: a process that writes while nobody
/// reads it, because we write to it, would wait for ever.
#[derive(Debug)]
pub(crate) struct Input {
    pipe: File,
    pending: Vec<u8>,
    ended: bool,
}

impl Input {
    /// Reads what is on our standard input.
    fn fill(&mut self, buffer: &mut [u8]) {
        match read_some(io::stdin().lock(), buffer) {
            Ok(count @ 1..) => self.pending.extend_from_slice(buffer.get(..count).unwrap_or_default()),
            _ => self.ended = true,
        }
    }

    /// Passes on as much as the process takes; false when that was all there will ever be.
    fn flush(&mut self) -> bool {
        if !self.pending.is_empty() {
            match (&self.pipe).write(&self.pending) {
                Ok(count) => drop(self.pending.drain(..count)),
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                // The process reads no more.
                Err(_) => return false,
            }
        }
        !(self.ended && self.pending.is_empty())
    }
}

/// Pipes for a process, and our ends of them. No file or terminal of the caller becomes the process's own: it could be
/// opened anew by it, or typed into.
pub(crate) fn pipes(stdin: bool, attached: bool) -> Result<([OwnedFd; 3], Ends), RuntimeError> {
    let pipe = || io::pipe().when("cannot make a pipe");
    let (input, stdin) = if stdin {
        let (theirs, ours) = pipe()?;
        let ours = OwnedFd::from(ours);
        rustix::fs::fcntl_setfl(&ours, rustix::fs::OFlags::NONBLOCK).when("cannot make a pipe")?;
        let input = Input { pipe: ours.into(), pending: Vec::new(), ended: false };
        (Some(input), OwnedFd::from(theirs))
    } else {
        (None, File::open("/dev/null").when("cannot open /dev/null")?.into())
    };
    let ((out_reader, stdout), (err_reader, stderr)) = (pipe()?, pipe()?);
    let outputs = vec![
        (File::from(OwnedFd::from(out_reader)), Stream::Out),
        (File::from(OwnedFd::from(err_reader)), Stream::Err),
    ];
    let ends = Ends { outputs, terminal: None, attached, typed: false, input };
    Ok(([stdin, stdout.into(), stderr.into()], ends))
}

/// Gives pipes and terminals to the user of a process, so that it can open `/dev/stdout` and its like.
pub(crate) fn give_to(streams: &[OwnedFd], identity: &Identity) {
    for stream in streams {
        let Ok(about) = rustix::fs::fstat(stream) else { continue };
        let pipe = FileType::from_raw_mode(about.st_mode) == FileType::Fifo;
        if identity.uid != 0 && (pipe || rustix::termios::isatty(stream)) {
            // A user that does not exist outside cannot be given anything, and does without.
            let _ = rustix::fs::fchown(stream, Some(rustix::fs::Uid::from_raw(identity.uid)), None);
        }
    }
}

impl Ends {
    /// Of a terminal that a container sent.
    pub(crate) fn of_terminal(terminal: OwnedFd, attached: bool, typed: bool) -> Self {
        Self { outputs: Vec::new(), terminal: Some(File::from(terminal)), attached, typed, input: None }
    }
}

/// Stays with a process until it ended and all it wrote was taken in. `on_child` is called when any child of ours has
/// ended.
pub(crate) fn stay(
    pid: i32,
    mut ends: Ends,
    signals: &mut Signals,
    mut log: Option<&mut Writer>,
    on_child: &mut dyn FnMut(),
) -> Result<Ended, RuntimeError> {
    let raw = if ends.attached && ends.typed && ends.terminal.is_some() { Raw::enter() } else { None };
    if let Some(terminal) = ends.terminal.as_ref().filter(|_| ends.attached) {
        copy_size(terminal.as_fd());
    }
    // It may have ended before signals were held back.
    let mut ended = reap(pid).map(|ended| (ended, Instant::now()));
    let mut told = false;
    let mut interrupts = 0;
    let mut buffer = vec![0_u8; 64 << 10];
    loop {
        if let Some((ended, at)) = ended {
            let silent = ends.outputs.is_empty() && ends.terminal.is_none();
            if silent || at.elapsed() > LAST_WORDS {
                break_off(log);
                drop(raw);
                return Ok(Ended { told, ..ended });
            }
        }
        let ready = wait(&ends, signals, ended.is_some())?;
        if ready.signal {
            while let Some(heard) = signals.next() {
                match heard {
                    Heard::Child => on_child(),
                    Heard::Resized => ends.terminal.iter().for_each(|terminal| copy_size(terminal.as_fd())),
                    Heard::Passed(signal) => {
                        told |= !matches!(signal, Signal::SIGUSR1 | Signal::SIGUSR2);
                        interrupts += u32::from(signal == Signal::SIGINT);
                        let signal = if interrupts >= ENOUGH { Signal::SIGKILL } else { signal };
                        crate::signal::deliver(pid, signal);
                    }
                }
            }
            if ended.is_none() {
                ended = reap(pid).map(|ended| (ended, Instant::now()));
            }
        }
        if ready.typed && ends.input.is_none() && !pass_keys(&mut ends, &mut buffer) {
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
        take_in(&mut ends, &ready, &mut buffer, &mut log);
        if let Some((_, at)) = &mut ended {
            // A slow reader of ours takes nothing from the time in which the last output may come.
            *at += before.elapsed();
        }
    }
}

/// Which descriptors have something.
struct Ready {
    signal: bool,
    typed: bool,
    terminal: bool,
    outputs: Vec<bool>,
}

fn wait(ends: &Ends, signals: &Signals, over: bool) -> Result<Ready, RuntimeError> {
    let stdin = io::stdin();
    let mut polled = vec![PollFd::new(signals.descriptor.as_fd(), PollFlags::POLLIN)];
    polled.extend(ends.outputs.iter().map(|(file, _)| PollFd::new(file.as_fd(), PollFlags::POLLIN)));
    let terminal = ends.terminal.as_ref().map(|file| {
        polled.push(PollFd::new(file.as_fd(), PollFlags::POLLIN));
        polled.len() - 1
    });
    let typed = (ends.typed && ends.terminal.is_some() && !over).then(|| {
        polled.push(PollFd::new(stdin.as_fd(), PollFlags::POLLIN));
        polled.len() - 1
    });
    let reads = |input: &Input| input.pending.is_empty() && !input.ended && !over;
    let piped = ends.input.as_ref().filter(|input| reads(input)).map(|_| {
        polled.push(PollFd::new(stdin.as_fd(), PollFlags::POLLIN));
        polled.len() - 1
    });
    if let Some(input) = ends.input.as_ref().filter(|input| !input.pending.is_empty()) {
        polled.push(PollFd::new(input.pipe.as_fd(), PollFlags::POLLOUT));
    }
    let limit = if over { timeout(LAST_WORDS) } else { PollTimeout::NONE };
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

/// Takes what came in to the log and to our own outputs; forgets what is at its end.
fn take_in(ends: &mut Ends, ready: &Ready, buffer: &mut [u8], log: &mut Option<&mut Writer>) {
    let attached = ends.attached;
    let mut lost = Vec::new();
    for (index, (file, stream)) in ends.outputs.iter().enumerate() {
        if ready.outputs.get(index) == Some(&true) && !pass(file, *stream, attached, buffer, log) {
            lost.push(index);
        }
    }
    for index in lost.into_iter().rev() {
        ends.outputs.remove(index);
    }
    if ready.terminal
        && let Some(terminal) = &ends.terminal
        && !pass(terminal, Stream::Out, attached, buffer, log)
    {
        ends.terminal = None;
    }
}

/// Passes on what is there; false at the end.
fn pass(
    file: &File,
    stream: Stream,
    attached: bool,
    buffer: &mut [u8],
    log: &mut Option<&mut Writer>,
) -> bool {
    // A terminal whose other side is closed gives an error in place of an end.
    let Ok(count @ 1..) = read_some(file, buffer) else { return false };
    let bytes = buffer.get(..count).unwrap_or_default();
    if let Some(log) = log {
        // Out of space: the container goes on without a log rather than not at all.
        let _ = log.write(stream, bytes);
    }
    // With nobody left to read it, the process learns so from its own next write, as in a pipeline without us.
    !attached || forward(stream, bytes)
}

/// Writes to our own output; false when nobody will ever read it.
fn forward(stream: Stream, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        let written = match stream {
            Stream::Out => rustix::io::write(rustix::stdio::stdout(), bytes),
            Stream::Err => rustix::io::write(rustix::stdio::stderr(), bytes),
        };
        match written {
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                // Someone we share it with made it so.
                let output =
                    if stream == Stream::Out { rustix::stdio::stdout() } else { rustix::stdio::stderr() };
                let _ = poll(&mut [PollFd::new(output, PollFlags::POLLOUT)], PollTimeout::NONE);
            }
            Err(Errno::PIPE) => return false,
            // A file on a full disk, say: the container goes on, and its log is kept.
            Err(_) => return true,
        }
    }
    true
}

fn pass_keys(ends: &mut Ends, buffer: &mut [u8]) -> bool {
    let Ok(count @ 1..) = read_some(io::stdin().lock(), buffer) else { return false };
    let keys = buffer.get(..count).unwrap_or_default();
    ends.terminal.as_mut().is_some_and(|terminal| terminal.write_all(keys).is_ok())
}

fn break_off(log: Option<&mut Writer>) {
    if let Some(log) = log {
        let _ = log.finish();
    }
}

/// How the process ended, if it did. Other children of ours are cleared away, too.
fn reap(pid: i32) -> Option<Ended> {
    let status = waitpid(Pid::from_raw(pid), Some(WaitPidFlag::WNOHANG)).ok()?;
    match status {
        WaitStatus::Exited(_, code) => Some(Ended { code, killed: false, told: false }),
        WaitStatus::Signaled(_, signal, _) => {
            Some(Ended { code: 128 + signal as i32, killed: signal == Signal::SIGKILL, told: false })
        }
        _ => None,
    }
}

fn timeout(limit: Duration) -> PollTimeout {
    let milliseconds = limit.as_millis().saturating_add(1);
    PollTimeout::try_from(i32::try_from(milliseconds).unwrap_or(i32::MAX)).unwrap_or(PollTimeout::MAX)
}
