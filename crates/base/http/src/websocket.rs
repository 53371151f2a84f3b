//! Web sockets over the same connections as requests: proxy, certificates and host rules are those of [`Client`].

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cudock_base::Secret;
use tungstenite::client::IntoClientRequest;
use tungstenite::error::{Error as SocketError, ProtocolError};
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{HandshakeError, Message};
use ureq::Timeout;
use ureq::http::header::AUTHORIZATION;
use ureq::http::{HeaderValue, Uri};
use ureq::unversioned::transport::time::Instant;
use ureq::unversioned::transport::{NextTimeout, Transport, TransportAdapter};

use crate::client::Client;
use crate::connect;
use crate::error::{HttpError, HttpErrorKind};
use crate::url::{self, is_loopback};

/// Maximum size of a message.
const MAX_MESSAGE: usize = 16 << 20;

/// How long a handshake or a write may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A web socket. It is gone when dropped.
pub struct WebSocket {
    inner: tungstenite::WebSocket<TransportAdapter<Box<dyn Transport>>>,
}

impl fmt::Debug for WebSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSocket").finish_non_exhaustive()
    }
}

/// An event of a web socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SocketEvent {
    /// A text or binary message.
    Message(Vec<u8>),
    /// Nothing in the time that was given.
    Silence,
    /// The server has closed it.
    Closed,
}

impl Client {
    /// Opens the web socket at a `wss://` URL, or at a `ws://` URL of this machine.
    pub fn open_websocket(&self, url: &str, authorization: Option<&Secret>) -> Result<WebSocket, HttpError> {
        let http_url = match url.split_once("://") {
            Some(("wss", rest)) => format!("https://{rest}"),
            Some(("ws", rest)) => format!("http://{rest}"),
            _ => return Err(HttpError::refused("refused a URL that is not of a web socket")),
        };
        let http_url: Uri = url::parse(&http_url)?;
        self.check(&http_url, is_loopback(http_url.host().unwrap_or_default()))?;
        let mut request = url.into_client_request().map_err(|error| describe(&error))?;
        if let Some(authorization) = authorization {
            let mut value = HeaderValue::from_str(authorization.expose()).map_err(|_| {
                HttpError::new(HttpErrorKind::Permanent, "the credentials cannot be sent in a header")
            })?;
            value.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        let transport = connect::open(self.agent_for(&http_url).config().clone(), &http_url)?;
        let mut stream = TransportAdapter::new(transport, Arc::new(Instant::now));
        stream.set_timeout(patience(None));
        let config = WebSocketConfig::default().max_message_size(Some(MAX_MESSAGE));
        let handshake = tungstenite::client::client_with_config(request, stream, Some(config));
        match handshake {
            Ok((inner, _)) => Ok(WebSocket { inner }),
            Err(HandshakeError::Failure(error)) => Err(describe(&error)),
            Err(HandshakeError::Interrupted(_)) => Err(timed_out()),
        }
    }
}

impl WebSocket {
    /// Waits up to `wait` for the next message.
    pub fn receive(&mut self, wait: Duration) -> Result<SocketEvent, HttpError> {
        self.inner.get_mut().set_timeout(patience(Some(wait)));
        loop {
            return match self.inner.read() {
                Ok(Message::Text(text)) => Ok(SocketEvent::Message(text.as_bytes().to_vec())),
                Ok(Message::Binary(bytes)) => Ok(SocketEvent::Message(bytes.to_vec())),
                // The library responds to pings and to the server's close frame.
                Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => continue,
                Ok(Message::Close(_)) | Err(SocketError::ConnectionClosed | SocketError::AlreadyClosed) => {
                    Ok(SocketEvent::Closed)
                }
                Err(SocketError::Io(error)) if is_timeout(&error) => Ok(SocketEvent::Silence),
                Err(error) => Err(describe(&error)),
            };
        }
    }

    pub fn send_text(&mut self, text: &str) -> Result<(), HttpError> {
        self.send(Message::text(text))
    }

    pub fn send_bytes(&mut self, bytes: Vec<u8>) -> Result<(), HttpError> {
        self.send(Message::binary(bytes))
    }

    fn send(&mut self, message: Message) -> Result<(), HttpError> {
        self.inner.get_mut().set_timeout(patience(None));
        self.inner.send(message).map_err(|error| describe(&error))
    }
}

/// The time limit for writes, and for reads without one of their own.
fn patience(per_read: Option<Duration>) -> NextTimeout {
    NextTimeout {
        after: PATIENCE.into(),
        reason: Timeout::RecvResponse,
        per_read: per_read.map(Into::into),
        per_write: None,
    }
}

/// The transports of `ureq` wrap their own error.
fn is_timeout(error: &std::io::Error) -> bool {
    let wrapped = error.get_ref().and_then(|error| error.downcast_ref::<ureq::Error>());
    matches!(wrapped, Some(ureq::Error::Timeout(_))) || error.kind() == std::io::ErrorKind::TimedOut
}

fn timed_out() -> HttpError {
    HttpError::new(HttpErrorKind::Transient, "timed out waiting for a response")
}

fn describe(error: &SocketError) -> HttpError {
    match error {
        SocketError::Http(response) => HttpError::status(response.status().as_u16(), None, None),
        SocketError::Io(error) if is_timeout(error) => timed_out(),
        SocketError::Io(error) => HttpError::new(HttpErrorKind::Transient, error.to_string()),
        SocketError::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
            HttpError::new(HttpErrorKind::Transient, "the connection was closed")
        }
        SocketError::Capacity(_) => HttpError::new(HttpErrorKind::TooLarge, "a message is too long"),
        _ => HttpError::refused("the response is not that of a web socket"),
    }
}
