//! Parses `-p`, like docker.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use super::Protocol;
use crate::{NetnsError, Result};

/// One host port, forwarded to one container port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PortMapping {
    /// The host address; none means all addresses of both families, as in docker.
    pub host_ip: Option<IpAddr>,
    /// The host port; 0 means any free port.
    pub host_port: u16,
    pub container_port: u16,
    pub protocol: Protocol,
}

impl PortMapping {
    /// Parses one `-p`: `[[address:][host port]:]container port[/tcp|/udp]`, where a port may be a range, and an IPv6
    /// address is in brackets. A range gives one mapping for each port.
    ///
    /// ```
    /// use cudock_netns::forward::PortMapping;
    /// let two = PortMapping::parse("127.0.0.1:8000-8001:9000-9001/udp")?;
    /// assert_eq!(two[1].to_string(), "127.0.0.1:8001->9001/udp");
    /// # Ok::<(), cudock_netns::NetnsError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Vec<Self>> {
        let whole = Span { text, offset: 0 };
        read(whole).map_err(|(at, reason)| {
            let before = text.get(..at).unwrap_or(text);
            NetnsError::PortMapping { text: text.to_owned(), column: before.chars().count() + 1, reason }
        })
    }

    /// The host address, with the IPv4 wildcard if none was given.
    pub fn address(&self) -> IpAddr {
        self.host_ip.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
    }
}

impl fmt::Display for PortMapping {
    /// Formats it like `docker ps`: `0.0.0.0:8080->80/tcp`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let to = std::net::SocketAddr::new(self.address(), self.host_port);
        write!(out, "{to}->{}/{}", self.container_port, self.protocol)
    }
}

/// A part of the input with its offset.
#[derive(Clone, Copy)]
struct Span<'a> {
    text: &'a str,
    offset: usize,
}

impl Span<'_> {
    /// Splits at an ASCII byte, which is dropped.
    fn split(self, at: usize) -> (Self, Self) {
        let before = self.text.get(..at).unwrap_or_default();
        let behind = self.text.get(at + 1..).unwrap_or_default();
        (Self { text: before, offset: self.offset }, Self { text: behind, offset: self.offset + at + 1 })
    }

    fn split_at_first(self, character: char) -> Option<(Self, Self)> {
        Some(self.split(self.text.find(character)?))
    }

    fn split_at_last(self, character: char) -> Option<(Self, Self)> {
        Some(self.split(self.text.rfind(character)?))
    }

    fn invalid<T>(self, reason: impl Into<String>) -> ParseResult<T> {
        Err((self.offset, reason.into()))
    }
}

/// A value, or the byte offset and reason of an error.
type ParseResult<T> = std::result::Result<T, (usize, String)>;

fn read(whole: Span<'_>) -> ParseResult<Vec<PortMapping>> {
    let (ports, protocol) = match whole.split_at_last('/') {
        Some((ports, name)) => (ports, read_protocol(name)?),
        None => (whole, Protocol::Tcp),
    };
    let (host_ip, host, container) = read_parts(ports)?;
    let (first, last) = read_range(container)?;
    if first == 0 {
        return container.invalid("the container port cannot be 0");
    }
    let host_ports = match host {
        Some(host) if !host.text.is_empty() => Some((host, read_range(host)?)),
        _ => None,
    };
    let Some((host, (host_first, host_last))) = host_ports.filter(|(_, range)| *range != (0, 0)) else {
        let any = |container_port| PortMapping { host_ip, host_port: 0, container_port, protocol };
        return Ok((first..=last).map(any).collect());
    };
    if host_first == 0 {
        return host.invalid("a range cannot start with port 0");
    }
    let (host_count, count) = (u32::from(host_last - host_first) + 1, u32::from(last - first) + 1);
    if host_count != count {
        return host.invalid(format!("cannot map {host_count} host ports to {count} container ports"));
    }
    let pairs = (host_first..=host_last).zip(first..=last);
    Ok(pairs
        .map(|(host_port, container_port)| PortMapping { host_ip, host_port, container_port, protocol })
        .collect())
}

fn read_protocol(name: Span<'_>) -> ParseResult<Protocol> {
    match name.text.to_ascii_lowercase().as_str() {
        "tcp" => Ok(Protocol::Tcp),
        "udp" => Ok(Protocol::Udp),
        _ => name.invalid(format!("`{}` is neither tcp nor udp", name.text)),
    }
}

/// Splits into address, host port if present, and container port.
fn read_parts(ports: Span<'_>) -> ParseResult<(Option<IpAddr>, Option<Span<'_>>, Span<'_>)> {
    if ports.text.starts_with('[') {
        let Some((open, behind)) = ports.split_at_first(']') else {
            return ports.invalid("missing closing bracket");
        };
        let (_, inside) = open.split(0);
        let Ok(address) = inside.text.parse::<Ipv6Addr>() else {
            return inside.invalid(format!("`{}` is not an IPv6 address", inside.text));
        };
        let Some((_, rest)) = behind.split_at_first(':').filter(|(between, _)| between.text.is_empty())
        else {
            return behind.invalid("expected a colon and a port after the address");
        };
        let Some((host, container)) = rest.split_at_first(':') else {
            return rest.invalid("missing container port after the host port");
        };
        return Ok((Some(IpAddr::V6(address)), Some(host), container));
    }
    let Some((before, container)) = ports.split_at_last(':') else { return Ok((None, None, ports)) };
    let Some((address, host)) = before.split_at_last(':') else { return Ok((None, Some(before), container)) };
    if address.text.contains(':') {
        return address.invalid("an IPv6 address must be in brackets");
    }
    match address.text.parse::<Ipv4Addr>() {
        Ok(read) => Ok((Some(IpAddr::V4(read)), Some(host), container)),
        Err(_) if address.text.is_empty() => Ok((None, Some(host), container)),
        Err(_) => address.invalid(format!("`{}` is not an IP address", address.text)),
    }
}

fn read_range(range: Span<'_>) -> ParseResult<(u16, u16)> {
    let Some((first, last)) = range.split_at_first('-') else {
        let port = read_port(range)?;
        return Ok((port, port));
    };
    let (from, to) = (read_port(first)?, read_port(last)?);
    if to < from {
        range.invalid(format!("the range ends before it starts ({from}-{to})"))
    } else {
        Ok((from, to))
    }
}

fn read_port(port: Span<'_>) -> ParseResult<u16> {
    if port.text.is_empty() {
        return port.invalid("missing port");
    }
    // `parse` would accept a plus sign.
    match port.text.parse() {
        Ok(number) if port.text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(number),
        _ => port.invalid(format!("`{}` is not a port (0 to 65535)", port.text)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> String {
        match PortMapping::parse(text) {
            Ok(all) => all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn all_forms_of_docker_are_parsed() {
        for (text, expected) in [
            ("80", "0.0.0.0:0->80/tcp"),
            ("8080:80", "0.0.0.0:8080->80/tcp"),
            (":80", "0.0.0.0:0->80/tcp"),
            ("0:80", "0.0.0.0:0->80/tcp"),
            ("8080:80/udp", "0.0.0.0:8080->80/udp"),
            ("8080:80/TCP", "0.0.0.0:8080->80/tcp"),
            ("127.0.0.1:8080:80", "127.0.0.1:8080->80/tcp"),
            ("127.0.0.1::80", "127.0.0.1:0->80/tcp"),
            ("[::1]:8080:80", "[::1]:8080->80/tcp"),
            ("[::1]::80/udp", "[::1]:0->80/udp"),
            ("8000-8002:9000-9002", "0.0.0.0:8000->9000/tcp 0.0.0.0:8001->9001/tcp 0.0.0.0:8002->9002/tcp"),
            ("7000-7001", "0.0.0.0:0->7000/tcp 0.0.0.0:0->7001/tcp"),
        ] {
            assert_eq!(parsed(text), expected, "{text}");
        }
    }

    #[test]
    fn no_address_differs_from_the_wildcard_address() {
        assert_eq!(PortMapping::parse("1:2").unwrap()[0].host_ip, None);
        assert_eq!(
            PortMapping::parse("0.0.0.0:1:2").unwrap()[0].host_ip,
            Some(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
        );
    }

    #[test]
    fn errors_name_the_column() {
        for (text, expected) in [
            ("8O80:80", "`8O80` is not a port (0 to 65535), at column 1"),
            ("8080:", "missing port, at column 6"),
            ("", "missing port, at column 1"),
            ("80:65536", "`65536` is not a port (0 to 65535), at column 4"),
            ("80:+1", "`+1` is not a port (0 to 65535), at column 4"),
            ("80:80/sctp", "`sctp` is neither tcp nor udp, at column 7"),
            ("80:0", "the container port cannot be 0, at column 4"),
            ("localhost:80:80", "`localhost` is not an IP address, at column 1"),
            ("::1:80:80", "an IPv6 address must be in brackets, at column 1"),
            ("[::1:80:80", "missing closing bracket, at column 1"),
            ("[::g]:80:80", "`::g` is not an IPv6 address, at column 2"),
            ("[::1]80:80", "expected a colon and a port after the address, at column 6"),
            ("[::1]:80", "missing container port after the host port, at column 7"),
            ("1-3:5-6", "cannot map 3 host ports to 2 container ports, at column 1"),
            ("5-3:1", "the range ends before it starts (5-3), at column 1"),
            ("0-1:1-2", "a range cannot start with port 0, at column 1"),
            ("ü:80", "`ü` is not a port (0 to 65535), at column 1"),
            ("80:ü:80", "`80` is not an IP address, at column 1"),
        ] {
            assert_eq!(parsed(text), format!("cannot publish `{text}`: {expected}"));
        }
    }

    proptest! {
        #[test]
        fn no_input_causes_a_panic(text in "\\PC{0,24}") {
            let _ = PortMapping::parse(&text);
        }

        #[test]
        fn no_input_of_relevant_characters_causes_a_panic(text in "[0-9:\\[\\]/\\-a-ftcpudü.]{0,24}") {
            if let Ok(all) = PortMapping::parse(&text) {
                prop_assert!(!all.is_empty());
                prop_assert!(all.iter().all(|one| one.container_port != 0));
            }
        }
    }
}
