//! A client for single requests.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use cudock_tensor::DType;

use crate::client::response::ResponseReader;
use crate::{Expected, HttpResponse, LoadError, LoadRequest, ServerUrl};

/// A connection for one request after the other.
#[derive(Debug)]
pub struct HttpClient {
    target: ServerUrl,
    address: SocketAddr,
    timeout: Duration,
    stream: Option<TcpStream>,
}

impl HttpClient {
    /// Creates a client without connecting. No response may take longer than `timeout`.
    pub fn new(target: &ServerUrl, address: SocketAddr, timeout: Duration) -> Self {
        Self { target: target.clone(), address, timeout, stream: None }
    }

    pub fn send(&mut self, request: &LoadRequest) -> Result<HttpResponse, LoadError> {
        let server = self.target.authority();
        let broken =
            |source| LoadError::Exchange { server: server.clone(), path: request.path.clone(), source };
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => TcpStream::connect_timeout(&self.address, self.timeout)
                .map_err(|source| LoadError::Connect { server: server.clone(), source })?,
        };
        stream.set_nodelay(true).map_err(broken)?;
        stream.set_read_timeout(Some(self.timeout)).map_err(broken)?;
        stream.write_all(&request.bytes).map_err(broken)?;
        let mut reader = ResponseReader::default();
        reader.begin(true);
        let mut buffer = [0; 16 << 10];
        let completed = loop {
            let count = match stream.read(&mut buffer) {
                // A signal interrupts the wait of a stream with a timeout, even with SA_RESTART.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read.map_err(broken)?,
            };
            let step = match buffer.get(..count) {
                None | Some([]) => reader.closed().map(Some),
                Some(bytes) => reader.feed(bytes),
            };
            let invalid =
                |source| LoadError::Response { server: server.clone(), path: request.path.clone(), source };
            if let Some(completed) = step.map_err(invalid)? {
                break completed;
            }
        };
        if !completed.close {
            self.stream = Some(stream);
        }
        Ok(HttpResponse {
            status: completed.status,
            body: reader.body().to_vec(),
            json_length: reader.json_length(),
        })
    }
}

/// Sends every request once, alone, and records its response as the expected one. The first unsuccessful response ends
/// this. `elements` is the element type of binary responses, if known.
pub fn record_expected(
    client: &mut HttpClient,
    requests: &mut [LoadRequest],
    elements: Option<DType>,
) -> Result<(), LoadError> {
    for request in requests {
        let response = client.send(request)?;
        if !response.is_success() {
            let (path, message) = (request.path.clone(), response.message());
            return Err(LoadError::Refused { path, status: response.status, message });
        }
        request.expected = Some(Expected::new(response, elements));
    }
    Ok(())
}
