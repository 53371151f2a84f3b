//! One connection: a request out, an answer in, and again.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use socket2::{Domain, Protocol, Socket, Type};

use crate::response::{Answered, ResponseReader};

/// A request on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    /// When it was meant to be sent.
    pub(crate) intended: Instant,
    /// Its place in the pool.
    pub(crate) request: usize,
    /// Whether its answer will be compared.
    pub(crate) check: bool,
}

/// What came of giving a connection its turn.
#[derive(Debug)]
pub(crate) enum Turn {
    /// It waits for the other side.
    Waiting,
    /// The answer is complete.
    Answered(Answered),
    /// It broke.
    Broken(String),
}

#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    connected: bool,
    /// How many bytes of the request have left.
    written: usize,
    reader: ResponseReader,
    pub(crate) exchange: Option<Exchange>,
}

impl Connection {
    /// Begins to connect; does not wait for it.
    pub(crate) fn open(address: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        let connected = match socket.connect(&address.into()) {
            Ok(()) => true,
            Err(error)
                if error.kind() == ErrorKind::WouldBlock
                    || error.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error()) =>
            {
                false
            }
            Err(error) => return Err(error),
        };
        Ok(Self {
            stream: socket.into(),
            connected,
            written: 0,
            reader: ResponseReader::new(),
            exchange: None,
        })
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// The answer's body and where its binary part begins, if the exchange was to be checked.
    pub(crate) fn answer(&self) -> (&[u8], Option<usize>) {
        (self.reader.body(), self.reader.json_length())
    }

    /// Takes a request and sends as much of it as the socket takes.
    pub(crate) fn begin(&mut self, exchange: Exchange, bytes: &[u8]) -> Turn {
        self.exchange = Some(exchange);
        self.written = 0;
        self.reader.begin(exchange.check);
        if self.connected { self.write(bytes) } else { Turn::Waiting }
    }

    /// Goes on after the socket changed. `bytes` is the whole request under way, `ended` whether the other side will
    /// send no more.
    pub(crate) fn advance(&mut self, bytes: &[u8], buffer: &mut [u8], ended: bool) -> Turn {
        if !self.connected {
            match self.stream.take_error() {
                Ok(None) if !ended => self.connected = true,
                Ok(None) => return Turn::Broken(CLOSED_EARLY.to_owned()),
                Ok(Some(error)) | Err(error) => return broken(&error),
            }
        }
        // A server may refuse a request before it has read all of it: then the answer counts, not the broken pipe.
        let broke = self.written < bytes.len() && matches!(self.write(bytes), Turn::Broken(_));
        let whole = self.written >= bytes.len() && !broke;
        self.read(buffer, ended, whole)
    }

    fn write(&mut self, bytes: &[u8]) -> Turn {
        while let Some(rest) = bytes.get(self.written..).filter(|rest| !rest.is_empty()) {
            match self.stream.write(rest) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Turn::Waiting,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return broken(&error),
            }
        }
        Turn::Waiting
    }

    fn read(&mut self, buffer: &mut [u8], ended: bool, whole: bool) -> Turn {
        loop {
            let count = match self.stream.read(buffer) {
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Turn::Waiting,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return broken(&error),
            };
            let Some(bytes) = buffer.get(..count).filter(|bytes| !bytes.is_empty()) else {
                let begun = self.reader.has_begun();
                return match self.reader.closed() {
                    Ok(answered) => Turn::Answered(answered),
                    Err(fault) if begun => Turn::Broken(fault.to_string()),
                    Err(_) => Turn::Broken(CLOSED_EARLY.to_owned()),
                };
            };
            if self.exchange.is_none() {
                return Turn::Broken("bytes came that nobody asked for".to_owned());
            }
            match self.reader.feed(bytes) {
                Ok(Some(mut answered)) => {
                    // What is left of a request that was refused half way would be taken for the next one.
                    answered.close |= ended || !whole;
                    return Turn::Answered(answered);
                }
                Ok(None) => {}
                Err(fault) => return Turn::Broken(fault.to_string()),
            }
            // A short read has emptied the socket, unless its end is behind it.
            if count < buffer.len() && !ended {
                return Turn::Waiting;
            }
        }
    }
}

/// The reason given where a server closes a connection without a byte of an answer.
const CLOSED_EARLY: &str = "the connection was closed without an answer";

fn broken(error: &io::Error) -> Turn {
    Turn::Broken(match error.kind() {
        ErrorKind::ConnectionRefused => "the connection was refused".to_owned(),
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => "the connection was reset".to_owned(),
        _ => error.to_string(),
    })
}
