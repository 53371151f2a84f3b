//! A server in this process with a handler that needs no models.

use std::convert::Infallible;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, ready};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::Bytes;
use cudock_server::{
    ApiKeys, ConnectionActivity, Effect, Handler, HttpRejection, Log, LogFormat, MonitoredBody, Server,
    ServerError, ServerResources, ServerSettings,
};
use cudock_testkit::client::{PATIENCE, TestClient, TestResponse};
use http_body_util::{Either, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::{Request, Response};
use tokio::sync::Semaphore;
use tokio::time::{Sleep, sleep};

/// Limit of a body in bytes.
pub(crate) const BODY_LIMIT: usize = 4 << 20;

/// What the handler has done.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) handled: AtomicUsize,
    pub(crate) canceled: AtomicUsize,
    pub(crate) io_threads: AtomicUsize,
    pub(crate) reloads: AtomicUsize,
    pub(crate) refreshes: AtomicUsize,
    pub(crate) closed: AtomicUsize,
}

impl Counters {
    pub(crate) fn increment(counter: &AtomicUsize) {
        counter.fetch_add(1, Ordering::SeqCst);
    }
}

pub(crate) fn count(counter: &AtomicUsize) -> usize {
    counter.load(Ordering::SeqCst)
}

/// Returns bodies as they came. `/change` and `/start` say that they change and start something. `/wait` responds only once the test allows it, `/stream` after a long silence, and
/// `/public` needs no key.
struct Echo {
    resources: Arc<ServerResources>,
    keys: ApiKeys,
    counters: Arc<Counters>,
    gate: Arc<Semaphore>,
    refresh_gate: Arc<Semaphore>,
    stream_pause: Duration,
}

/// Counts a request whose future is dropped before it completes.
struct CancelGuard<'a>(Option<&'a AtomicUsize>);

impl Drop for CancelGuard<'_> {
    fn drop(&mut self) {
        self.0.into_iter().for_each(Counters::increment);
    }
}

impl Echo {
    async fn body(
        &self,
        request: Request<Incoming>,
        activity: &Arc<ConnectionActivity>,
    ) -> Result<Bytes, HttpRejection> {
        let (head, body) = request.into_parts();
        if head.uri.path() != "/public" && !self.keys.is_authorized(&head.headers) {
            return Err(HttpRejection::Unauthorized);
        }
        let body = self.resources.read_body(&head.headers, body, activity).await?;
        if head.uri.path() == "/wait" {
            let mut guard = CancelGuard(Some(&self.counters.canceled));
            // The gate is closed when the test ends.
            let Ok(permit) = self.gate.acquire().await else { return Ok(Bytes::new()) };
            permit.forget();
            guard.0 = None;
        }
        Ok(body.held.attach(body.bytes))
    }
}

impl Handler for Echo {
    type Body = Either<Full<Bytes>, MonitoredBody<LateBody>>;

    async fn handle(
        &self,
        request: Request<Incoming>,
        activity: &Arc<ConnectionActivity>,
    ) -> Response<Self::Body> {
        Counters::increment(&self.counters.handled);
        if request.uri().path() == "/stream" {
            let body = LateBody(Some(Box::pin(sleep(self.stream_pause))));
            return Response::new(Either::Right(MonitoredBody::new(body, activity)));
        }
        let accepted = request.headers().get("accept-encoding").cloned();
        match self.body(request, activity).await {
            Ok(mut bytes) => {
                let (mut head, ()) = Response::new(()).into_parts();
                if let Some(accepted) = accepted {
                    bytes = self.resources.compress(&mut head, bytes, &accepted).await;
                }
                Response::from_parts(head, Either::Left(Full::new(bytes)))
            }
            Err(rejection) => rejected(&rejection),
        }
    }

    fn effect(&self, request: &Request<Incoming>) -> Effect {
        match request.uri().path() {
            "/change" => Effect::Changes,
            "/start" => Effect::Starts,
            _ => Effect::None,
        }
    }

    fn reject(&self, _: &Request<Incoming>, rejection: HttpRejection) -> Response<Self::Body> {
        rejected(&rejection)
    }

    fn start_io_thread(&self) {
        // Fails outside of a runtime.
        tokio::spawn(async {});
        Counters::increment(&self.counters.io_threads);
    }

    async fn reload(&self) {
        Counters::increment(&self.counters.reloads);
    }

    async fn refresh(&self) {
        Counters::increment(&self.counters.refreshes);
        let _ = self.refresh_gate.acquire().await;
    }

    fn close(&self) {
        Counters::increment(&self.counters.closed);
    }
}

fn rejected(rejection: &HttpRejection) -> Response<<Echo as Handler>::Body> {
    let mut response = Response::new(Either::Left(Full::from(rejection.to_string())));
    *response.status_mut() = rejection.status();
    rejection.write_headers(response.headers_mut());
    response
}

/// A body whose only chunk comes late.
pub(crate) struct LateBody(Option<Pin<Box<Sleep>>>);

impl Body for LateBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(pause) = &mut self.0 else { return Poll::Ready(None) };
        ready!(pause.as_mut().poll(context));
        self.0 = None;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"late")))))
    }
}

/// Log output that tests can read.
#[derive(Clone, Default)]
struct LogBuffer(Arc<Mutex<Vec<u8>>>);

impl Write for LogBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Settings with which nothing times out.
fn settings(log: Log) -> ServerSettings {
    ServerSettings {
        listen: vec!["127.0.0.1:0".parse().unwrap()],
        allow_hosts: Vec::new(),
        io_threads: 2,
        memory: 64 << 20,
        connections: 64,
        client_timeout: Duration::from_secs(20),
        drain_timeout: Duration::from_secs(20),
        keys: ApiKeys::default(),
        rate_limiter: None,
        tls: None,
        log,
        exporter: None,
    }
}

/// The error of a server that cannot start with changed settings.
pub(crate) fn bind_error(change: impl FnOnce(&mut ServerSettings)) -> ServerError {
    let mut settings = settings(Log::new(LogFormat::Off, false, io::sink()));
    change(&mut settings);
    let resources = ServerResources::new(&settings, BODY_LIMIT);
    Server::bind(settings, &resources).map(drop).unwrap_err()
}

/// A running server.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) counters: Arc<Counters>,
    /// Each permit lets one request to `/wait` finish.
    pub(crate) gate: Arc<Semaphore>,
    /// The handler needs its only permit to refresh.
    pub(crate) refresh_gate: Arc<Semaphore>,
    pub(crate) resources: Arc<ServerResources>,
    log: LogBuffer,
    thread: Option<JoinHandle<Result<(), ServerError>>>,
}

impl TestServer {
    /// Starts a server with changed settings, and waits until it is ready.
    pub(crate) fn start(change: impl FnOnce(&mut ServerSettings)) -> Self {
        let (server, is_ready) = Self::launch(change, || Ok(()));
        is_ready.recv_timeout(PATIENCE).unwrap();
        server
    }

    /// Starts a server that runs `load` first. The receiver gets a message when the server is ready.
    pub(crate) fn launch(
        change: impl FnOnce(&mut ServerSettings),
        load: impl FnOnce() -> Result<(), ServerError> + Send + 'static,
    ) -> (Self, mpsc::Receiver<()>) {
        let log = LogBuffer::default();
        let mut settings = settings(Log::new(LogFormat::Text, true, log.clone()));
        change(&mut settings);
        let resources = Arc::new(ServerResources::new(&settings, BODY_LIMIT));
        let (counters, gate) = (Arc::<Counters>::default(), Arc::new(Semaphore::new(0)));
        let refresh_gate = Arc::new(Semaphore::new(1));
        let handler = Echo {
            resources: Arc::clone(&resources),
            keys: settings.keys.clone(),
            counters: Arc::clone(&counters),
            gate: Arc::clone(&gate),
            refresh_gate: Arc::clone(&refresh_gate),
            stream_pause: settings.client_timeout * 4,
        };
        let server = Server::bind(settings, &resources).unwrap();
        let address = server.addresses()[0];
        let (ready, is_ready) = mpsc::channel();
        let run = move || server.run(handler, load, move || ready.send(()).unwrap());
        let thread = Some(thread::spawn(run));
        (Self { address, counters, gate, refresh_gate, resources, log, thread }, is_ready)
    }

    pub(crate) fn connect(&self) -> TestClient {
        TestClient::connect(self.address)
    }

    /// Sends a request on a connection of its own.
    #[track_caller]
    pub(crate) fn send(&self, request: &[u8]) -> TestResponse {
        let mut client = self.connect();
        client.write(request);
        client.receive()
    }

    pub(crate) fn log(&self) -> String {
        String::from_utf8(self.log.0.lock().unwrap().clone()).unwrap()
    }

    /// Shuts the server down and returns what it ended with.
    pub(crate) fn end(&mut self) -> Result<(), ServerError> {
        self.resources.drain.begin();
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.gate.close();
        if self.thread.is_some() && !thread::panicking() {
            self.end().unwrap();
        }
    }
}
