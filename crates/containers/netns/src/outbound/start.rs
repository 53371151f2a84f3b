//! Runs the tool for outbound connections.

use std::fs::File;
use std::io::{Read, Seek};
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::MemfdFlags;
use rustix::pipe::PipeFlags;
use rustix::process::Signal;

use super::host::{HostAccess, HostRoute};
use super::tool::{OutboundTool, Tool};
use super::{pasta, slirp};
use crate::child_process::ChildProcess;
use crate::{Namespace, NetnsError, Result, sys};

/// The time limit for connecting the namespace; it usually takes milliseconds.
const READY_TIMEOUT: Duration = Duration::from_secs(20);

/// The amount of error output to keep.
const MAX_OUTPUT: u64 = 4096;

/// A process that connects a namespace to the host's networks. Killed on drop.
#[derive(Debug)]
pub struct Outbound {
    process: ChildProcess,
    tool: Tool,
    host: HostRoute,
    /// Closing it ends slirp4netns.
    _alive: OwnedFd,
}

impl Outbound {
    /// Starts the tool for a namespace, and waits until the namespace is connected. It ends with the calling thread.
    pub fn start(tool: &OutboundTool, namespace: &Namespace, access: HostAccess) -> Result<Self> {
        let host = HostRoute::choose(access, tool)?;
        // The tools report a missing device in different ways, and not always by name.
        let tun = File::options().read(true).write(true).open("/dev/net/tun");
        tun.map_err(|source| NetnsError::Tun { source })?;
        let failed = |source| NetnsError::Start { program: tool.path.display().to_string(), source };
        let no_pipe = |error: rustix::io::Errno| failed(error.into());
        let (is_ready, ready) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(no_pipe)?;
        let (exit, alive) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(no_pipe)?;
        let mut stderr =
            File::from(rustix::fs::memfd_create("stderr", MemfdFlags::CLOEXEC).map_err(no_pipe)?);
        let mut command = Command::new(&tool.path);
        // Both tools drop privileges before they open the namespace, and newer versions of pasta close all inherited
        // descriptors except the standard streams. So the namespace is passed as standard input.
        command.stdin(namespace.as_fd().try_clone_to_owned().map_err(failed)?);
        command.stdout(Stdio::null()).stderr(stderr.try_clone().map_err(failed)?).process_group(0);
        let path = Path::new("/proc/self/fd/0");
        let ready_number = ready.as_raw_fd();
        let mut ready = Some(ready);
        let mut keep = Vec::new();
        match tool.tool {
            Tool::Pasta => {
                command.args(pasta::arguments(path, rustix::process::geteuid().is_root(), host));
                if let Some(ready) = ready.take() {
                    command.stdout(ready);
                }
            }
            Tool::Slirp4netns => {
                command.args(slirp::arguments(path, ready_number, exit.as_raw_fd()));
                keep.extend([ready_number, exit.as_raw_fd()]);
            }
        }
        sys::tie_to_parent(&mut command, Signal::KILL, keep);
        let process = ChildProcess::start(&mut command)?;
        // From here on, only the tool has the write end, so that its exit is noticed.
        drop((ready, exit, command));
        let mut outbound = Self { process, tool: tool.tool, host, _alive: alive };
        if wait_until(is_ready) {
            return Ok(outbound);
        }
        let end = outbound.process.stop().map_or_else(String::new, |status| status.to_string());
        Err(NetnsError::Outbound {
            program: tool.tool.to_string(),
            output: error_output(&mut stderr).unwrap_or(end),
        })
    }

    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The address, inside, of the host's name server, even if that listens only on the host's loopback device.
    pub fn name_server(&self) -> IpAddr {
        match self.tool {
            Tool::Pasta => pasta::NAME_SERVER,
            Tool::Slirp4netns => slirp::NAME_SERVER,
        }
    }

    /// The address, inside, of the host itself, if the container needs one.
    pub fn host_address(&self) -> Option<IpAddr> {
        self.host.address()
    }

    /// Waits up to `time`; returns whether the process has exited.
    pub fn ends_within(&self, time: Duration) -> bool {
        self.process.ends_within(time)
    }
}

/// Waits until something is written to the pipe; false on timeout or if it is closed.
fn wait_until(ready: OwnedFd) -> bool {
    let Ok(limit) = Timespec::try_from(READY_TIMEOUT) else { return false };
    let mut watched = [PollFd::new(&ready, PollFlags::IN)];
    let is_readable = matches!(rustix::event::poll(&mut watched, Some(&limit)), Ok(1..));
    is_readable && File::from(ready).read(&mut [0; 16]).is_ok_and(|count| count > 0)
}

/// The whole error output in one line: the cause is not always last.
fn error_output(stderr: &mut File) -> Option<String> {
    let mut text = Vec::new();
    stderr.rewind().ok()?;
    stderr.take(MAX_OUTPUT).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    let noise = |line: &str| line.is_empty() || line.ends_with("bytes to syslog");
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !noise(line)).collect();
    (!lines.is_empty()).then(|| lines.join("; "))
}
