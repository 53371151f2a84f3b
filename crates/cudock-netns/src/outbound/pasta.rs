//! The command line of pasta.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

/// The address at which pasta forwards to the host's name server. Link-local, so that it hides no reachable address; podman
/// uses the same.
pub(super) const NAME_SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(169, 254, 1, 1));

/// Where pasta in the foreground writes its pid when it is ready: standard output.
const READY: &str = "/proc/self/fd/1";

/// The arguments of pasta.
///
/// As root it would switch to nobody, and the kernel clears the parent death signal when a process changes its user. So it
/// stays root, but without capabilities, in an empty file system and with a seccomp filter, which pasta sets up itself.
///
/// It must not watch the path of the namespace, which it may not see from there: it ends with its parent.
pub(super) fn arguments(namespace: &Path, root: bool) -> Vec<OsString> {
    let mut all: Vec<OsString> =
        ["--foreground", "--quiet", "--config-net", "--no-map-gw", "--no-netns-quit", "--pid", READY]
            .map(OsString::from)
            .into();
    // Forward no ports, in either direction.
    for direction in ["--tcp-ports", "--udp-ports", "--tcp-ns", "--udp-ns"] {
        all.extend([direction, "none"].map(OsString::from));
    }
    all.push("--dns-forward".into());
    all.push(NAME_SERVER.to_string().into());
    if root {
        all.extend(["--runas", "0"].map(OsString::from));
    }
    all.extend(["--netns-only", "--netns"].map(OsString::from));
    all.push(namespace.into());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_the_hosts_loopback_nor_a_port_is_forwarded() {
        let all = arguments(Path::new("/n"), false);
        assert!(all.contains(&OsString::from("--no-map-gw")));
        assert_eq!(all.iter().filter(|word| *word == "none").count(), 4);
    }
}
