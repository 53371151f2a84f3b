//! Terminals of containers.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixListener;
use std::path::Path;

use cudock_base::text::terminal::own_size;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, UnixAddr, recvmsg};
use rustix::fs::{Mode, OFlags};
use rustix::pty::OpenptFlags;
use rustix::termios::tcsetwinsize;

use crate::error::{OnError, RuntimeError};
use crate::files::in_root::InRoot;

/// The magic number of devpts, from linux/magic.h.
const DEVPTS: rustix::fs::FsWord = 0x1cd1;

/// The socket to which libcontainer sends the container's terminal.
#[derive(Debug)]
pub(crate) struct ConsoleSocket {
    listener: UnixListener,
    path: std::path::PathBuf,
    _directory: File,
}

impl ConsoleSocket {
    /// Creates a socket in the container's directory. Its path goes through a descriptor, since socket paths are short.
    pub(crate) fn bind(directory: &Path) -> Result<Self, RuntimeError> {
        use std::os::fd::AsRawFd;
        let opened = File::open(directory).on("cannot open", directory)?;
        let path = Path::new("/proc/self/fd").join(opened.as_raw_fd().to_string()).join("console");
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).on("cannot create the console socket in", directory)?;
        Ok(Self { listener, path, _directory: opened })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Receives the terminal after the container was created.
    pub(crate) fn receive(self) -> Result<OwnedFd, RuntimeError> {
        use std::os::fd::AsRawFd;
        let (stream, _) = self.listener.accept().when("cannot receive the container's terminal")?;
        let mut name = [0_u8; 4096];
        let mut parts = [io::IoSliceMut::new(&mut name)];
        let mut space = nix::cmsg_space!(RawFd);
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        let message = recvmsg::<UnixAddr>(stream.as_raw_fd(), &mut parts, Some(&mut space), flags)
            .when("cannot receive the container's terminal")?;
        let mut messages = message.cmsgs().when("cannot receive the container's terminal")?;
        let received = messages.find_map(|message| match message {
            ControlMessageOwned::ScmRights(descriptors) => descriptors.first().copied(),
            _ => None,
        });
        let missing = io::Error::from(io::ErrorKind::UnexpectedEof);
        let raw = received
            .ok_or_else(|| RuntimeError::system("cannot receive the container's terminal", missing))?;
        let _ = std::fs::remove_file(&self.path);
        Ok(crate::namespace::sys::own(raw))
    }
}

/// Opens a new terminal of a running container: our end and the container's. Both are opened from outside after checking
/// the device, which the container may have replaced.
pub(crate) fn open_in(root: &InRoot) -> Result<(OwnedFd, OwnedFd), RuntimeError> {
    use std::os::fd::AsRawFd;
    let path = Path::new("/dev/pts/ptmx");
    let multiplexer = root.open_path(path).on("cannot open the container's", path)?;
    let about = rustix::fs::fstat(&multiplexer).on("cannot read the container's", path)?;
    let system = rustix::fs::fstatfs(&multiplexer).on("cannot read the container's", path)?;
    if about.st_rdev != rustix::fs::makedev(5, 2) || system.f_type != DEVPTS {
        return Err(RuntimeError::Request("the container's /dev/pts is not a devpts".to_owned()));
    }
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let by_number = format!("/proc/self/fd/{}", multiplexer.as_raw_fd());
    let ours = rustix::fs::open(by_number, flags, Mode::empty()).on("cannot open the container's", path)?;
    rustix::pty::unlockpt(&ours).when("cannot open a terminal")?;
    let theirs = other_end(ours.as_fd())?;
    Ok((ours, theirs))
}

pub(crate) fn other_end(ours: BorrowedFd<'_>) -> Result<OwnedFd, RuntimeError> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    rustix::pty::ioctl_tiocgptpeer(ours, flags).when("cannot open the other end of the terminal")
}

pub(crate) fn copy_size(terminal: BorrowedFd<'_>) {
    if let Some(size) = own_size() {
        let _ = tcsetwinsize(terminal, size);
    }
}
