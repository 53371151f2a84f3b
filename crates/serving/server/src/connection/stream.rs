//! A socket that reports its reads and writes to the connection's activity.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

use crate::connection::monitor::ConnectionActivity;
use crate::limits::memory::{Budget, Reservation};

/// Size of an incomplete head that is not worth counting.
const SMALL_HEAD: usize = 8 << 10;
/// Bytes that one connection may read before others get their turn. The runtime counts reads, and a hundred large ones
/// would take tens of milliseconds.
const BURST: usize = 64 << 10;
/// Interval at which a half-closed client is checked for having disconnected.
const LIVENESS_INTERVAL: Duration = Duration::from_millis(20);
/// How long a client may continue to send a body that is no longer read, after the response.
const LINGER: Duration = Duration::from_secs(2);
/// The interim response for a half-closed client: a live one ignores it, the system of a
/// disconnected one replies with a reset.
const INTERIM: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

pub(crate) struct MonitoredStream {
    stream: TcpStream,
    activity: Arc<ConnectionActivity>,
    budget: Arc<Budget>,
    /// Bytes read since the last complete head, the number of heads by then, and the reservation of the bytes.
    head: usize,
    heads: u32,
    held: Option<Reservation>,
    /// Bytes read since the socket was last empty.
    burst: usize,
    /// Whether this is plain HTTP and not TLS, which has its own way to close the sending side.
    plain: bool,
    half_closed: Option<HalfClosed>,
    /// The end of the time for a client whose body is not read.
    linger: Option<Pin<Box<Sleep>>>,
}

/// A client that has closed its sending side but may still wait for its response.
struct HalfClosed {
    check: Pin<Box<Sleep>>,
    probed: bool,
}

impl MonitoredStream {
    pub(crate) fn new(
        stream: TcpStream,
        activity: Arc<ConnectionActivity>,
        budget: Arc<Budget>,
        plain: bool,
    ) -> Self {
        Self {
            stream,
            activity,
            budget,
            head: 0,
            heads: 0,
            held: None,
            burst: 0,
            plain,
            half_closed: None,
            linger: None,
        }
    }

    /// Counts the bytes of incomplete heads, so that many of them cannot take all memory.
    fn count_head(&mut self, bytes: usize) -> io::Result<()> {
        let heads = self.activity.heads();
        if heads != self.heads {
            (self.heads, self.head, self.held) = (heads, 0, None);
        }
        if self.activity.is_busy() {
            return Ok(());
        }
        // The last bytes may belong to a body; those before them were not enough for a head.
        if self.head > SMALL_HEAD {
            let held = self.held.get_or_insert_with(|| Reservation::new(&self.budget));
            held.cover(self.head).map_err(io::Error::other)?;
        }
        self.head += bytes;
        Ok(())
    }

    /// A client that closed its sending side may have disconnected or may wait for its response;
    /// TCP does not distinguish the two. So as long as a response is due, the end is hidden from
    /// the protocol, and an interim response, which HTTP/1.1 clients must expect, finds out: the
    /// system of a disconnected client replies with a reset.
    fn poll_half_closed(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let state = self
            .half_closed
            .get_or_insert_with(|| HalfClosed { check: Box::pin(sleep(LIVENESS_INTERVAL)), probed: false });
        if !state.probed && self.activity.accepts_interim() && !self.activity.wants_body() {
            // A client with a full socket is noticed anyway.
            state.probed = match self.stream.try_write(INTERIM) {
                Ok(_) => true,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
                Err(error) => return Poll::Ready(Err(error)),
            };
        }
        while state.check.as_mut().poll(context).is_ready() {
            if let Some(error) = self.stream.take_error()? {
                return Poll::Ready(Err(error));
            }
            if !self.activity.owes_response() || self.activity.wants_body() {
                return Poll::Ready(Ok(()));
            }
            state.check = Box::pin(sleep(LIVENESS_INTERVAL));
        }
        Poll::Pending
    }

    /// Reads what the client still sends, because closing a socket with unread bytes resets the connection: the client would
    /// lose a response that it has not read yet.
    fn poll_linger(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let linger = self.linger.get_or_insert_with(|| Box::pin(sleep(LINGER)));
        if linger.as_mut().poll(context).is_ready() {
            return Poll::Ready(Ok(()));
        }
        let mut unread = [0; 16 << 10];
        for _ in 0..BURST / unread.len() {
            let mut buffer = ReadBuf::new(&mut unread);
            match Pin::new(&mut self.stream).poll_read(context, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {}
                outcome => return outcome,
            }
        }
        context.waker().wake_by_ref();
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

impl AsyncRead for MonitoredStream {
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
        if read == 0 && buffer.remaining() > 0 && this.plain && this.activity.owes_response() {
            return this.poll_half_closed(context);
        }
        Poll::Ready(this.count_head(read))
    }
}

impl AsyncWrite for MonitoredStream {
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
        let this = self.get_mut();
        if this.linger.is_none() {
            ready!(Pin::new(&mut this.stream).poll_shutdown(context))?;
            if !this.activity.left_body_unread() {
                return Poll::Ready(Ok(()));
            }
        }
        this.poll_linger(context)
    }
}
