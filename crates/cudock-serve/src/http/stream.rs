//! The socket of a connection, watched: what it reads and writes is what the connection is doing.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

use super::activity::Activity;
use crate::memory::{Budget, Reservation};

/// Bytes of an unfinished head that are not worth counting.
const SMALL_HEAD: usize = 8 << 10;
/// Bytes that one connection may read before others get their turn. The runtime counts reads, and a hundred large ones
/// would take tens of milliseconds.
const BURST: usize = 64 << 10;
/// How often a client that sends no more is checked for having left.
const CHECK: Duration = Duration::from_millis(20);
/// What such a client is sent: a live one skips it, one that has left answers with a reset.
const INTERIM: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// The socket of a connection.
pub(crate) struct WatchedStream {
    stream: TcpStream,
    activity: Arc<Activity>,
    budget: Arc<Budget>,
    /// Bytes read since the last head was complete, how many were by then, and what the bytes hold of the budget.
    head: usize,
    heads: u32,
    held: Option<Reservation>,
    /// Bytes read since the socket last had none.
    burst: usize,
    /// Whether this is HTTP itself and not TLS, which has its own way to say that no more will be sent.
    plain: bool,
    half_closed: Option<HalfClosed>,
}

/// A client that sends no more but may still wait for its answer.
struct HalfClosed {
    check: Pin<Box<Sleep>>,
    asked: bool,
}

impl WatchedStream {
    pub(crate) fn new(stream: TcpStream, activity: Arc<Activity>, budget: Arc<Budget>, plain: bool) -> Self {
        Self { stream, activity, budget, head: 0, heads: 0, held: None, burst: 0, plain, half_closed: None }
    }

    /// Counts the bytes of heads that are not complete, so that many of them cannot take all memory.
    fn count_head(&mut self, bytes: usize) -> io::Result<()> {
        let heads = self.activity.heads();
        if heads != self.heads {
            (self.heads, self.head, self.held) = (heads, 0, None);
        }
        if self.activity.is_busy() {
            return Ok(());
        }
        // The last bytes may be a body's already; those before them were not enough for a head.
        if self.head > SMALL_HEAD {
            let held = self.held.get_or_insert_with(|| Reservation::new(&self.budget));
            held.cover(self.head).map_err(io::Error::other)?;
        }
        self.head += bytes;
        Ok(())
    }

    /// A client that closed its sending side may have left or may wait for its answer; TCP does not tell. So as long
    /// as an answer is owed the end is kept from the protocol, and an interim response, which clients of HTTP/1.1 must
    /// expect, finds out: the system of a client that has left answers it with a reset.
    fn poll_half_closed(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let state = self
            .half_closed
            .get_or_insert_with(|| HalfClosed { check: Box::pin(sleep(CHECK)), asked: false });
        if !state.asked && self.activity.takes_interim() && !self.activity.wants_body() {
            // A socket that is full has the client's attention already.
            state.asked = match self.stream.try_write(INTERIM) {
                Ok(_) => true,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
                Err(error) => return Poll::Ready(Err(error)),
            };
        }
        while state.check.as_mut().poll(context).is_ready() {
            if let Some(error) = self.stream.take_error()? {
                return Poll::Ready(Err(error));
            }
            if !self.activity.owes_answer() || self.activity.wants_body() {
                return Poll::Ready(Ok(()));
            }
            state.check = Box::pin(sleep(CHECK));
        }
        Poll::Pending
    }

    fn note_write(&self, outcome: &Poll<io::Result<usize>>) {
        match outcome {
            Poll::Pending => self.activity.blocked(),
            Poll::Ready(Ok(_)) => self.activity.wrote(),
            Poll::Ready(Err(_)) => {}
        }
    }
}

impl AsyncRead for WatchedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.burst >= BURST {
            this.burst = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let outcome = Pin::new(&mut this.stream).poll_read(context, buffer);
        if !matches!(outcome, Poll::Ready(Ok(()))) {
            this.burst = 0;
            return outcome;
        }
        let read = buffer.filled().len() - before;
        this.burst += read;
        if read == 0 && buffer.remaining() > 0 && this.plain && this.activity.owes_answer() {
            return this.poll_half_closed(context);
        }
        Poll::Ready(this.count_head(read))
    }
}

impl AsyncWrite for WatchedStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.note_write(&outcome);
        outcome
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.stream).poll_write_vectored(context, slices);
        this.note_write(&outcome);
        outcome
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
