//! A network namespace, held by a descriptor.

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

use crate::{Error, Result, sys};

/// A network namespace. It lives as long as this value, a process in it, or a path it is bound to.
#[derive(Debug)]
pub struct Namespace {
    descriptor: OwnedFd,
}

impl Namespace {
    /// A new namespace with nothing in it but a loopback device, which is up.
    ///
    /// The caller stays where it is: a thread makes the namespace, and is gone when this returns, so that a process
    /// of one thread is still one (which user namespaces, and libcontainer, insist on). Needs `CAP_SYS_ADMIN` in the
    /// user namespace the caller lives in, so root or a user namespace of its own.
    ///
    /// As in docker, any user inside may listen on any port, where the host's `/proc/sys` lets us say so.
    pub fn create() -> Result<Self> {
        let opened = on_a_thread(|| {
            sys::unshare_network().map_err(|source| Error::Create { source })?;
            sys::raise_loopback().map_err(|source| Error::Loopback { source })?;
            // Only a convenience to unprivileged servers, and read-only where we are in a container ourselves.
            let _ = fs::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
            File::open("/proc/thread-self/ns/net").map_err(|source| Error::Create { source })
        })?;
        opened.map(Self::from)
    }

    /// The namespace that a process lives in.
    pub fn of_process(pid: u32) -> Result<Self> {
        let opened = File::open(format!("/proc/{pid}/ns/net"));
        opened.map(Self::from).map_err(|source| Error::OfProcess { pid, source })
    }

    /// The namespace that the calling thread lives in.
    pub fn current() -> Result<Self> {
        let opened = File::open("/proc/thread-self/ns/net");
        opened.map(Self::from).map_err(|source| Error::OfProcess { pid: std::process::id(), source })
    }

    /// The namespace behind a path: one that [`bind_to`](Self::bind_to) made, or a link in `/proc`.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = |source| Error::Open { path: path.to_owned(), source };
        let opened = File::open(path).map_err(failed)?;
        let kind = rustix::fs::fstatfs(&opened).map_err(|error| failed(error.into()))?.f_type;
        if kind != NSFS_MAGIC {
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "it is not a namespace")));
        }
        Ok(Self::from(opened))
    }

    /// Binds the namespace to a path, so that a container runtime can join it by name. The file is made if it is not
    /// there. [`unbind`](Self::unbind) undoes it; in a mount namespace of our own it also goes with that.
    pub fn bind_to(&self, path: &Path) -> Result<()> {
        let failed = |source| Error::Bind { path: path.to_owned(), source };
        OpenOptions::new().create(true).append(true).open(path).map_err(failed)?;
        rustix::mount::mount_bind(self.own_path(), path).map_err(|error| failed(error.into()))
    }

    /// Takes away what [`bind_to`](Self::bind_to) made: the mount and the file.
    pub fn unbind(path: &Path) -> Result<()> {
        let failed = |source| Error::Bind { path: path.to_owned(), source };
        rustix::mount::unmount(path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)
            .map_err(|error| failed(error.into()))?;
        fs::remove_file(path).map_err(failed)
    }

    /// Moves the calling thread into the namespace. Its open sockets stay where they were made.
    pub fn enter(&self) -> Result<()> {
        rustix::thread::move_into_link_name_space(self.descriptor.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(|error| Error::Enter { source: error.into() })
    }

    /// Does something inside, on a thread of its own that is gone when this returns: a probe of a service, or making a
    /// socket. The caller stays where it is.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        on_a_thread(|| self.enter().map(|()| work()))?
    }

    /// Where packets to the rest of the world are sent, if anywhere. With a way out that was told to, the host's
    /// loopback device answers there.
    pub fn gateway(&self) -> Result<Option<Ipv4Addr>> {
        let table = self.run(|| fs::read_to_string("/proc/thread-self/net/route"))?;
        Ok(default_gateway(&table.unwrap_or_default()))
    }

    /// What tells it from all other namespaces that exist at the same time: the number in `net:[…]`.
    pub fn number(&self) -> Result<u64> {
        let described = fs::metadata(self.own_path());
        described.map(|it| it.ino()).map_err(|source| Error::Open { path: self.own_path(), source })
    }

    /// A path under which this process has it open.
    fn own_path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.descriptor.as_raw_fd()))
    }
}

/// `f_type` of the file system that namespaces live in.
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

/// Does something on a new thread, and waits until even the kernel has forgotten that thread.
fn on_a_thread<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T> {
    let (done, thread) = thread::scope(|scope| {
        let spawned = thread::Builder::new()
            .name("netns".to_owned())
            .spawn_scoped(scope, || (work(), rustix::thread::gettid()))
            .map_err(|source| Error::Thread { source })?;
        spawned.join().or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    until_gone(Path::new(&format!("/proc/self/task/{}", thread.as_raw_nonzero())))?;
    Ok(done)
}

/// Joining a thread waits for its stack to be free, which is a moment before the kernel forgets the thread.
fn until_gone(thread: &Path) -> Result<()> {
    let patience = Instant::now() + Duration::from_secs(5);
    while thread.exists() {
        if Instant::now() > patience {
            return Err(Error::ThreadRemains);
        }
        thread::yield_now();
    }
    Ok(())
}

/// The gateway of the default route in `/proc/net/route`: device, destination, gateway, …, with addresses as numbers
/// in the machine's order.
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
