//! The terminal of a container, and ours where they are connected.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixListener;
use std::path::Path;

use nix::sys::socket::{ControlMessageOwned, MsgFlags, UnixAddr, recvmsg};
use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use rustix::termios::{Winsize, tcgetwinsize, tcsetwinsize};

use crate::error::{OnFile, OnSystem, RuntimeError};

/// Where libcontainer sends the container's terminal to.
#[derive(Debug)]
pub(crate) struct ConsoleSocket {
    listener: UnixListener,
    path: std::path::PathBuf,
    _folder: File,
}

impl ConsoleSocket {
    /// A socket in the container's folder. Its path is given by a descriptor, since names of sockets are short.
    pub(crate) fn bind(folder: &Path) -> Result<Self, RuntimeError> {
        use std::os::fd::AsRawFd;
        let opened = File::open(folder).on("cannot open", folder)?;
        let path = Path::new("/proc/self/fd").join(opened.as_raw_fd().to_string()).join("console");
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).on("cannot make the console socket", folder)?;
        Ok(Self { listener, path, _folder: opened })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The terminal, once the container was created.
    pub(crate) fn receive(self) -> Result<OwnedFd, RuntimeError> {
        use std::os::fd::AsRawFd;
        let (stream, _) = self.listener.accept().when("no terminal came from the container")?;
        let mut name = [0_u8; 4096];
        let mut parts = [io::IoSliceMut::new(&mut name)];
        let mut space = nix::cmsg_space!(RawFd);
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        let message = recvmsg::<UnixAddr>(stream.as_raw_fd(), &mut parts, Some(&mut space), flags)
            .when("no terminal came from the container")?;
        let mut came = message.cmsgs().when("no terminal came from the container")?;
        let received = came.find_map(|part| match part {
            ControlMessageOwned::ScmRights(descriptors) => descriptors.first().copied(),
            _ => None,
        });
        let missing = io::Error::from(io::ErrorKind::UnexpectedEof);
        let raw =
            received.ok_or_else(|| RuntimeError::system("no terminal came from the container", missing))?;
        let _ = std::fs::remove_file(&self.path);
        Ok(crate::sys::own(raw))
    }
}

/// Our own terminal, passing every key on until this is dropped.
#[derive(Debug)]
pub(crate) struct Raw {
    before: Termios,
}

impl Raw {
    /// Turns our terminal's own handling of keys off; none where standard input is no terminal.
    pub(crate) fn enter() -> Option<Self> {
        let before = tcgetattr(io::stdin()).ok()?;
        let mut raw = before.clone();
        cfmakeraw(&mut raw);
        tcsetattr(io::stdin(), SetArg::TCSANOW, &raw).ok()?;
        Some(Self { before })
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &self.before);
    }
}

/// The size of our own terminal, if we have one.
pub(crate) fn own_size() -> Option<Winsize> {
    tcgetwinsize(io::stdout().as_fd()).or_else(|_| tcgetwinsize(io::stdin().as_fd())).ok()
}

/// Makes a container's terminal as large as ours.
pub(crate) fn copy_size(terminal: BorrowedFd<'_>) {
    if let Some(size) = own_size() {
        let _ = tcsetwinsize(terminal, size);
    }
}
