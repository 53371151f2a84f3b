//! Bodies of requests: those of batches, and those that clients send, passed on as they arrive.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use cudock_server::{ConnectionActivity, DrainSignal, HttpRejection, StallDetector};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::sync::oneshot;

use crate::upstreams::send_progress::SendProgress;

/// An upstream that reads nothing for this long is what delays a body, not the client.
const UPSTREAM_PAUSE: Duration = Duration::from_secs(1);

/// The body of a request to an upstream.
pub(crate) struct OutgoingBody {
    content: OutgoingContent,
    progress: Option<Arc<SendProgress>>,
}

enum OutgoingContent {
    Whole(Option<Bytes>),
    Client(Box<ClientBody>),
}

impl OutgoingBody {
    pub(crate) fn empty() -> Self {
        Self { content: OutgoingContent::Whole(None), progress: None }
    }

    pub(crate) fn whole(bytes: Bytes) -> Self {
        let bytes = Some(bytes).filter(|bytes| !bytes.is_empty());
        Self { content: OutgoingContent::Whole(bytes), progress: None }
    }

    pub(crate) fn client(body: ClientBody) -> Self {
        Self { content: OutgoingContent::Client(Box::new(body)), progress: None }
    }

    /// The body again, if it can be sent twice.
    pub(crate) fn copy(&self) -> Option<Self> {
        match &self.content {
            OutgoingContent::Whole(None) => Some(Self::empty()),
            OutgoingContent::Whole(Some(bytes)) => Some(Self::whole(bytes.clone())),
            OutgoingContent::Client(body) if body.is_end_stream() => Some(Self::empty()),
            OutgoingContent::Client(_) => None,
        }
    }

    /// The body is about to be sent on a connection.
    pub(crate) fn begin(&mut self, progress: &Arc<SendProgress>) {
        progress.begin(self.is_complete());
        self.progress = Some(Arc::clone(progress));
    }

    /// Whether nothing is left of it. A body of HTTP/2 may end after its last byte.
    fn is_complete(&self) -> bool {
        self.is_end_stream() || self.size_hint().exact() == Some(0)
    }
}

impl Body for OutgoingBody {
    type Data = Bytes;
    type Error = HttpRejection;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpRejection>>> {
        let this = self.get_mut();
        let frame = match &mut this.content {
            OutgoingContent::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            OutgoingContent::Client(body) => Pin::new(body).poll_frame(context),
        };
        let is_at_end = match &frame {
            Poll::Ready(None) => true,
            Poll::Ready(Some(Ok(_))) => this.is_complete(),
            Poll::Ready(Some(Err(_))) | Poll::Pending => false,
        };
        if is_at_end && let Some(progress) = &this.progress {
            progress.body_taken();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            OutgoingContent::Whole(bytes) => bytes.is_none(),
            OutgoingContent::Client(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            OutgoingContent::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            OutgoingContent::Client(body) => body.size_hint(),
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
