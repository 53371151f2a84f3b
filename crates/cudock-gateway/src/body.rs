//! Bodies: those that clients send, passed on as they arrive, and those of responses.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use cudock_server::{ConnectionActivity, DrainSignal, HttpRejection, MonitoredBody, StallDetector};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::sync::oneshot;
use tokio::time::{Sleep, sleep};

use crate::upstream::Exchange;

/// An upstream that reads nothing for this long is what delays a body, not the client.
const UPSTREAM_PAUSE: Duration = Duration::from_secs(1);
/// Responses up to this size are copied into one piece, in bytes.
const SMALL_RESPONSE: usize = 16 << 10;

/// The body of a request to an upstream.
pub(crate) enum OutgoingBody {
    Whole(Option<Bytes>),
    Client(Box<ClientBody>),
}

impl OutgoingBody {
    /// The body again, if it can be sent twice.
    pub(crate) fn copy(&self) -> Option<Self> {
        match self {
            Self::Whole(bytes) => Some(Self::Whole(bytes.clone())),
            Self::Client(body) if body.is_end_stream() => Some(Self::Whole(None)),
            Self::Client(_) => None,
        }
    }
}

impl Body for OutgoingBody {
    type Data = Bytes;
    type Error = HttpRejection;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpRejection>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Client(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Client(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Client(body) => body.size_hint(),
        }
    }
}

/// A client's body on its way to an upstream. Its size and its speed are limited.
pub(crate) struct ClientBody {
    body: Incoming,
    received: usize,
    limit: usize,
    stall: StallDetector,
    drain: DrainSignal,
    activity: Arc<ConnectionActivity>,
    /// When the upstream was last given something.
    passed_on: Option<Instant>,
    /// Gets the reason if the body is rejected, and is dropped at its end.
    end: Option<oneshot::Sender<HttpRejection>>,
}

impl ClientBody {
    /// The receiver fails once the body is complete, and gets the reason if it is rejected.
    pub(crate) fn new(
        body: Incoming,
        limit: usize,
        stall: StallDetector,
        drain: DrainSignal,
        activity: &Arc<ConnectionActivity>,
    ) -> (Self, oneshot::Receiver<HttpRejection>) {
        let (end, ended) = oneshot::channel();
        let end = (!body.is_end_stream()).then_some(end);
        let activity = Arc::clone(activity);
        (Self { body, received: 0, limit, stall, drain, activity, passed_on: None, end }, ended)
    }

    fn complete(&mut self) {
        self.activity.body_read();
        self.end = None;
    }

    fn reject(&mut self, rejection: HttpRejection) -> Poll<Option<Result<Frame<Bytes>, HttpRejection>>> {
        if let Some(end) = self.end.take() {
            let _ = end.send(rejection.clone());
        }
        Poll::Ready(Some(Err(rejection)))
    }
}

impl Body for ClientBody {
    type Data = Bytes;
    type Error = HttpRejection;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpRejection>>> {
        let this = self.get_mut();
        if this.passed_on.take().is_some_and(|passed_on| passed_on.elapsed() > UPSTREAM_PAUSE) {
            this.stall.pause();
        }
        match Pin::new(&mut this.body).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => {
                this.received += frame.data_ref().map_or(0, Bytes::len);
                if this.received > this.limit {
                    return this.reject(HttpRejection::BodyTooLarge { limit: this.limit });
                }
                this.passed_on = Some(Instant::now());
                if this.body.is_end_stream() {
                    this.complete();
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => {
                this.reject(HttpRejection::BadRequest(format!("the body is incomplete: {error}")))
            }
            Poll::Ready(None) => {
                this.complete();
                Poll::Ready(None)
            }
            Poll::Pending => {
                match this.stall.poll_stalled(context, this.received, || this.drain.has_begun()) {
                    Poll::Ready(()) => this.reject(HttpRejection::BodyTooSlow),
                    Poll::Pending => Poll::Pending,
                }
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
