//! `-p`, as docker reads it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// What is spoken on a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// Connections.
    Tcp,
    /// Datagrams.
    Udp,
}

impl fmt::Display for Protocol {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        })
    }
}

/// One port of the host that leads to one port of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Publication {
    /// The host's address to listen on; none means all, of either family, as in docker.
    pub host_ip: Option<IpAddr>,
    /// The host's port; 0 means any that is free.
    pub host_port: u16,
    /// The container's port.
    pub container_port: u16,
    /// What is spoken there.
    pub protocol: Protocol,
}

impl Publication {
    /// Reads one `-p`: `[[address:][host port]:]container port[/tcp|/udp]`, where a port may be a range, and an IPv6
    /// address stands in brackets. A range gives a publication for each port in it.
    ///
    /// ```
    /// use cudock_netns::forward::Publication;
    /// let two = Publication::parse("127.0.0.1:8000-8001:9000-9001/udp")?;
    /// assert_eq!(two[1].to_string(), "127.0.0.1:8001->9001/udp");
    /// # Ok::<(), cudock_netns::Error>(())
    /// ```
    pub fn parse(text: &str) -> Result<Vec<Self>> {
        let whole = Piece { text, from: 0 };
        read(whole).map_err(|(at, reason)| {
            let before = text.get(..at).unwrap_or(text);
            Error::Publication { text: text.to_owned(), column: before.chars().count() + 1, reason }
        })
    }

    /// The address to listen on, with IPv4's for all where none was given.
    pub fn address(&self) -> IpAddr {
        self.host_ip.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
    }
}

impl fmt::Display for Publication {
    /// As `docker ps` writes it: `0.0.0.0:8080->80/tcp`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let to = std::net::SocketAddr::new(self.address(), self.host_port);
        write!(out, "{to}->{}/{}", self.container_port, self.protocol)
    }
}

/// A part of what was typed, which knows where it stood.
#[derive(Clone, Copy)]
struct Piece<'a> {
    text: &'a str,
    from: usize,
}

impl Piece<'_> {
    /// What stands before and behind a byte that is an ASCII sign.
    fn split(self, at: usize) -> (Self, Self) {
        let before = self.text.get(..at).unwrap_or_default();
        let behind = self.text.get(at + 1..).unwrap_or_default();
        (Self { text: before, from: self.from }, Self { text: behind, from: self.from + at + 1 })
    }

    fn split_at_first(self, sign: char) -> Option<(Self, Self)> {
        Some(self.split(self.text.find(sign)?))
    }

    fn split_at_last(self, sign: char) -> Option<(Self, Self)> {
        Some(self.split(self.text.rfind(sign)?))
    }

    fn wrong<T>(self, reason: impl Into<String>) -> Read<T> {
        Err((self.from, reason.into()))
    }
}

/// A value, or what is wrong and at which byte.
type Read<T> = std::result::Result<T, (usize, String)>;

fn read(whole: Piece<'_>) -> Read<Vec<Publication>> {
    let (ports, protocol) = match whole.split_at_last('/') {
        Some((ports, name)) => (ports, read_protocol(name)?),
        None => (whole, Protocol::Tcp),
    };
    let (host_ip, host, container) = read_parts(ports)?;
    let (first, last) = read_range(container)?;
    if first == 0 {
        return container.wrong("a container's port cannot be 0");
    }
    let host_ports = match host {
        Some(host) if !host.text.is_empty() => Some((host, read_range(host)?)),
        _ => None,
    };
    let Some((host, (host_first, host_last))) = host_ports.filter(|(_, range)| *range != (0, 0)) else {
        let any = |container_port| Publication { host_ip, host_port: 0, container_port, protocol };
        return Ok((first..=last).map(any).collect());
    };
    if host_first == 0 {
        return host.wrong("a range cannot begin with port 0");
    }
    let (host_count, count) = (u32::from(host_last - host_first) + 1, u32::from(last - first) + 1);
    if host_count != count {
        return host.wrong(format!("{host_count} ports of the host cannot lead to {count} of the container"));
    }
    let pairs = (host_first..=host_last).zip(first..=last);
    Ok(pairs
        .map(|(host_port, container_port)| Publication { host_ip, host_port, container_port, protocol })
        .collect())
}

fn read_protocol(name: Piece<'_>) -> Read<Protocol> {
    if name.text.eq_ignore_ascii_case("tcp") {
        Ok(Protocol::Tcp)
    } else if name.text.eq_ignore_ascii_case("udp") {
        Ok(Protocol::Udp)
    } else {
        name.wrong(format!("`{}` is neither tcp nor udp", name.text))
    }
}

/// The address, the host's port if it has a place, and the container's.
fn read_parts(ports: Piece<'_>) -> Read<(Option<IpAddr>, Option<Piece<'_>>, Piece<'_>)> {
    if ports.text.starts_with('[') {
        let Some((open, behind)) = ports.split_at_first(']') else {
            return ports.wrong("the bracket is not closed");
        };
        let (_, inside) = open.split(0);
        let Ok(address) = inside.text.parse::<Ipv6Addr>() else {
            return inside.wrong(format!("`{}` is not an IPv6 address", inside.text));
        };
        let Some((_, rest)) = behind.split_at_first(':').filter(|(between, _)| between.text.is_empty())
        else {
            return behind.wrong("a colon and a port must follow the address");
        };
        let Some((host, container)) = rest.split_at_first(':') else {
            return rest.wrong("the container's port is missing behind the host's");
        };
        return Ok((Some(IpAddr::V6(address)), Some(host), container));
    }
    let Some((before, container)) = ports.split_at_last(':') else { return Ok((None, None, ports)) };
    let Some((address, host)) = before.split_at_last(':') else { return Ok((None, Some(before), container)) };
    if address.text.contains(':') {
        return address.wrong("an IPv6 address must stand in brackets");
    }
    match address.text.parse::<Ipv4Addr>() {
        Ok(read) => Ok((Some(IpAddr::V4(read)), Some(host), container)),
        Err(_) if address.text.is_empty() => Ok((None, Some(host), container)),
        Err(_) => address.wrong(format!("`{}` is not an IP address", address.text)),
    }
}

fn read_range(range: Piece<'_>) -> Read<(u16, u16)> {
    let Some((first, last)) = range.split_at_first('-') else {
        let port = read_port(range)?;
        return Ok((port, port));
    };
    let (from, to) = (read_port(first)?, read_port(last)?);
    if to < from {
        range.wrong(format!("the range ends before it begins ({from}-{to})"))
    } else {
        Ok((from, to))
    }
}

fn read_port(port: Piece<'_>) -> Read<u16> {
    if port.text.is_empty() {
        return port.wrong("a port is missing");
    }
    // `parse` alone would take a plus sign.
    match port.text.parse() {
        Ok(number) if port.text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(number),
        _ => port.wrong(format!("`{}` is not a port (0 to 65535)", port.text)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        reason = "a test may fail loudly"
    )]

    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str) -> String {
        match Publication::parse(text) {
            Ok(all) => all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn dockers_forms_mean_what_they_mean_to_docker() {
        for (text, meant) in [
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
            assert_eq!(shown(text), meant, "{text}");
        }
    }

    #[test]
    fn no_address_is_told_from_the_address_of_all() {
        assert_eq!(Publication::parse("1:2").unwrap()[0].host_ip, None);
        assert_eq!(
            Publication::parse("0.0.0.0:1:2").unwrap()[0].host_ip,
            Some(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
        );
    }

    #[test]
    fn a_mistake_is_named_with_its_place() {
        for (text, said) in [
            ("8O80:80", "cannot publish `8O80:80`: `8O80` is not a port (0 to 65535), at column 1"),
            ("8080:", "cannot publish `8080:`: a port is missing, at column 6"),
            ("", "cannot publish ``: a port is missing, at column 1"),
            ("80:65536", "cannot publish `80:65536`: `65536` is not a port (0 to 65535), at column 4"),
            ("80:+1", "cannot publish `80:+1`: `+1` is not a port (0 to 65535), at column 4"),
            ("80:80/sctp", "cannot publish `80:80/sctp`: `sctp` is neither tcp nor udp, at column 7"),
            ("80:0", "cannot publish `80:0`: a container's port cannot be 0, at column 4"),
            (
                "localhost:80:80",
                "cannot publish `localhost:80:80`: `localhost` is not an IP address, at column 1",
            ),
            ("::1:80:80", "cannot publish `::1:80:80`: an IPv6 address must stand in brackets, at column 1"),
            ("[::1:80:80", "cannot publish `[::1:80:80`: the bracket is not closed, at column 1"),
            ("[::g]:80:80", "cannot publish `[::g]:80:80`: `::g` is not an IPv6 address, at column 2"),
            (
                "[::1]80:80",
                "cannot publish `[::1]80:80`: a colon and a port must follow the address, at column 6",
            ),
            (
                "[::1]:80",
                "cannot publish `[::1]:80`: the container's port is missing behind the host's, at column 7",
            ),
            (
                "1-3:5-6",
                "cannot publish `1-3:5-6`: 3 ports of the host cannot lead to 2 of the container, at column 1",
            ),
            ("5-3:1", "cannot publish `5-3:1`: the range ends before it begins (5-3), at column 1"),
            ("0-1:1-2", "cannot publish `0-1:1-2`: a range cannot begin with port 0, at column 1"),
            ("ü:80", "cannot publish `ü:80`: `ü` is not a port (0 to 65535), at column 1"),
            ("80:ü:80", "cannot publish `80:ü:80`: `80` is not an IP address, at column 1"),
        ] {
            assert_eq!(shown(text), said);
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_fall(text in "\\PC{0,24}") {
            let _ = Publication::parse(&text);
        }

        #[test]
        fn signs_that_matter_do_not_make_it_fall_either(text in "[0-9:\\[\\]/\\-a-ftcpudü.]{0,24}") {
            if let Ok(all) = Publication::parse(&text) {
                prop_assert!(!all.is_empty());
                prop_assert!(all.iter().all(|one| one.container_port != 0));
            }
        }
    }
}
