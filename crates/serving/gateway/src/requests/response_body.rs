//! Bodies of responses: those of batches, and those of upstreams, passed on as they arrive.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use cudock_server::MonitoredBody;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::{Sleep, sleep};

use crate::upstreams::upstream::Exchange;

/// Responses up to this size are copied into one piece, in bytes.
const SMALL_RESPONSE: usize = 16 << 10;

/// The body of a response to a client.
pub(crate) enum GatewayBody {
    Pieces(std::vec::IntoIter<Bytes>),
    Upstream(MonitoredBody<UpstreamBody>),
}

impl GatewayBody {
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::pieces(vec![bytes.into()])
    }

    pub(crate) fn pieces(mut pieces: Vec<Bytes>) -> Self {
        let size = pieces.iter().map(Bytes::len).sum();
        if pieces.len() > 1 && size <= SMALL_RESPONSE {
            let mut whole = BytesMut::with_capacity(size);
            for piece in &pieces {
                whole.extend_from_slice(piece);
            }
            pieces = vec![whole.freeze()];
        }
        pieces.retain(|piece| !piece.is_empty());
        Self::Pieces(pieces.into_iter())
    }
}

impl Body for GatewayBody {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.get_mut() {
            Self::Pieces(pieces) => Poll::Ready(pieces.next().map(|piece| Ok(Frame::data(piece)))),
            Self::Upstream(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Pieces(pieces) => pieces.as_slice().is_empty(),
            Self::Upstream(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Pieces(pieces) => {
                SizeHint::with_exact(pieces.as_slice().iter().map(|piece| piece.len() as u64).sum())
            }
            Self::Upstream(body) => body.size_hint(),
        }
    }
}

/// An answer that is passed on as it arrives. Dropped before its end, it closes the connection to the upstream, which
/// so learns that its client is gone.
pub(crate) struct UpstreamBody {
    body: Incoming,
    exchange: Option<Exchange>,
    /// Longest time without a byte.
    timeout: Duration,
    silence: Option<Pin<Box<Sleep>>>,
}

impl UpstreamBody {
    pub(crate) fn new(body: Incoming, exchange: Exchange, timeout: Duration) -> Self {
        let mut body = Self { body, exchange: Some(exchange), timeout, silence: None };
        if body.body.is_end_stream() {
            body.complete();
        }
        body
    }

    fn complete(&mut self) {
        if let Some(exchange) = self.exchange.take() {
            exchange.complete();
        }
    }
}

impl Body for UpstreamBody {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        match Pin::new(&mut this.body).poll_frame(context) {
            Poll::Ready(frame) => {
                this.silence = None;
                this.exchange.iter().for_each(Exchange::on_heard);
                let frame = match frame.transpose() {
                    Ok(frame) => frame,
                    Err(error) => {
                        this.exchange.take().into_iter().for_each(Exchange::fail);
                        return Poll::Ready(Some(Err(error.into())));
                    }
                };
                // The end of a body without a length is only known once it is there.
                if frame.is_none() || this.body.is_end_stream() {
                    this.complete();
                }
                Poll::Ready(frame.map(Ok))
            }
            Poll::Pending => {
                let timeout = this.timeout;
                let silence = this.silence.get_or_insert_with(|| Box::pin(sleep(timeout)));
                if silence.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                this.exchange.take().into_iter().for_each(Exchange::fail);
                Poll::Ready(Some(Err("the upstream went silent".into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
