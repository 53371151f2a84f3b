//! A response body that keeps its connection alive.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::body::{Body, Frame, SizeHint};

use crate::connection::monitor::{BusyGuard, ConnectionActivity};

/// A body that lasts as long as its client likes. It keeps its connection busy while it waits for the server; what it
/// has produced must be read by the client in time.
pub struct MonitoredBody<B> {
    body: B,
    activity: Arc<ConnectionActivity>,
    waiting: Option<BusyGuard>,
}

impl<B> MonitoredBody<B> {
    pub fn new(body: B, activity: &Arc<ConnectionActivity>) -> Self {
        let waiting = Some(Arc::clone(activity).begin());
        Self { body, activity: Arc::clone(activity), waiting }
    }
}

impl<B: Body + Unpin> Body for MonitoredBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.get_mut();
        this.waiting.get_or_insert_with(|| Arc::clone(&this.activity).begin());
        let frame = Pin::new(&mut this.body).poll_frame(context);
        if frame.is_ready() {
            this.waiting = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
