//! The URL of a server.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::str::FromStr;
use std::time::Duration;

use crate::LoadError;

/// Timeout of the first connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The URL of a server: `http://host:port/path`; scheme, port and path are optional.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerUrl {
    host: String,
    port: u16,
    path: Option<String>,
}

impl FromStr for ServerUrl {
    type Err = LoadError;

    fn from_str(url: &str) -> Result<Self, LoadError> {
        let fault = |reason| LoadError::Url { url: url.to_owned(), reason };
        let rest = match url.split_once("://") {
            Some(("http", rest)) => rest,
            Some(("https", _)) => return Err(fault("only http is supported, not https")),
            Some(_) => return Err(fault("only http is supported")),
            None => url,
        };
        let (authority, path) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, ""),
        };
        if url.bytes().any(|byte| byte.is_ascii_control() || byte == b' ') {
            return Err(fault("it contains spaces or control characters"));
        }
        // An IPv6 address stands in brackets and has colons of its own.
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| fault("the port is not a number up to 65535"))?)
            }
            _ => (authority, 80),
        };
        if host.is_empty() || host.contains('@') {
            return Err(fault("it has no host"));
        }
        let path = (path.len() > 1).then(|| path.to_owned());
        Ok(Self { host: host.to_owned(), port, path })
    }
}

impl ServerUrl {
    /// Host and port, as the `Host` header has them.
    pub fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// The path after the host, if one was given.
    pub fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    /// The first of its addresses that takes connections.
    pub fn reach(&self) -> Result<SocketAddr, LoadError> {
        let name = self.host.trim_start_matches('[').trim_end_matches(']');
        let addresses = (name, self.port)
            .to_socket_addrs()
            .map_err(|source| LoadError::Name { name: name.to_owned(), source })?;
        let mut refusal = std::io::Error::from(std::io::ErrorKind::AddrNotAvailable);
        for address in addresses {
            match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
                Ok(_) => return Ok(address),
                Err(error) => refusal = error,
            }
        }
        Err(LoadError::Connect { server: self.authority(), source: refusal })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        for (url, authority, path) in [
            ("http://localhost:8000", "localhost:8000", None),
            ("http://localhost:8000/", "localhost:8000", None),
            ("localhost:8000/predictions/m", "localhost:8000", Some("/predictions/m")),
            ("http://example.org/v2/models/m/infer", "example.org:80", Some("/v2/models/m/infer")),
            ("http://[::1]:9000/x", "[::1]:9000", Some("/x")),
            ("http://[::1]", "[::1]:80", None),
        ] {
            let target: ServerUrl = url.parse().unwrap();
            assert_eq!((target.authority().as_str(), target.path()), (authority, path), "{url}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for url in
            ["https://localhost", "ftp://localhost", "http://", "http://h:99999", "http://u@h", "http://a b/"]
        {
            assert!(url.parse::<ServerUrl>().is_err(), "{url}");
        }
    }

    #[test]
    fn a_port_nobody_listens_on_is_reported() {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let target: ServerUrl = format!("127.0.0.1:{port}").parse().unwrap();
        assert!(matches!(target.reach(), Err(LoadError::Connect { .. })));
    }
}
