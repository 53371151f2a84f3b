//! `/etc/resolv.conf`.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::Path;

/// The number of name servers that resolvers use.
const MAX_NAME_SERVERS: usize = 3;

/// DNS settings of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dns {
    /// Whether the container has its own network namespace, in which the host's loopback device is not reachable.
    pub own_namespace: bool,
    /// The address at which the outbound tool forwards DNS queries to the host's name server, if any.
    pub forwarder: Option<IpAddr>,
    /// `--dns`: replaces the host's.
    pub servers: Vec<IpAddr>,
}

/// Renders the file from the host's.
///
/// Requested name servers replace the host's. Otherwise the host's are used; in an own namespace, without those on a
/// loopback device or behind a device of the host, and with the forwarder, if any, first. If none is left, no public
/// server is substituted: names of internal networks would leak.
pub fn resolv_conf(host: &str, dns: &Dns) -> String {
    let read = read(host);
    let mut servers = dns.servers.clone();
    if servers.is_empty() {
        servers.extend(dns.forwarder.filter(|_| dns.own_namespace));
        let addresses = read.servers.iter().filter_map(|server| server.parse().ok());
        servers.extend(addresses.filter(|address| !(dns.own_namespace && is_host_only(*address))));
    }
    let mut unique = Vec::new();
    for server in servers {
        if !unique.contains(&server) && unique.len() < MAX_NAME_SERVERS {
            unique.push(server);
        }
    }
    let mut text: String = unique.iter().map(|server| format!("nameserver {server}\n")).collect();
    for (key, values) in [("search", read.search), ("options", read.options)] {
        if !values.is_empty() {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{key} {}", values.join(" "));
        }
    }
    text
}

/// Reads the host's file. If it only refers to systemd-resolved's stub, which listens on the loopback device, the file
/// with the real servers is read instead. `root` is `/`, or a test tree.
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

/// Whether an address means something else, or nothing, in another namespace.
fn is_host_only(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
        || address.is_unspecified()
        || matches!(address, IpAddr::V6(it) if it.is_unicast_link_local())
}

/// The parsed file of the host.
#[derive(Default)]
struct HostResolvConf<'a> {
    servers: Vec<&'a str>,
    search: Vec<&'a str>,
    options: Vec<&'a str>,
}

fn read(text: &str) -> HostResolvConf<'_> {
    let mut parsed = HostResolvConf::default();
    for line in text.lines() {
        let content = line.split_once(['#', ';']).map_or(line, |(content, _)| content);
        let mut fields = content.split_ascii_whitespace();
        match fields.next() {
            Some("nameserver") => parsed.servers.extend(fields.next()),
            // The last one wins.
            Some("search" | "domain") => parsed.search = fields.collect(),
            Some("options") => parsed.options.extend(fields),
            _ => {}
        }
    }
    parsed
}

#[cfg(test)]
mod tests {
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
    fn the_hosts_network_keeps_the_hosts_servers() {
        let made = resolv_conf("nameserver 127.0.0.53\nsearch a\n", &Dns::default());
        assert_eq!(made, "nameserver 127.0.0.53\nsearch a\n");
    }

    #[test]
    fn unreachable_servers_are_dropped() {
        assert_eq!(
            resolv_conf(HOST, &own()),
            "nameserver 192.0.2.53\nsearch example.org corp.example.org\noptions edns0 trust-ad\n"
        );
    }

    #[test]
    fn no_server_is_substituted() {
        assert_eq!(resolv_conf("nameserver ::1\n", &own()), "");
    }

    #[test]
    fn the_forwarder_comes_first() {
        let forwarder = Some("169.254.1.1".parse().unwrap());
        let made = resolv_conf(HOST, &Dns { forwarder, ..own() });
        assert!(made.starts_with("nameserver 169.254.1.1\nnameserver 192.0.2.53\n"), "{made}");
    }

    #[test]
    fn requested_servers_replace_the_hosts() {
        let requested = Dns {
            servers: vec!["9.9.9.9".parse().unwrap(), "127.0.0.1".parse().unwrap()],
            forwarder: Some("169.254.1.1".parse().unwrap()),
            ..own()
        };
        let made = resolv_conf(HOST, &requested);
        assert!(made.starts_with("nameserver 9.9.9.9\nnameserver 127.0.0.1\nsearch "), "{made}");
    }

    #[test]
    fn servers_are_unique_and_limited_to_what_resolvers_use() {
        let host = "nameserver 1.0.0.1\nnameserver 1.0.0.1\nnameserver 1.0.0.2\nnameserver 1.0.0.3\nnameserver 1.0.0.4";
        let made = resolv_conf(host, &own());
        assert_eq!(made, "nameserver 1.0.0.1\nnameserver 1.0.0.2\nnameserver 1.0.0.3\n");
    }

    #[test]
    fn the_servers_of_systemd_resolved_replace_an_unreachable_stub() {
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
        fn loopback_servers_are_never_passed_on(text in "(nameserver [0-9a-f:.%]{0,20}[ \n]|search \\PC{0,9}\n){0,8}") {
            let made = resolv_conf(&text, &own());
            let servers: Vec<IpAddr> = read(&made).servers.iter().map(|address| address.parse().unwrap()).collect();
            prop_assert!(servers.iter().all(|address| !address.is_loopback()));
            prop_assert!(servers.len() <= MAX_NAME_SERVERS);
        }
    }
}
