//! `/etc/hosts`.

use cudock_base::bug::Parts;
use std::fmt::Write as _;
use std::net::IpAddr;

use super::hostname;
use crate::{NetnsError, Result};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddHost {
    pub name: String,
    pub address: IpAddr,
}

impl AddHost {
    /// Parses `name:address` or `name=address`, with an IPv6 address bare or in brackets. `host-gateway` stands for the
    /// address of the host as seen by the container, if there is one.
    pub fn parse(text: &str, gateway: Option<IpAddr>) -> Result<Self> {
        let invalid = |at: usize, reason: String| NetnsError::AddHost {
            text: text.to_owned(),
            column: text.get(..at).unwrap_or(text).chars().count() + 1,
            reason,
        };
        let Some(separator) = text.find(['=', ':']) else {
            return Err(invalid(text.len(), "missing colon and address".to_owned()));
        };
        let name = text.part(..separator);
        let address = text.part(separator + 1..);
        if let Err(NetnsError::HostName { column, reason, .. }) = hostname(name) {
            let at = name.char_indices().nth(column - 1).map_or(name.len(), |(at, _)| at);
            return Err(invalid(at, reason));
        }
        let bare = address.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(address);
        let address = match (bare, gateway) {
            ("host-gateway", Some(gateway)) => gateway,
            ("host-gateway", None) => {
                return Err(invalid(separator + 1, "the host has no address in this network".to_owned()));
            }
            _ => bare
                .parse()
                .map_err(|_| invalid(separator + 1, format!("`{address}` is not an IP address")))?,
        };
        Ok(Self { name: name.to_owned(), address })
    }
}

/// The contents of the file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hosts<'a> {
    /// The container's own name.
    pub hostname: &'a str,
    /// The `--add-host` values in order; resolvers use the first match.
    pub added: &'a [AddHost],
    /// The host's own file, if the container shares the host's network.
    pub host_file: Option<&'a str>,
}

const LOCAL: &str = "\
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
ff00::0\tip6-mcastprefix
ff02::1\tip6-allnodes
ff02::2\tip6-allrouters
";

/// Renders the file.
pub fn hosts(contents: &Hosts<'_>) -> String {
    let mut text = String::new();
    // First, so that they take precedence over the host's entries.
    for AddHost { name, address } in contents.added {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{address}\t{name}");
    }
    let base = contents.host_file.unwrap_or(LOCAL);
    text.push_str(base);
    if !base.is_empty() && !base.ends_with('\n') {
        text.push('\n');
    }
    if !contents.hostname.is_empty() && !names(&text).any(|name| name == contents.hostname) {
        // Published ports are served on localhost.
        let short =
            contents.hostname.split_once('.').map(|(short, _)| format!(" {short}")).unwrap_or_default();
        let _ = writeln!(text, "127.0.0.1\t{}{short}", contents.hostname);
    }
    text
}

/// All host names in a hosts file.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| {
        let content = line.split_once('#').map_or(line, |(content, _)| content);
        content.split_ascii_whitespace().skip(1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(text: &str) -> AddHost {
        AddHost::parse(text, Some("10.0.2.2".parse().unwrap())).unwrap()
    }

    #[test]
    fn all_forms_of_docker_are_parsed() {
        for (text, expected) in [
            ("db:10.0.0.1", "10.0.0.1"),
            ("db=10.0.0.1", "10.0.0.1"),
            ("db:::1", "::1"),
            ("db=[fd00::1]", "fd00::1"),
            ("db:host-gateway", "10.0.2.2"),
        ] {
            assert_eq!(
                added(text),
                AddHost { name: "db".to_owned(), address: expected.parse().unwrap() },
                "{text}"
            );
        }
    }

    #[test]
    fn errors_in_add_host_name_the_column() {
        for (text, expected) in [
            ("db", "missing colon and address, at column 3"),
            ("db:x", "`x` is not an IP address, at column 4"),
            ("d b:1.1.1.1", "character ` ` is not allowed, at column 2"),
            (":1.1.1.1", "name is empty, at column 1"),
            ("db:host-gateway", "the host has no address in this network, at column 4"),
        ] {
            let error = AddHost::parse(text, None).unwrap_err().to_string();
            assert_eq!(error, format!("cannot add host `{text}`: {expected}"));
        }
    }

    #[test]
    fn the_container_resolves_its_own_name() {
        let text = hosts(&Hosts { hostname: "web", ..Hosts::default() });
        assert!(text.starts_with("127.0.0.1\tlocalhost\n"), "{text}");
        assert!(text.ends_with("127.0.0.1\tweb\n"), "{text}");
        let text = hosts(&Hosts { hostname: "web.example.org", ..Hosts::default() });
        assert!(text.ends_with("127.0.0.1\tweb.example.org web\n"), "{text}");
    }

    #[test]
    fn added_hosts_take_precedence_over_the_hosts_file() {
        let added = [added("db:10.0.0.1")];
        let host_file = Some("127.0.0.1 localhost\n10.9.9.9 db # old");
        let text = hosts(&Hosts { hostname: "old", added: &added, host_file });
        assert_eq!(text, "10.0.0.1\tdb\n127.0.0.1 localhost\n10.9.9.9 db # old\n127.0.0.1\told\n");
    }

    #[test]
    fn an_existing_name_is_not_added_again() {
        let text = hosts(&Hosts { hostname: "me", host_file: Some("127.0.1.1 me\n"), ..Hosts::default() });
        assert_eq!(text, "127.0.1.1 me\n");
    }
}
