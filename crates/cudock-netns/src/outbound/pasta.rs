//! How pasta is called.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use super::Options;

/// The address at which pasta answers for the host's name server. Link-local, so that it hides nothing the container
/// may want to reach; the same that podman has chosen.
pub(super) const NAME_SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(169, 254, 1, 1));

/// Where pasta, kept in the foreground, writes its number when it is ready: its standard output.
const READY: &str = "/proc/self/fd/1";

/// What pasta is started with.
///
/// Started by root it would become nobody; and when a process changes its user, the kernel forgets with whom it was to
/// die. So root stays root, without capabilities, in an empty file system and behind a filter of system calls, all of
/// which pasta sees to itself.
///
/// It is not to watch the namespace's path either, which it may no longer see from there: it ends with its parent.
pub(super) fn arguments(namespace: &Path, options: Options, root: bool) -> Vec<OsString> {
    let mut all: Vec<OsString> =
        ["--foreground", "--quiet", "--config-net", "--no-netns-quit", "--pid", READY]
            .map(OsString::from)
            .into();
    // Nothing is forwarded, neither in nor out of the loopback devices.
    for direction in ["--tcp-ports", "--udp-ports", "--tcp-ns", "--udp-ns"] {
        all.extend([direction, "none"].map(OsString::from));
    }
    all.push("--dns-forward".into());
    all.push(NAME_SERVER.to_string().into());
    if !options.host_loopback {
        all.push("--no-map-gw".into());
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
    fn the_hosts_loopback_is_mapped_only_when_asked_for() {
        let with = |host_loopback| arguments(Path::new("/n"), Options { host_loopback }, true);
        assert!(with(false).contains(&OsString::from("--no-map-gw")));
        assert!(!with(true).contains(&OsString::from("--no-map-gw")));
    }

    #[test]
    fn ports_are_left_alone_in_all_four_directions() {
        let all = arguments(Path::new("/n"), Options::default(), false);
        assert_eq!(all.iter().filter(|word| *word == "none").count(), 4);
    }
}
