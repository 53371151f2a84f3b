//! The host that a request is sent to, as its client writes it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Name and port of a host, as in the header `Host`. An IPv6 address is in brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostPort<'a> {
    pub(crate) name: &'a str,
    pub(crate) port: Option<u16>,
}

impl<'a> HostPort<'a> {
    /// Parses a host. `None` if it is not one, such as one with a user name, or an IPv6 address with a zone.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (name, port) = match text.find(']') {
            Some(end) => text.split_at_checked(end + 1)?,
            None => text.split_at_checked(text.find(':').unwrap_or(text.len()))?,
        };
        let port = match port.strip_prefix(':') {
            None if port.is_empty() => None,
            Some("") => None,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => Some(digits.parse().ok()?),
            _ => return None,
        };
        let is_valid = if name.starts_with('[') {
            ipv6(name).is_some()
        } else {
            name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte))
        };
        is_valid.then_some(Self { name, port })
    }

    /// Whether it has this name, in any case and with or without the dot that ends a complete name.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        without_dot(self.name).eq_ignore_ascii_case(without_dot(name))
    }

    /// Whether both have the same name and port; that of the scheme where there is none.
    pub(crate) fn is_same(&self, other: &HostPort<'_>, default_port: Option<u16>) -> bool {
        self.is_named(other.name) && self.port.or(default_port) == other.port.or(default_port)
    }

    /// The address, if it is one and not a name.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        if let Some(address) = ipv6(self.name) {
            return Some(IpAddr::V6(address).to_canonical());
        }
        without_dot(self.name).parse::<Ipv4Addr>().ok().map(IpAddr::V4)
    }

    /// Whether it always means the machine of the client, whatever a name server says.
    pub(crate) fn is_loopback(&self) -> bool {
        self.is_named("localhost") || self.address().is_some_and(|address| address.is_loopback())
    }
}

fn without_dot(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

fn ipv6(name: &str) -> Option<Ipv6Addr> {
    name.strip_prefix('[')?.strip_suffix(']')?.parse().ok()
}

/// The port of URLs without one.
pub(crate) fn default_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_name_or_an_address_with_or_without_a_port() {
        for (text, name, port) in [
            ("localhost", "localhost", None),
            ("localhost:", "localhost", None),
            ("LocalHost.:8000", "LocalHost.", Some(8000)),
            ("my_service-1.example:65535", "my_service-1.example", Some(65535)),
            ("[::1]", "[::1]", None),
            ("[::FFFF:127.0.0.1]:80", "[::FFFF:127.0.0.1]", Some(80)),
            ("", "", None),
        ] {
            assert_eq!(HostPort::parse(text), Some(HostPort { name, port }), "{text}");
        }
        for text in [
            "user@localhost",
            "localhost:8000@evil.test",
            "localhost/evil.test",
            "localhost\\evil.test",
            "localhost, evil.test",
            "localhost evil.test",
            "localhost:80:80",
            "localhost:+80",
            "localhost:65536",
            "localhost:8o",
            "::1",
            "[::1",
            "[::1]80",
            "[fe80::1%25lo]:80",
            "[::1%lo]",
            "[localhost]",
            "a]b",
            "%6cocalhost",
        ] {
            assert_eq!(HostPort::parse(text), None, "{text}");
        }
    }

    #[test]
    fn only_names_that_no_name_server_decides_are_loopback() {
        for (text, is_loopback) in [
            ("localhost", true),
            ("LOCALHOST.:1", true),
            ("127.0.0.1", true),
            ("127.9.9.9:80", true),
            ("127.0.0.1.", true),
            ("[::1]:8000", true),
            ("[0:0:0:0:0:0:0:1]", true),
            ("[::ffff:127.0.0.1]", true),
            ("[::ffff:7f00:1]", true),
            ("", false),
            (".", false),
            ("localhost..", false),
            ("localhost.evil.test", false),
            ("evil.localhost", false),
            ("127.0.0.1.evil.test", false),
            ("127.1", false),
            ("0x7f000001", false),
            ("2130706433", false),
            ("0.0.0.0", false),
            ("[::]", false),
            ("10.0.0.1", false),
            ("[::ffff:10.0.0.1]", false),
            ("evil.test", false),
        ] {
            let host = HostPort::parse(text).unwrap();
            assert_eq!(host.is_loopback(), is_loopback, "{text}");
        }
    }

    #[test]
    fn a_missing_port_is_that_of_the_scheme() {
        let same = |one: &str, other: &str, port| {
            HostPort::parse(one).unwrap().is_same(&HostPort::parse(other).unwrap(), port)
        };
        assert!(same("A.test", "a.test.:80", Some(80)));
        assert!(same("a.test", "a.test", None));
        assert!(!same("a.test", "a.test:80", Some(443)));
        assert!(!same("a.test:1", "a.test:2", None));
        assert!(!same("a.test", "b.test", None));
    }
}
