//! The wire: TLS and plain HTTP on loopback, and faults.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use cudock_testkit::http::{Reply, Request, read_request};
use rustix::process::{Pid, Signal, kill_process};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::schedule::{Fault, Schedule};
use crate::services::terminal;
use crate::time::http_date;
use crate::wire::answer::Answer;

/// Maximum number of requests in one schedule; a client that sends more polls for ever, and is
/// killed.
const MOST_REQUESTS: u64 = 5000;

/// State shared by the threads of connections.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) cloud: Mutex<Cloud>,
    pub(crate) wire: Mutex<Wire>,
    /// The process that a schedule kills, and a signal that there is one.
    pub(crate) client: Mutex<Option<Pid>>,
    pub(crate) client_known: Condvar,
    pub(crate) is_stopped: AtomicBool,
    /// The directory that all containers are.
    pub(crate) container: PathBuf,
}

/// The requests so far, and what happens to the next ones.
#[derive(Debug, Default)]
pub(crate) struct Wire {
    pub(crate) schedule: Schedule,
    /// Requests since the schedule began.
    pub(crate) count: u64,
    /// Method and path without the query of every request.
    pub(crate) seen: Vec<String>,
}

/// The outcome of a request on the wire.
enum WireOutcome {
    Reply(Answer),
    Close,
}

impl Shared {
    fn handle(&self, request: &Request) -> WireOutcome {
        // One request at a time: the clock is shared.
        let mut cloud = self.cloud.lock().unwrap();
        let fault = {
            let mut wire = self.wire.lock().unwrap();
            let path = request.path.split('?').next().unwrap_or_default();
            wire.seen.push(format!("{} {path}", request.method));
            wire.count += 1;
            if wire.count > MOST_REQUESTS {
                Some(Fault::Kill { carried_out: false })
            } else {
                wire.schedule.at(wire.count - 1)
            }
        };
        let pause = cloud.settings.seconds_per_request;
        cloud.advance(pause);
        let is_carried_out = match fault {
            Some(Fault::Delay(seconds)) => {
                cloud.advance(seconds);
                true
            }
            Some(Fault::ExpireTokens) => {
                cloud.expire_tokens();
                true
            }
            Some(Fault::ServerError { carried_out } | Fault::Kill { carried_out }) => carried_out,
            Some(Fault::CloseBefore | Fault::Throttle { .. } | Fault::Conflict) => false,
            Some(Fault::DropAnswer) | None => true,
        };
        let answer = if is_carried_out { cloud.handle(request) } else { Answer::empty(500) };
        cloud.settle();
        match fault {
            Some(Fault::Kill { .. }) => {
                self.kill_client();
                WireOutcome::Close
            }
            Some(Fault::DropAnswer | Fault::CloseBefore) => WireOutcome::Close,
            Some(Fault::ServerError { .. }) => {
                WireOutcome::Reply(Answer::error(500, "InternalServerError", "fault"))
            }
            Some(Fault::Throttle { .. }) => WireOutcome::Reply(
                Answer::error(
                    429,
                    "TooManyRequests",
                    "too many requests have been received for this subscription",
                )
                .with("x-ms-ratelimit-remaining-subscription-writes", "0"),
            ),
            Some(Fault::Conflict) => WireOutcome::Reply(Answer::error(
                409,
                "AnotherOperationInProgress",
                "Another operation is in progress.",
            )),
            Some(Fault::Delay(_) | Fault::ExpireTokens) | None => WireOutcome::Reply(answer),
        }
    }

    /// Kills the client, which has sent a request and so is alive.
    fn kill_client(&self) {
        let mut client = self.client.lock().unwrap();
        while client.is_none() {
            client = self.client_known.wait(client).unwrap();
        }
        if let Some(client) = client.take() {
            kill_process(client, Signal::KILL).unwrap();
        }
    }

    fn reply(&self, request: &Request, answer: Answer) -> Reply {
        let (now, has_newer_fields) = {
            let cloud = self.cloud.lock().unwrap();
            (cloud.now, cloud.settings.has_newer_fields)
        };
        let body = match (answer.body, answer.text) {
            (Some(mut body), _) => {
                if has_newer_fields {
                    add_newer_fields(&mut body);
                }
                body.to_string()
            }
            (None, text) => text.unwrap_or_default(),
        };
        let mut reply = Reply::new(answer.status, body).keep_alive().with("Date", http_date(now));
        // Clients need not wait: time passes here with requests.
        reply = reply.with("Retry-After", "0");
        reply.headers.extend(answer.headers);
        if request.method == "HEAD" || answer.status == 204 {
            let mut head = format!("HTTP/1.1 {} Test\r\n", reply.status);
            for (name, value) in &reply.headers {
                head.extend([name, ": ", value, "\r\n"]);
            }
            if request.method == "HEAD" {
                head.extend(["Content-Length: ", &reply.body.len().to_string(), "\r\n"]);
            }
            reply.pieces = vec![format!("{head}\r\n").into_bytes()];
        }
        reply
    }

    fn serve(&self, mut stream: impl Read + Write, socket: &TcpStream) {
        while let Some(request) = read_request(&mut stream) {
            if request.header("upgrade").is_some() {
                terminal::serve(&self.cloud, &self.container, &request, &mut stream, socket);
                break;
            }
            let WireOutcome::Reply(answer) = self.handle(&request) else { break };
            if self.reply(&request, answer).send(&mut stream).is_err() {
                break;
            }
        }
        let _ = socket.shutdown(Shutdown::Both);
    }
}

/// Adds fields that a newer version of an API may return.
fn add_newer_fields(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(add_newer_fields);
            fields.insert("fieldOfTomorrow".to_owned(), json!({"value": [1, null, "x"]}));
        }
        Value::Array(items) => items.iter_mut().for_each(add_newer_fields),
        _ => {}
    }
}

/// Reads a certificate and its key.
pub(crate) fn tls_config(certificate: &Path, key: &Path) -> Arc<ServerConfig> {
    let chain = vec![CertificateDer::from_pem_file(certificate).unwrap()];
    let key = PrivateKeyDer::from_pem_file(key).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    Arc::new(builder.with_no_client_auth().with_single_cert(chain, key).unwrap())
}

/// Serves connections, with TLS if there is a configuration for it, until the flag is set. Returns the address.
pub(crate) fn listen(
    shared: &Arc<Shared>,
    tls: Option<Arc<ServerConfig>>,
) -> (SocketAddr, thread::JoinHandle<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let shared = Arc::clone(shared);
    let accept = move || {
        for socket in listener.incoming() {
            if shared.is_stopped.load(Ordering::SeqCst) {
                return;
            }
            let (socket, shared, tls) = (socket.unwrap(), Arc::clone(&shared), tls.clone());
            thread::spawn(move || {
                socket.set_nodelay(true).unwrap();
                let other = socket.try_clone().unwrap();
                match tls {
                    None => shared.serve(socket, &other),
                    Some(tls) => {
                        let connection = ServerConnection::new(tls).unwrap();
                        shared.serve(StreamOwned::new(connection, socket), &other);
                    }
                }
            });
        }
    };
    (address, thread::spawn(accept))
}
