//! The interface between a server and the handler of its requests.

use std::error::Error;
use std::future::{Future, ready};
use std::sync::Arc;

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::{Request, Response};

use crate::connection::monitor::ConnectionActivity;
use crate::request::origin::Effect;
use crate::request::rejection::HttpRejection;

/// The stages of a request that are logged, if its handler notes them in the `Arc<RequestTrace>` among the extensions of
/// the request: the time in a queue, and that of the work itself.
pub const QUEUE_STAGE: &str = "queue";
pub const COMPUTE_STAGE: &str = "compute";

/// The handler of requests. All I/O threads share one handler.
pub trait Handler: Send + Sync + 'static {
    /// The body of a response. One that lasts as long as its client likes must be a
    /// [`MonitoredBody`](crate::MonitoredBody), or its connection counts as idle.
    type Body: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static;

    /// Processes a request. The future is dropped if the client disconnects.
    fn handle(
        &self,
        request: Request<Incoming>,
        activity: &Arc<ConnectionActivity>,
    ) -> impl Future<Output = Response<Self::Body>> + Send;

    /// The effect of a request besides its response. Only called for requests of web pages of other
    /// origins, of which those that change something are rejected.
    fn effect(&self, request: &Request<Incoming>) -> Effect;

    /// The response to a request that is rejected before it reaches [`Handler::handle`].
    fn reject(&self, request: &Request<Incoming>, rejection: HttpRejection) -> Response<Self::Body>;

    /// Prepares an I/O thread; called on that thread, within its runtime.
    fn start_io_thread(&self) {}

    /// Reloads everything, because the process has received SIGHUP.
    fn reload(&self) -> impl Future<Output = ()> + Send {
        ready(())
    }

    /// Looks for changes; called every second. The future of this and of [`Handler::reload`] is dropped when the server
    /// shuts down.
    fn refresh(&self) -> impl Future<Output = ()> + Send {
        ready(())
    }

    /// Releases resources after the last connection has ended. Not called if connections outlast the drain timeout.
    fn close(&self) {}
}
