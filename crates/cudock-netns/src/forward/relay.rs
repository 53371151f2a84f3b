//! Bytes from one connection to the other, until the end of both.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::pipe::{PipeFlags, SpliceFlags};
use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::budget::{Budget, Share};

/// How much is moved at once.
const CHUNK: usize = 256 * 1024;

/// From how many bytes in one direction on a connection is worth pipes of its own. Most never get there, and cost two
/// descriptors instead of six.
const BULK: usize = 1024 * 1024;

/// How bytes of a connection are carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Carriage {
    /// Read into memory of ours and written from there.
    Copy,
    /// The same, until a connection proves to be a big transfer; then moved inside the kernel by splice(2).
    #[default]
    Splice,
}

impl Carriage {
    /// The one with this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Copy, Self::Splice].into_iter().find(|one| one.to_string() == name)
    }
}

impl fmt::Display for Carriage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Copy => "copy",
            Self::Splice => "splice",
        })
    }
}

/// Carries bytes both ways until both have ended.
///
/// The end of one way is passed on alone, so that an answer can still come after the question has ended. Nothing is
/// read that has not been written: a slow reader slows its writer, and a connection at rest costs no memory. A
/// connection that breaks breaks the other, so that nobody takes a part for the whole.
pub(super) async fn both_ways(one: &TcpStream, other: &TcpStream, carriage: Carriage, budget: &Budget) {
    let there = one_way(one, other, carriage, budget);
    let back = one_way(other, one, carriage, budget);
    if tokio::try_join!(there, back).is_err() {
        for broken in [one, other] {
            // Closing then sends a reset. Where it cannot be asked for, an ordinary end has to do.
            let _ = SockRef::from(broken).set_linger(Some(std::time::Duration::ZERO));
        }
    }
}

async fn one_way(from: &TcpStream, to: &TcpStream, carriage: Carriage, budget: &Budget) -> io::Result<()> {
    let mut moved = 0;
    loop {
        if carriage == Carriage::Splice && moved >= BULK {
            // Without descriptors for a pipe, memory will do.
            if let Some(pipe) = budget.take(2).and_then(Pipe::new) {
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
    // The other side may be gone, which its own direction will find out.
    let _ = SockRef::from(to).shutdown(std::net::Shutdown::Write);
    Ok(())
}

thread_local! {
    /// All connections of a thread share it, because nothing stays in it while one of them waits.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; CHUNK].into());
}

/// Does something with memory that nobody else uses meanwhile.
pub(super) fn with_scratch<T>(work: impl FnOnce(&mut [u8]) -> T) -> T {
    SCRATCH.with_borrow_mut(|scratch| work(scratch))
}

/// Carries what is there, and says how much it was; 0 means that the end has come.
async fn copy(from: &TcpStream, to: &TcpStream) -> io::Result<usize> {
    loop {
        from.readable().await?;
        let step = with_scratch(|scratch| {
            let count = from.try_read(scratch)?;
            let read = scratch.get(..count).unwrap_or_default();
            let written = if count == 0 { Ok(0) } else { to.try_write(read) };
            let written = written.or_else(|error| if would_block(&error) { Ok(0) } else { Err(error) })?;
            Ok((count, read.get(written..).unwrap_or_default().to_vec()))
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
            Ok(written) => left = left.get(written..).unwrap_or_default(),
            Err(error) if would_block(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn would_block(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

/// Memory of the kernel's, between two sockets.
struct Pipe {
    out: OwnedFd,
    into: OwnedFd,
    _share: Share,
}

impl Pipe {
    fn new(share: Share) -> Option<Self> {
        let (out, into) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).ok()?;
        // A user's pipes may only have so many pages; a smaller one is slower and no less right.
        let _ = rustix::pipe::fcntl_setpipe_size(&into, CHUNK);
        Some(Self { out, into, _share: share })
    }

    /// Carries until the end.
    async fn carry(&self, from: &TcpStream, to: &TcpStream) -> io::Result<()> {
        loop {
            // The pipe is empty here. So if nothing can be moved, it is the socket that has nothing.
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
