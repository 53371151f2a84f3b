//! A gateway in this process, and upstreams that do what a test needs.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};

use cudock_gateway::{Gateway, GatewaySettings};
use cudock_server::{DrainSignal, Log, LogFormat, ServerError};
use cudock_testkit::client::{TestClient, TestResponse, eventually, get, post};
use cudock_testkit::http::{Reply, Request, Server, read_request};

/// The header of JSON bodies.
pub(crate) const JSON: &str = "content-type: application/json\r\n";

/// A running gateway.
pub(crate) struct TestGateway {
    pub(crate) address: SocketAddr,
    drain: DrainSignal,
    thread: Option<JoinHandle<Result<(), ServerError>>>,
}

impl TestGateway {
    /// Starts a gateway in front of these servers, with options as they are written in `cudock.toml`.
    pub(crate) fn start(upstreams: &[SocketAddr], options: &str) -> Self {
        let urls: Vec<String> = upstreams.iter().map(|address| format!("'http://{address}'")).collect();
        Self::with_options(&format!("to = [{}]\n{options}", urls.join(",")), |_| {})
    }

    /// The same with a log that is kept.
    pub(crate) fn with_log(upstreams: &[SocketAddr], options: &str, log: &LogLines) -> Self {
        let urls: Vec<String> = upstreams.iter().map(|address| format!("'http://{address}'")).collect();
        Self::with_options(&format!("to = [{}]\n{options}", urls.join(",")), |settings| {
            settings.server.log = Log::new(LogFormat::Text, false, log.clone());
        })
    }

    pub(crate) fn with_options(options: &str, change: impl FnOnce(&mut GatewaySettings)) -> Self {
        let text = format!("[gateway]\nlisten = ['127.0.0.1:0']\n{options}\n");
        let options = cudock_project::parse(Path::new("cudock.toml"), &text).unwrap().gateway;
        let mut settings = GatewaySettings::new(&options, None).unwrap();
        settings.server.io_threads = 2;
        change(&mut settings);
        let gateway = Gateway::bind(settings).unwrap();
        let (address, drain) = (gateway.addresses()[0], gateway.drain());
        Self { address, drain, thread: Some(thread::spawn(move || gateway.run())) }
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

    /// Sends a prediction request and leaves it waiting for its answer.
    #[track_caller]
    pub(crate) fn ask(&self, body: &str) -> TestClient {
        let mut client = self.connect();
        client.write(&post("/predict", JSON, body.as_bytes()));
        client
    }

    #[track_caller]
    pub(crate) fn predict(&self, body: &str) -> TestResponse {
        self.ask(body).receive()
    }

    /// The sum of the samples of a metric.
    #[track_caller]
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let page = self.send(&get("/_gateway/metrics", "")).text();
        let samples = page.lines().filter_map(|line| {
            let (sample, value) = line.rsplit_once(' ')?;
            let own = sample.split('{').next() == Some(&format!("cudock_gateway_{name}"));
            own.then(|| value.parse::<f64>().unwrap())
        });
        let samples: Vec<f64> = samples.collect();
        assert!(!samples.is_empty(), "{name} is not in {page}");
        samples.iter().sum()
    }

    /// Waits until a metric has a value.
    #[track_caller]
    pub(crate) fn until(&self, name: &str, value: u32) {
        eventually(&format!("{name} is {value}"), || (self.metric(name) - f64::from(value)).abs() < 0.5);
    }

    pub(crate) fn begin_drain(&self) {
        self.drain.begin();
    }
}

impl Drop for TestGateway {
    fn drop(&mut self) {
        self.drain.begin();
        let ended = self.thread.take().unwrap().join();
        if !thread::panicking() {
            ended.unwrap().unwrap();
        }
    }
}

/// The lines of a log.
#[derive(Clone, Default)]
pub(crate) struct LogLines(Arc<Mutex<Vec<u8>>>);

impl LogLines {
    /// The lines with a text in them.
    pub(crate) fn lines(&self, part: &str) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().filter(|line| line.contains(part)).map(str::to_owned).collect()
    }
}

impl Write for LogLines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A server whose predictions wait for a permit, and a gateway that sends it one batch at a time.
pub(crate) fn gated(
    options: &str,
    reply: impl Fn(&Request) -> Reply + Send + Sync + 'static,
) -> (Server, TestGateway, Gate) {
    let gate = Gate::default();
    let own = gate.clone();
    let upstream = Server::start(move |request| {
        if request.method == "POST" {
            own.pass();
        }
        reply(request)
    });
    let gateway = TestGateway::start(&[upstream.address()], &format!("concurrency = 1\n{options}"));
    (upstream, gateway, gate)
}

/// What a model server that returns its rows answers.
pub(crate) fn echo(request: &Request) -> Reply {
    match request.path.split('?').next().unwrap_or_default() {
        "/health" => Reply::new(200, "{}"),
        "/predict" => prediction(rows_of(request)),
        _ => Reply::new(200, request.body.clone()).with("x-path", &request.path),
    }
}

/// The text of the rows in a request, with the brackets around them.
pub(crate) fn rows_of(request: &Request) -> String {
    let text = request.text();
    text.strip_prefix("{\"input\":").and_then(|rest| rest.strip_suffix('}')).unwrap_or("[]").to_owned()
}

pub(crate) fn prediction(rows: impl std::fmt::Display) -> Reply {
    Reply::new(200, format!("{{\"prediction\":{rows},\"device\":\"cpu\"}}"))
        .with("content-type", "application/json")
}

/// The answer that [`echo`] gives.
pub(crate) fn answer(rows: &str) -> String {
    format!("{{\"prediction\":{rows},\"device\":\"cpu\"}}")
}

/// Requests wait here until the test lets them pass.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<usize>, Condvar)>);

impl Gate {
    /// Waits for a permit and takes it.
    pub(crate) fn pass(&self) {
        let (permits, changed) = &*self.0;
        let mut permits = changed.wait_while(permits.lock().unwrap(), |permits| *permits == 0).unwrap();
        *permits -= 1;
    }

    /// Gives permits.
    pub(crate) fn open(&self, permits: usize) {
        *self.0.0.lock().unwrap() += permits;
        self.0.1.notify_all();
    }
}

/// An upstream that answers health checks and gives the connection of every other request to the test.
pub(crate) fn raw_upstream(serve: impl Fn(TcpStream, Request) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, serve) = (stream.unwrap(), Arc::clone(&serve));
            thread::spawn(move || {
                let Some(request) = read_request(&stream) else { return };
                if request.path == "/health" {
                    let _ = stream
                        .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                } else {
                    serve(stream, request);
                }
            });
        }
    });
    address
}

/// An address at which nothing listens.
pub(crate) fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}
