//! One request and its answer, before the load begins.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use cudock_tensor::DType;

use crate::response::ResponseReader;
use crate::{Expected, LoadError, Request, Target};

/// An answer in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// Its status.
    pub status: u16,
    /// Its body.
    pub body: Vec<u8>,
    /// Where its JSON ends and its binary part begins, if it says so.
    pub json_length: Option<usize>,
}

impl Response {
    /// Whether the request was done.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// What the answer says, in one line that fits a message: its `error`, `detail` or `message` if it is JSON.
    pub fn message(&self) -> String {
        let text = match serde_json::from_slice::<serde_json::Value>(&self.body) {
            Ok(value) => {
                let told = ["error", "detail", "message"].iter().find_map(|name| value.get(name));
                match told.unwrap_or(&value) {
                    serde_json::Value::String(text) => text.clone(),
                    other => other.to_string(),
                }
            }
            Err(_) => String::from_utf8_lossy(&self.body).into_owned(),
        };
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        text.chars().filter(|letter| !letter.is_control()).take(400).collect()
    }
}

/// A connection for one request after the other.
#[derive(Debug)]
pub struct Dialogue {
    target: Target,
    address: SocketAddr,
    timeout: Duration,
    stream: Option<TcpStream>,
}

impl Dialogue {
    /// Nothing is sent yet. No answer may take longer than `timeout`.
    pub fn new(target: &Target, address: SocketAddr, timeout: Duration) -> Self {
        Self { target: target.clone(), address, timeout, stream: None }
    }

    /// Sends a request and waits for its answer.
    pub fn ask(&mut self, request: &Request) -> Result<Response, LoadError> {
        let place = self.target.place();
        let broken =
            |source| LoadError::Exchange { place: place.clone(), path: request.path().to_owned(), source };
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => TcpStream::connect_timeout(&self.address, self.timeout)
                .map_err(|source| LoadError::Connect { place: place.clone(), source })?,
        };
        stream.set_nodelay(true).map_err(broken)?;
        stream.set_read_timeout(Some(self.timeout)).map_err(broken)?;
        stream.write_all(request.bytes()).map_err(broken)?;
        let mut reader = ResponseReader::new();
        reader.begin(true);
        let mut buffer = [0; 16 << 10];
        let answered = loop {
            let count = match stream.read(&mut buffer) {
                // A signal ends the wait of a stream with a timeout, whatever its handler says.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read.map_err(broken)?,
            };
            let step = match buffer.get(..count) {
                None | Some([]) => reader.closed().map(Some),
                Some(bytes) => reader.feed(bytes),
            };
            let step = step.map_err(|source| LoadError::Response {
                place: place.clone(),
                path: request.path().to_owned(),
                source,
            })?;
            if let Some(answered) = step {
                break answered;
            }
        };
        if !answered.close {
            self.stream = Some(stream);
        }
        Ok(Response {
            status: answered.status,
            body: reader.body().to_vec(),
            json_length: reader.json_length(),
        })
    }
}

/// Sends every request once, alone, so that its answer is known, and notes it as expected. The first answer that is no
/// success ends this. `elements` is what binary answers hold, if that is known.
pub fn learn_answers(
    dialogue: &mut Dialogue,
    requests: &mut [Request],
    elements: Option<DType>,
) -> Result<(), LoadError> {
    for request in requests {
        let response = dialogue.ask(request)?;
        if !response.is_success() {
            return Err(LoadError::Refused {
                path: request.path().to_owned(),
                status: response.status,
                message: response.message(),
            });
        }
        request.expect(Expected::new(response, elements));
    }
    Ok(())
}
