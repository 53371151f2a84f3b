//! Network namespaces, held by a file descriptor.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::mount::UnmountFlags;
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
    /// As in docker, any user may listen on any port, if `/proc/sys` is writable.
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

    pub fn of_process(pid: u32) -> Result<Self> {
        let opened = File::open(format!("/proc/{pid}/ns/net"));
        opened.map(Self::from).map_err(|source| NetnsError::OfProcess { pid, source })
    }

    /// The namespace of the calling thread.
    pub fn current() -> Result<Self> {
        let opened = File::open("/proc/thread-self/ns/net");
        opened.map(Self::from).map_err(|source| NetnsError::OfProcess { pid: std::process::id(), source })
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

    /// Binds the namespace to a path, so that a container runtime can join it. The file is created if necessary. Undone by
    /// [`unbind`](Self::unbind), or when the mount namespace ends.
    pub fn bind_to(&self, path: &Path) -> Result<()> {
        let failed = |source| NetnsError::Bind { path: path.to_owned(), source };
        OpenOptions::new().create(true).append(true).open(path).map_err(failed)?;
        rustix::mount::mount_bind(self.fd_path(), path).map_err(|error| failed(error.into()))
    }

    /// Removes the mount and the file made by [`bind_to`](Self::bind_to).
    pub fn unbind(path: &Path) -> Result<()> {
        let failed = |source| NetnsError::Bind { path: path.to_owned(), source };
        rustix::mount::unmount(path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)
            .map_err(|error| failed(error.into()))?;
        fs::remove_file(path).map_err(failed)
    }

    /// Moves the calling thread into the namespace. Open sockets stay in their namespace.
    pub fn enter(&self) -> Result<()> {
        rustix::thread::move_into_link_name_space(self.descriptor.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(|error| NetnsError::Enter { source: error.into() })
    }

    /// Runs a function inside, on a temporary thread that is gone when this returns. The caller stays in its namespace.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        run_on_thread(|| self.enter().map(|()| work()))?
    }

    /// The default gateway, if any. With [`OutboundOptions::host_loopback`](crate::outbound::OutboundOptions::host_loopback),
    /// the host's loopback device is reachable at this address.
    pub fn gateway(&self) -> Result<Option<Ipv4Addr>> {
        let table = self.run(|| fs::read_to_string("/proc/thread-self/net/route"))?;
        Ok(default_gateway(&table.unwrap_or_default()))
    }

    /// The inode number, which identifies the namespace: the number in `net:[…]`.
    pub fn number(&self) -> Result<u64> {
        let described = fs::metadata(self.fd_path());
        described.map(|it| it.ino()).map_err(|source| NetnsError::Open { path: self.fd_path(), source })
    }

    /// The path of its file descriptor in this process.
    fn fd_path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.descriptor.as_raw_fd()))
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

/// The gateway of the default route in `/proc/net/route`: device, destination, gateway, …, with addresses as hex numbers
/// in native byte order.
fn default_gateway(table: &str) -> Option<Ipv4Addr> {
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (destination, gateway) = (fields.next()?, fields.next()?);
        let gateway = u32::from_str_radix(gateway, 16).ok().filter(|number| *number != 0)?;
        (destination == "00000000").then(|| Ipv4Addr::from(gateway.to_ne_bytes()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn the_gateway_is_that_of_the_default_route() {
        let table = "Iface\tDestination\tGateway \tFlags\n\
                     eth0\t000200C0\t00000000\t0001\n\
                     eth0\t00000000\t010200C0\t0003\n";
        assert_eq!(default_gateway(table), Some(Ipv4Addr::new(192, 0, 2, 1)));
        assert_eq!(default_gateway("Iface\neth0\t00000000\t00000000\n"), None, "a route without a gateway");
        assert_eq!(default_gateway("x\nnonsense"), None);
    }
}
