//! Network namespaces, held by a file descriptor.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::LinkNameSpaceType;

use crate::{NetnsError, Result, sys};

/// A network namespace. It exists as long as this value, a process in it, or a path it is bound to.
#[derive(Debug)]
pub struct Namespace {
    descriptor: OwnedFd,
}

impl Namespace {
    /// Creates a namespace that contains only a loopback device, which is up.
    ///
    /// The caller stays in its namespace: a temporary thread creates the new one, and is gone when this returns, because
    /// user namespaces and libcontainer require a single-threaded process. Needs `CAP_SYS_ADMIN` in the user namespace of
    /// the caller, so root or an own user namespace.
    ///
    /// Any user may listen on any port, as in docker, if `/proc/sys` is writable.
    pub fn create() -> Result<Self> {
        let opened = run_on_thread(|| {
            sys::unshare_network().map_err(|source| NetnsError::Create { source })?;
            sys::bring_up_loopback().map_err(|source| NetnsError::Loopback { source })?;
            // Optional, and `/proc/sys` is read-only inside a container.
            let _ = fs::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
            File::open("/proc/thread-self/ns/net").map_err(|source| NetnsError::Create { source })
        })?;
        opened.map(Self::from)
    }

    /// Opens a namespace by path: one made by [`bind_to`](Self::bind_to), or a link in `/proc`.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = |source| NetnsError::Open { path: path.to_owned(), source };
        let opened = File::open(path).map_err(failed)?;
        let kind = rustix::fs::fstatfs(&opened).map_err(|error| failed(error.into()))?.f_type;
        if kind != NSFS_MAGIC {
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "not a namespace")));
        }
        Ok(Self::from(opened))
    }

    /// Binds the namespace to a path, so that a container runtime can join it. The file is created if necessary.
    pub fn bind_to(&self, path: &Path) -> Result<()> {
        let failed = |source| NetnsError::Bind { path: path.to_owned(), source };
        OpenOptions::new().create(true).append(true).open(path).map_err(failed)?;
        let own = format!("/proc/self/fd/{}", self.descriptor.as_raw_fd());
        rustix::mount::mount_bind(own, path).map_err(|error| failed(error.into()))
    }

    /// Moves the calling thread into the namespace. Open sockets stay in their namespace.
    pub fn enter(&self) -> Result<()> {
        rustix::thread::move_into_link_name_space(self.descriptor.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(|error| NetnsError::Enter { source: error.into() })
    }
}

/// `f_type` of nsfs.
const NSFS_MAGIC: rustix::fs::FsWord = 0x6e73_6673;

impl From<File> for Namespace {
    fn from(file: File) -> Self {
        Self { descriptor: file.into() }
    }
}

impl From<OwnedFd> for Namespace {
    fn from(descriptor: OwnedFd) -> Self {
        Self { descriptor }
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Runs a function on a new thread, and waits until the kernel has removed that thread.
fn run_on_thread<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T> {
    let (done, thread) = thread::scope(|scope| {
        let spawned = thread::Builder::new()
            .name("netns".to_owned())
            .spawn_scoped(scope, || (work(), rustix::thread::gettid()))
            .map_err(|source| NetnsError::Thread { source })?;
        spawned.join().or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    wait_until_gone(Path::new(&format!("/proc/self/task/{}", thread.as_raw_nonzero())))?;
    Ok(done)
}

/// Joining a thread returns shortly before the kernel removes it.
fn wait_until_gone(thread: &Path) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(5);
    while thread.exists() {
        if Instant::now() > deadline {
            return Err(NetnsError::ThreadRemains);
        }
        thread::yield_now();
    }
    Ok(())
}
