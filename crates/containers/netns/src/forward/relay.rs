//! Relays bytes between two TCP connections.

use cudock_base::bug::Parts;
use std::cell::RefCell;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::pipe::{PipeFlags, SpliceFlags};
use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::budget::{DescriptorBudget, DescriptorPermit};

/// The number of bytes moved at once.
const CHUNK: usize = 256 * 1024;

/// The number of bytes in one direction after which a connection gets its own pipes. Most connections never reach it, and
/// need two descriptors instead of six.
const BULK: usize = 1024 * 1024;

/// How the bytes of a connection are copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RelayMode {
    /// Through a buffer in user space.
    Copy,
    /// Likewise, until a connection turns out to be a bulk transfer; then inside the kernel by splice(2).
    #[default]
    Splice,
}

impl RelayMode {
    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Copy, Self::Splice].into_iter().find(|one| one.to_string() == name)
    }
}

impl fmt::Display for RelayMode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Copy => "copy",
            Self::Splice => "splice",
        })
    }
}

/// Relays bytes in both directions until both have ended.
///
/// A half-close is passed on, so that a response can follow the end of a request. Only what has been written is read: a
/// slow reader slows its writer down, and an idle connection needs no memory. A connection that is reset resets the other,
/// so that a truncated stream is never mistaken for a complete one.
pub(super) async fn relay(
    one: &TcpStream,
    other: &TcpStream,
    relay_mode: RelayMode,
    budget: &DescriptorBudget,
) {
    let there = relay_one_way(one, other, relay_mode, budget);
    let back = relay_one_way(other, one, relay_mode, budget);
    if tokio::try_join!(there, back).is_err() {
        for broken in [one, other] {
            // Closing then sends a reset; if this fails, a normal close must do.
            let _ = SockRef::from(broken).set_linger(Some(std::time::Duration::ZERO));
        }
    }
}

async fn relay_one_way(
    from: &TcpStream,
    to: &TcpStream,
    relay_mode: RelayMode,
    budget: &DescriptorBudget,
) -> io::Result<()> {
    let mut moved = 0;
    loop {
        if relay_mode == RelayMode::Splice && moved >= BULK {
            // Without descriptors for a pipe, continue in user space.
            if let Some(pipe) = budget.try_acquire(2).and_then(Pipe::new) {
                pipe.carry(from, to).await?;
                break;
            }
            moved = 0;
        }
        match copy(from, to).await? {
            0 => break,
            count => moved += count,
        }
    }
    // The peer may be gone, which the other direction will notice.
    let _ = SockRef::from(to).shutdown(std::net::Shutdown::Write);
    Ok(())
}

thread_local! {
    /// Shared by all connections of a thread, because it is empty whenever one of them waits.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; CHUNK].into());
}

/// Calls a function with the buffer of this thread.
pub(super) fn with_scratch<T>(work: impl FnOnce(&mut [u8]) -> T) -> T {
    SCRATCH.with_borrow_mut(|scratch| work(scratch))
}

/// Copies what is available; returns the number of bytes, or 0 at the end.
async fn copy(from: &TcpStream, to: &TcpStream) -> io::Result<usize> {
    loop {
        from.readable().await?;
        let step = with_scratch(|scratch| {
            let count = from.try_read(scratch)?;
            let read = scratch.part(..count);
            let written = if count == 0 { Ok(0) } else { to.try_write(read) };
            let written = written.or_else(|error| if would_block(&error) { Ok(0) } else { Err(error) })?;
            Ok((count, read.part(written..).to_vec()))
        });
        match step {
            Ok((count, left)) => {
                write_all(to, &left).await?;
                return Ok(count);
            }
            Err(error) if would_block(&error) => {}
            Err(error) => return Err(error),
        }
    }
}

async fn write_all(to: &TcpStream, mut left: &[u8]) -> io::Result<()> {
    while !left.is_empty() {
        to.writable().await?;
        match to.try_write(left) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => left = left.part(written..),
            Err(error) if would_block(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn would_block(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

/// A kernel buffer between two sockets.
struct Pipe {
    out: OwnedFd,
    into: OwnedFd,
    _permit: DescriptorPermit,
}

impl Pipe {
    fn new(permit: DescriptorPermit) -> Option<Self> {
        let (out, into) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).ok()?;
        // The kernel limits the pipe pages of a user; a smaller pipe is only slower.
        let _ = rustix::pipe::fcntl_setpipe_size(&into, CHUNK);
        Some(Self { out, into, _permit: permit })
    }

    /// Relays until the end.
    async fn carry(&self, from: &TcpStream, to: &TcpStream) -> io::Result<()> {
        loop {
            // The pipe is empty here, so if nothing can be moved, the socket has no data.
            from.readable().await?;
            let mut left = match from.try_io(Interest::READABLE, || splice(from, &self.into, CHUNK)) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) if would_block(&error) => continue,
                Err(error) => return Err(error),
            };
            while left > 0 {
                to.writable().await?;
                match to.try_io(Interest::WRITABLE, || splice(&self.out, to, left)) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(count) => left = left.saturating_sub(count),
                    Err(error) if would_block(&error) => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }
}

fn splice(from: impl AsFd, to: impl AsFd, limit: usize) -> io::Result<usize> {
    rustix::pipe::splice(from, None, to, None, limit, SpliceFlags::NONBLOCK | SpliceFlags::MOVE)
        .map_err(io::Error::from)
}
