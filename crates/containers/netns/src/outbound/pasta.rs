//! The command line of pasta.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use super::host::{HostRoute, MAP_OPTION};

/// The address at which pasta forwards to the host's name server. Link-local, so that it hides no reachable address; podman
/// uses the same.
pub(super) const NAME_SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(169, 254, 1, 1));

/// The container's address and gateway where the host's address must not be its own: those of slirp4netns.
const OWN_NETWORK: [&str; 6] = ["--address", "10.0.2.100", "--netmask", "24", "--gateway", "10.0.2.2"];

/// Where pasta in the foreground writes its pid when it is ready: standard output.
const READY: &str = "/proc/self/fd/1";

/// The arguments of pasta.
///
/// When run by root it would switch to the user `nobody`, and the kernel clears the parent death
/// signal when a process changes its user. So it stays root, but without capabilities, in an empty
/// file system and with a seccomp filter, which pasta sets up itself.
///
/// It must not watch the path of the namespace, which it may not see from there: it ends with its
/// parent.
pub(super) fn arguments(namespace: &Path, root: bool, host: HostRoute) -> Vec<OsString> {
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
    match host {
        HostRoute::None => {}
        HostRoute::Mapped => {
            all.push(MAP_OPTION.into());
            all.extend(host.address().map(|address| address.to_string().into()));
        }
        HostRoute::Own(_) => all.extend(OWN_NETWORK.map(OsString::from)),
    }
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
        for host in [HostRoute::None, HostRoute::Mapped, HostRoute::Own(NAME_SERVER)] {
            let all = arguments(Path::new("/n"), false, host);
            assert!(all.contains(&OsString::from("--no-map-gw")));
            assert_eq!(all.iter().filter(|word| *word == "none").count(), 4);
        }
    }

    #[test]
    fn the_host_is_reached_at_an_address_that_the_container_does_not_have() {
        let with = |host| {
            let all = arguments(Path::new("/n"), false, host).join(&OsString::from(" "));
            all.into_string().unwrap()
        };
        assert!(!with(HostRoute::None).contains("addr"));
        assert!(with(HostRoute::Mapped).contains(" --map-guest-addr 169.254.1.2 "));
        assert!(with(HostRoute::Own(NAME_SERVER)).contains(" --address 10.0.2.100 "));
    }
}
