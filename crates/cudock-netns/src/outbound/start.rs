//! The process that gives the way out.

use std::fs::File;
use std::io::{Read, Seek};
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::MemfdFlags;
use rustix::pipe::PipeFlags;
use rustix::process::Signal;

use super::tool::{Found, Tool};
use super::{pasta, slirp};
use crate::helper::Helper;
use crate::{Error, Namespace, Result, sys};

/// How long it may take until the namespace is connected; it takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// The device with which an ordinary process can be a network.
const TUN: &str = "/dev/net/tun";

/// So much of what it says is kept for an error.
const MOST_SAID: u64 = 4096;

/// What the container may reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Lets it reach services on the host's loopback device, at the address of its gateway.
    pub host_loopback: bool,
}

/// A process that connects a namespace to the host's network. Dropping this ends it.
#[derive(Debug)]
pub struct Outbound {
    helper: Helper,
    tool: Tool,
    /// Closing it ends slirp4netns.
    _alive: OwnedFd,
}

impl Outbound {
    /// Starts the program for a namespace, and waits until the namespace is connected.
    ///
    /// It ends with the thread that called this.
    pub fn start(found: &Found, namespace: &Namespace, options: Options) -> Result<Self> {
        // What the programs say themselves when it is missing differs by version, and not all name it.
        File::options().read(true).write(true).open(TUN).map_err(|source| Error::Tun { source })?;
        let program = found.path.display().to_string();
        let failed =
            |source: rustix::io::Errno| Error::Start { program: program.clone(), source: source.into() };
        let (is_ready, ready) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(failed)?;
        let (exit, alive) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(failed)?;
        let mut said = File::from(rustix::fs::memfd_create("said", MemfdFlags::CLOEXEC).map_err(failed)?);
        let mut command = Command::new(&found.path);
        let started = |source| Error::Start { program: program.clone(), source };
        // Both programs give up privileges before they open the namespace, and the newer pasta closes what it inherits
        // but for the standard streams. So the namespace is its standard input.
        command.stdin(namespace.as_fd().try_clone_to_owned().map_err(started)?);
        command.stdout(Stdio::null()).stderr(said.try_clone().map_err(started)?).process_group(0);
        let path = Path::new("/proc/self/fd/0");
        let ready_number = ready.as_raw_fd();
        let mut ready = Some(ready);
        let mut keep = Vec::new();
        match found.tool {
            Tool::Pasta => {
                let root = rustix::process::geteuid().is_root();
                command.args(pasta::arguments(path, options, root));
                if let Some(ready) = ready.take() {
                    command.stdout(ready);
                }
            }
            Tool::Slirp4netns => {
                command.args(slirp::arguments(path, options, ready_number, exit.as_raw_fd()));
                keep.extend([ready_number, exit.as_raw_fd()]);
            }
        }
        sys::tie(&mut command, Signal::KILL, keep);
        let helper = Helper::start(&mut command)?;
        // From here on only the program can write there, so that its end is seen.
        drop((ready, exit, command));
        let mut outbound = Self { helper, tool: found.tool, _alive: alive };
        if wait_until(is_ready) {
            return Ok(outbound);
        }
        let end = outbound.helper.stop().map_or_else(String::new, |status| status.to_string());
        Err(Error::Outbound { program: found.tool.to_string(), said: last_words(&mut said).unwrap_or(end) })
    }

    /// Which program it is.
    pub fn tool(&self) -> Tool {
        self.tool
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.helper.pid()
    }

    /// Where, inside, the host's name server answers, even one that listens on the host's loopback device alone.
    pub fn name_server(&self) -> IpAddr {
        match self.tool {
            Tool::Pasta => pasta::NAME_SERVER,
            Tool::Slirp4netns => slirp::NAME_SERVER,
        }
    }

    /// Whether it ends within this time; it should not before it is told to.
    pub fn ends_within(&self, time: Duration) -> bool {
        self.helper.ends_within(time)
    }

    /// Ends it. Says how it ended, unless somebody else has taken its exit status.
    pub fn stop(mut self) -> Option<ExitStatus> {
        self.helper.stop()
    }
}

/// Whether something comes out of the pipe, in time and before its end.
fn wait_until(ready: OwnedFd) -> bool {
    let Ok(limit) = Timespec::try_from(PATIENCE) else { return false };
    let mut watched = [PollFd::new(&ready, PollFlags::IN)];
    let spoke = matches!(rustix::event::poll(&mut watched, Some(&limit)), Ok(1..));
    spoke && File::from(ready).read(&mut [0; 16]).is_ok_and(|count| count > 0)
}

/// All that it said, in one line: the cause is not always the last of it.
fn last_words(said: &mut File) -> Option<String> {
    let mut text = Vec::new();
    said.rewind().ok()?;
    said.take(MOST_SAID).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    let noise = |line: &str| line.is_empty() || line.ends_with("bytes to syslog");
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !noise(line)).collect();
    (!lines.is_empty()).then(|| lines.join("; "))
}
