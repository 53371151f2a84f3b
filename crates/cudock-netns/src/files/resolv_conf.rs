//! `/etc/resolv.conf`.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::Path;

/// Resolvers read no more name servers than this.
const MOST_SERVERS: usize = 3;

/// What was asked for, and what the network offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dns {
    /// Whether the container has a network namespace of its own, in which the host's loopback device is not there.
    pub own_namespace: bool,
    /// The address at which the way out answers for the host's name server, if there is one.
    pub forwarder: Option<IpAddr>,
    /// `--dns`: instead of the host's.
    pub servers: Vec<IpAddr>,
    /// `--dns-search`: instead of the host's; a single `.` means none.
    pub search: Vec<String>,
    /// `--dns-option`: instead of the host's.
    pub options: Vec<String>,
}

/// The file's text, and what became of the host's name servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvConf {
    /// The file's text.
    pub text: String,
    /// The name servers in it.
    pub servers: Vec<IpAddr>,
    /// Name servers of the host that the container cannot reach. With these and no servers, no name can be found, and
    /// it is good to say so.
    pub dropped: Vec<String>,
}

/// The file's text from the host's.
///
/// Name servers that were asked for stand alone. Otherwise they are the host's; but in a namespace of its own, those
/// on the loopback device or behind a device of the host are dropped, and the forwarder, if there is one, comes
/// first. No public server is made up where none is left: names of the host's network would leave it.
pub fn resolv_conf(host: &str, dns: &Dns) -> ResolvConf {
    let read = read(host);
    let mut dropped = Vec::new();
    let mut servers = dns.servers.clone();
    if servers.is_empty() {
        servers.extend(dns.forwarder.filter(|_| dns.own_namespace));
        for word in &read.servers {
            match word.parse::<IpAddr>() {
                Ok(address) if !(dns.own_namespace && is_of_host_alone(address)) => servers.push(address),
                _ => dropped.push((*word).to_owned()),
            }
        }
    }
    let mut seen = Vec::new();
    servers.retain(|address| {
        !seen.contains(address) && seen.len() < MOST_SERVERS && {
            seen.push(*address);
            true
        }
    });
    let search: Vec<&str> = match dns.search.as_slice() {
        [] => read.search,
        [only] if only == "." => Vec::new(),
        given => given.iter().map(String::as_str).collect(),
    };
    let options: Vec<&str> = match dns.options.as_slice() {
        [] => read.options,
        given => given.iter().map(String::as_str).collect(),
    };
    let mut text = String::new();
    for server in &servers {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "nameserver {server}");
    }
    for (key, words) in [("search", search), ("options", options)] {
        if !words.is_empty() {
            let _ = writeln!(text, "{key} {}", words.join(" "));
        }
    }
    ResolvConf { text, servers, dropped }
}

/// The host's file. Where it only names systemd's resolver, which answers on the loopback device, the file in which
/// that keeps the real servers is better. `root` is `/`, or a tree that stands for it.
pub fn host_resolv_conf(root: &Path, own_namespace: bool) -> io::Result<String> {
    let text = match fs::read_to_string(root.join("etc/resolv.conf")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        read => read?,
    };
    let stub: &[&str] = &["127.0.0.53"];
    if own_namespace && read(&text).servers == stub {
        return Ok(fs::read_to_string(root.join("run/systemd/resolve/resolv.conf")).unwrap_or(text));
    }
    Ok(text)
}

/// Whether an address means another machine, or none, in another namespace.
fn is_of_host_alone(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
        || address.is_unspecified()
        || matches!(address, IpAddr::V6(it) if it.is_unicast_link_local())
}

/// What the host's file says, as its resolver reads it.
#[derive(Default)]
struct Read<'a> {
    servers: Vec<&'a str>,
    search: Vec<&'a str>,
    options: Vec<&'a str>,
}

fn read(text: &str) -> Read<'_> {
    let mut found = Read::default();
    for line in text.lines() {
        let said = line.split_once(['#', ';']).map_or(line, |(said, _)| said);
        let mut words = said.split_ascii_whitespace();
        match words.next() {
            Some("nameserver") => found.servers.extend(words.next()),
            // The last of them counts.
            Some("search" | "domain") => found.search = words.collect(),
            Some("options") => found.options.extend(words),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

    use proptest::prelude::*;

    use super::*;

    const HOST: &str = "\
# made by hand
nameserver 127.0.0.53
nameserver 192.0.2.53 ; the office
nameserver fe80::1%eth0
search example.org corp.example.org
options edns0 trust-ad
";

    fn own() -> Dns {
        Dns { own_namespace: true, ..Dns::default() }
    }

    #[test]
    fn with_the_hosts_network_the_hosts_servers_stay() {
        let made = resolv_conf("nameserver 127.0.0.53\nsearch a\n", &Dns::default());
        assert_eq!(made.text, "nameserver 127.0.0.53\nsearch a\n");
        assert!(made.dropped.is_empty());
    }

    #[test]
    fn servers_that_only_the_host_can_reach_are_dropped_and_named() {
        let made = resolv_conf(HOST, &own());
        assert_eq!(
            made.text,
            "nameserver 192.0.2.53\nsearch example.org corp.example.org\noptions edns0 trust-ad\n"
        );
        assert_eq!(made.dropped, ["127.0.0.53", "fe80::1%eth0"]);
    }

    #[test]
    fn no_server_is_made_up() {
        let made = resolv_conf("nameserver ::1\n", &own());
        assert_eq!(made.text, "");
        assert_eq!(made.dropped, ["::1"]);
    }

    #[test]
    fn the_forwarder_comes_first() {
        let forwarder = Some("169.254.1.1".parse().unwrap());
        let made = resolv_conf(HOST, &Dns { forwarder, ..own() });
        assert!(made.text.starts_with("nameserver 169.254.1.1\nnameserver 192.0.2.53\n"), "{}", made.text);
    }

    #[test]
    fn what_was_asked_for_stands_alone() {
        let asked = Dns {
            servers: vec!["9.9.9.9".parse().unwrap(), "127.0.0.1".parse().unwrap()],
            search: vec![".".to_owned()],
            options: vec!["ndots:2".to_owned()],
            forwarder: Some("169.254.1.1".parse().unwrap()),
            ..own()
        };
        let made = resolv_conf(HOST, &asked);
        assert_eq!(made.text, "nameserver 9.9.9.9\nnameserver 127.0.0.1\noptions ndots:2\n");
    }

    #[test]
    fn only_as_many_servers_as_resolvers_read_and_none_twice() {
        let host = "nameserver 1.0.0.1\nnameserver 1.0.0.1\nnameserver 1.0.0.2\nnameserver 1.0.0.3\nnameserver 1.0.0.4";
        let made = resolv_conf(host, &own());
        assert_eq!(made.text, "nameserver 1.0.0.1\nnameserver 1.0.0.2\nnameserver 1.0.0.3\n");
    }

    #[test]
    fn systemds_real_servers_are_taken_where_its_stub_cannot_be_reached() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(host_resolv_conf(root.path(), true).unwrap(), "");
        put("etc/resolv.conf", "nameserver 127.0.0.53\n");
        assert_eq!(host_resolv_conf(root.path(), true).unwrap(), "nameserver 127.0.0.53\n");
        put("run/systemd/resolve/resolv.conf", "nameserver 192.0.2.53\n");
        assert_eq!(host_resolv_conf(root.path(), true).unwrap(), "nameserver 192.0.2.53\n");
        assert_eq!(host_resolv_conf(root.path(), false).unwrap(), "nameserver 127.0.0.53\n");
    }

    proptest! {
        #[test]
        fn whatever_the_host_says_no_loopback_server_comes_through(text in "(nameserver [0-9a-f:.%]{0,20}[ \n]|search \\PC{0,9}\n){0,8}") {
            let made = resolv_conf(&text, &own());
            prop_assert!(made.servers.iter().all(|address| !address.is_loopback()));
            prop_assert!(made.servers.len() <= MOST_SERVERS);
        }
    }
}
