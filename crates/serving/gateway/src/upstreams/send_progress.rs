//! How much of a request has been sent, observed where it is written.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How much of the current request has been sent.
#[derive(Debug, Default)]
pub(crate) struct SendProgress {
    /// Whether it has a body, and whether that has been taken to its end.
    pub(super) has_body: AtomicBool,
    pub(super) is_body_taken: AtomicBool,
    /// Whether something that was taken is not with the system yet.
    pub(super) has_unsent: AtomicBool,
}

impl SendProgress {
    /// A request begins; `is_empty` if it has no body.
    pub(crate) fn begin(&self, is_empty: bool) {
        self.has_body.store(!is_empty, Ordering::Relaxed);
        self.is_body_taken.store(is_empty, Ordering::Relaxed);
    }

    pub(crate) fn body_taken(&self) {
        self.is_body_taken.store(true, Ordering::Relaxed);
    }
}

/// A stream that notes whether everything written to it has been passed on. All of it happens on one thread.
pub(super) struct ObservedStream<S> {
    pub(super) stream: S,
    pub(super) progress: Arc<SendProgress>,
}

impl<S: AsyncRead + Unpin> AsyncRead for ObservedStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ObservedStream<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.progress.has_unsent.store(true, Ordering::Relaxed);
        Pin::new(&mut this.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.progress.has_unsent.store(true, Ordering::Relaxed);
        Pin::new(&mut this.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// hyper flushes once it has written everything that it has.
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.stream).poll_flush(context);
        if matches!(flushed, Poll::Ready(Ok(()))) {
            this.progress.has_unsent.store(false, Ordering::Relaxed);
        }
        flushed
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
