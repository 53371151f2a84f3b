//! `/etc/hosts`.

use std::fmt::Write as _;
use std::net::IpAddr;

use super::hostname;
use crate::{Error, Result};

/// An `--add-host`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddHost {
    /// The name.
    pub name: String,
    /// Where it leads.
    pub address: IpAddr,
}

impl AddHost {
    /// Reads `name:address` or `name=address`, with an IPv6 address bare or in brackets. `host-gateway` stands for
    /// the address under which the container reaches the host, where it has one.
    pub fn parse(text: &str, gateway: Option<IpAddr>) -> Result<Self> {
        let wrong = |at: usize, reason: String| Error::AddHost {
            text: text.to_owned(),
            column: text.get(..at).unwrap_or(text).chars().count() + 1,
            reason,
        };
        let Some(sign) = text.find(['=', ':']) else {
            return Err(wrong(text.len(), "a colon and an address are missing".to_owned()));
        };
        let name = text.get(..sign).unwrap_or_default();
        let address = text.get(sign + 1..).unwrap_or_default();
        if let Err(Error::HostName { column, reason, .. }) = hostname(name) {
            let at = name.char_indices().nth(column - 1).map_or(name.len(), |(at, _)| at);
            return Err(wrong(at, reason));
        }
        let bare = address.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(address);
        let address = match (bare, gateway) {
            ("host-gateway", Some(gateway)) => gateway,
            ("host-gateway", None) => {
                return Err(wrong(sign + 1, "this network has no address for the host".to_owned()));
            }
            _ => bare.parse().map_err(|_| wrong(sign + 1, format!("`{address}` is not an IP address")))?,
        };
        Ok(Self { name: name.to_owned(), address })
    }
}

/// What goes into the file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hosts<'a> {
    /// The container's own name.
    pub hostname: &'a str,
    /// The address that its own name leads to. Without one it is localhost, where a published port is looked for.
    pub address: Option<IpAddr>,
    /// What was asked for, in this order; resolvers take the first line with a name.
    pub added: &'a [AddHost],
    /// The host's own file, where the container shares the host's network.
    pub of_host: Option<&'a str>,
}

const LOCAL: &str = "\
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
ff00::0\tip6-mcastprefix
ff02::1\tip6-allnodes
ff02::2\tip6-allrouters
";

/// The file's text.
pub fn hosts(wanted: &Hosts<'_>) -> String {
    let mut text = String::new();
    // First, so that what was asked for wins over what the host says.
    for AddHost { name, address } in wanted.added {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{address}\t{name}");
    }
    let base = wanted.of_host.unwrap_or(LOCAL);
    text.push_str(base);
    if !base.is_empty() && !base.ends_with('\n') {
        text.push('\n');
    }
    if !wanted.hostname.is_empty() && !names(&text).any(|name| name == wanted.hostname) {
        let address = wanted.address.unwrap_or(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));
        let short = wanted.hostname.split_once('.').map(|(short, _)| format!(" {short}")).unwrap_or_default();
        let _ = writeln!(text, "{address}\t{}{short}", wanted.hostname);
    }
    text
}

/// All names in such a file.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| {
        let said = line.split_once('#').map_or(line, |(said, _)| said);
        said.split_ascii_whitespace().skip(1)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

    use super::*;

    fn added(text: &str) -> AddHost {
        AddHost::parse(text, Some("10.0.2.2".parse().unwrap())).unwrap()
    }

    #[test]
    fn dockers_forms_of_add_host_are_read() {
        for (text, shown) in [
            ("db:10.0.0.1", "10.0.0.1"),
            ("db=10.0.0.1", "10.0.0.1"),
            ("db:::1", "::1"),
            ("db=[fd00::1]", "fd00::1"),
            ("db:host-gateway", "10.0.2.2"),
        ] {
            assert_eq!(
                added(text),
                AddHost { name: "db".to_owned(), address: shown.parse().unwrap() },
                "{text}"
            );
        }
    }

    #[test]
    fn a_mistake_in_add_host_is_named_with_its_place() {
        for (text, said) in [
            ("db", "cannot add the host `db`: a colon and an address are missing, at column 3"),
            ("db:x", "cannot add the host `db:x`: `x` is not an IP address, at column 4"),
            ("d b:1.1.1.1", "cannot add the host `d b:1.1.1.1`: ` ` is not allowed in it, at column 2"),
            (":1.1.1.1", "cannot add the host `:1.1.1.1`: it is empty, at column 1"),
            (
                "db:host-gateway",
                "cannot add the host `db:host-gateway`: this network has no address for the host, at column 4",
            ),
        ] {
            assert_eq!(AddHost::parse(text, None).unwrap_err().to_string(), said);
        }
    }

    #[test]
    fn the_containers_own_name_leads_to_itself() {
        let text = hosts(&Hosts { hostname: "web", ..Hosts::default() });
        assert!(text.starts_with("127.0.0.1\tlocalhost\n"), "{text}");
        assert!(text.ends_with("127.0.0.1\tweb\n"), "{text}");
        let address = Some("192.0.2.7".parse().unwrap());
        let text = hosts(&Hosts { hostname: "web.example.org", address, ..Hosts::default() });
        assert!(text.ends_with("192.0.2.7\tweb.example.org web\n"), "{text}");
    }

    #[test]
    fn what_was_added_wins_over_the_hosts_own_file() {
        let added = [added("db:10.0.0.1")];
        let of_host = Some("127.0.0.1 localhost\n10.9.9.9 db # old");
        let text = hosts(&Hosts { hostname: "old", added: &added, of_host, ..Hosts::default() });
        assert_eq!(text, "10.0.0.1\tdb\n127.0.0.1 localhost\n10.9.9.9 db # old\n127.0.0.1\told\n");
    }

    #[test]
    fn a_name_that_is_there_already_is_not_added_again() {
        let text = hosts(&Hosts { hostname: "me", of_host: Some("127.0.1.1 me\n"), ..Hosts::default() });
        assert_eq!(text, "127.0.1.1 me\n");
    }
}
