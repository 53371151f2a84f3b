//! One connection: sends a request, receives a response, and repeats.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, Type};

use crate::client::response::{CompletedResponse, ResponseReader};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    pub(crate) intended: Instant,
    /// Its index in the pool.
    pub(crate) request: usize,
    /// Whether its response will be verified.
    pub(crate) check: bool,
}

#[derive(Debug)]
pub(crate) enum ExchangeState {
    Waiting,
    Completed(CompletedResponse),
    Broken(String),
}

#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    connected: bool,
    written: usize,
    reader: ResponseReader,
    pub(crate) exchange: Option<Exchange>,
}

impl Connection {
    /// Starts to connect without waiting.
    pub(crate) fn open(address: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        let connected = match socket.connect(&address.into()) {
            Ok(()) => true,
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::WOULDBLOCK | Errno::INPROGRESS) => false,
                _ => return Err(error),
            },
        };
        let reader = ResponseReader::default();
        Ok(Self { stream: socket.into(), connected, written: 0, reader, exchange: None })
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// The response body and where its binary part starts, if the exchange is verified.
    pub(crate) fn response(&self) -> (&[u8], Option<usize>) {
        (self.reader.body(), self.reader.json_length())
    }

    /// Starts a request and sends as much of it as the socket accepts.
    pub(crate) fn begin(&mut self, exchange: Exchange, bytes: &[u8]) -> ExchangeState {
        self.exchange = Some(exchange);
        self.written = 0;
        self.reader.begin(exchange.check);
        if self.connected { self.write(bytes) } else { ExchangeState::Waiting }
    }

    /// Continues after an event on the socket. `bytes` is the complete current request, `ended` whether the server will
    /// send no more.
    pub(crate) fn advance(&mut self, bytes: &[u8], buffer: &mut [u8], ended: bool) -> ExchangeState {
        if !self.connected {
            match self.stream.take_error() {
                Ok(None) if !ended => self.connected = true,
                Ok(None) => return ExchangeState::Broken(CLOSED_EARLY.to_owned()),
                Ok(Some(error)) | Err(error) => return broken(&error),
            }
        }
        // A server may reject a request before it has read all of it: then the response counts, not the broken pipe.
        let broke = self.written < bytes.len() && matches!(self.write(bytes), ExchangeState::Broken(_));
        let whole = self.written >= bytes.len() && !broke;
        self.read(buffer, ended, whole)
    }

    fn write(&mut self, bytes: &[u8]) -> ExchangeState {
        while let Some(rest) = bytes.get(self.written..).filter(|rest| !rest.is_empty()) {
            match self.stream.write(rest) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return ExchangeState::Waiting,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return broken(&error),
            }
        }
        ExchangeState::Waiting
    }

    fn read(&mut self, buffer: &mut [u8], ended: bool, whole: bool) -> ExchangeState {
        loop {
            let count = match self.stream.read(buffer) {
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return ExchangeState::Waiting,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return broken(&error),
            };
            let Some(bytes) = buffer.get(..count).filter(|bytes| !bytes.is_empty()) else {
                let begun = self.reader.has_begun();
                return match self.reader.closed() {
                    Ok(completed) => ExchangeState::Completed(completed),
                    Err(fault) if begun => ExchangeState::Broken(fault.to_string()),
                    Err(_) => ExchangeState::Broken(CLOSED_EARLY.to_owned()),
                };
            };
            if self.exchange.is_none() {
                return ExchangeState::Broken("unexpected bytes without a request".to_owned());
            }
            match self.reader.feed(bytes) {
                Ok(Some(mut completed)) => {
                    // The rest of a rejected request would be taken for the next one.
                    completed.close |= ended || !whole;
                    return ExchangeState::Completed(completed);
                }
                Ok(None) => {}
                Err(fault) => return ExchangeState::Broken(fault.to_string()),
            }
            // A short read has emptied the socket, unless its end follows.
            if count < buffer.len() && !ended {
                return ExchangeState::Waiting;
            }
        }
    }
}

/// The reason if a server closes a connection without a byte of a response.
const CLOSED_EARLY: &str = "the connection was closed without a response";

fn broken(error: &io::Error) -> ExchangeState {
    ExchangeState::Broken(match error.kind() {
        ErrorKind::ConnectionRefused => "the connection was refused".to_owned(),
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => "the connection was reset".to_owned(),
        _ => error.to_string(),
    })
}
