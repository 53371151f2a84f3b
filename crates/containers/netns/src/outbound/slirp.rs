//! The command line of slirp4netns.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::RawFd;
use std::path::Path;

/// The address at which it forwards to the host's name server, in its own network 10.0.2.0/24.
pub(super) const NAME_SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 2, 3));

/// The arguments of slirp4netns. It writes to `ready` when it is ready, and ends when the other end of `exit` is closed.
pub(super) fn arguments(namespace: &Path, ready: RawFd, exit: RawFd) -> Vec<OsString> {
    let mut all: Vec<OsString> =
        ["--configure", "--mtu=65520", "--enable-sandbox", "--enable-seccomp", "--disable-host-loopback"]
            .map(OsString::from)
            .into();
    all.push(format!("--ready-fd={ready}").into());
    all.push(format!("--exit-fd={exit}").into());
    all.push("--netns-type=path".into());
    all.push(namespace.into());
    all.push("tap0".into());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hosts_loopback_is_not_reachable() {
        assert!(arguments(Path::new("/n"), 3, 4).contains(&OsString::from("--disable-host-loopback")));
    }
}
