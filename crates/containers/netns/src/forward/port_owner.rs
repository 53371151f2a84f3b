//! Finds the process that uses a port, via `/proc`.

use std::fmt;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Protocol;

/// A process that uses a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortOwner {
    pub pid: u32,
    /// The name, as shown by `ps`.
    pub name: String,
}

impl fmt::Display for PortOwner {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} (pid {})", self.name, self.pid)
    }
}

impl PortOwner {
    /// The process that prevents listening on a port. None if access is denied, or if the socket belongs to the kernel or to
    /// an invisible process.
    pub(crate) fn find(protocol: Protocol, address: IpAddr, port: u16) -> Option<Self> {
        let mut sockets = Vec::new();
        for family in ["", "6"] {
            // Of the thread, not of the process: they may be in different namespaces.
            let table = fs::read_to_string(format!("/proc/thread-self/net/{protocol}{family}"));
            sockets.extend(listening(&table.unwrap_or_default(), protocol, address, port));
        }
        let targets: Vec<String> = sockets.iter().map(|inode| format!("socket:[{inode}]")).collect();
        if targets.is_empty() {
            return None;
        }
        let processes = fs::read_dir("/proc").ok()?;
        processes.flatten().find_map(|process| {
            let pid = process.file_name().to_str()?.parse().ok()?;
            let descriptors = fs::read_dir(process.path().join("fd")).ok()?;
            let holds = descriptors.flatten().filter_map(|it| fs::read_link(it.path()).ok()).any(|target| {
                target.to_str().is_some_and(|target| targets.iter().any(|expected| expected == target))
            });
            let name = || fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            holds.then(|| Self { pid, name: name().trim_end().to_owned() })
        })
    }
}

/// The inodes of sockets in a table of `/proc/net` that conflict with an address and port.
fn listening(table: &str, protocol: Protocol, address: IpAddr, port: u16) -> Vec<u64> {
    table.lines().skip(1).filter_map(|line| conflicting_inode(line, protocol, address, port)).collect()
}

/// Parses one line: number, local address, remote address, state, queues, timer, retransmits, user, timeout, inode.
fn conflicting_inode(line: &str, protocol: Protocol, address: IpAddr, port: u16) -> Option<u64> {
    const LISTENING: &str = "0A";
    let mut fields = line.split_ascii_whitespace();
    let (local_address, local_port) = fields.nth(1)?.split_once(':')?;
    let state = fields.nth(1)?;
    let inode = fields.nth(5)?.parse().ok()?;
    let held = read_address(local_address)?;
    let collides = u16::from_str_radix(local_port, 16) == Ok(port)
        && (protocol == Protocol::Udp || state == LISTENING)
        && (held == address.to_canonical() || held.is_unspecified() || address.is_unspecified());
    collides.then_some(inode)
}

/// Parses an address: 32-bit hex numbers in native byte order.
fn read_address(hex: &str) -> Option<IpAddr> {
    let word = |at: usize| u32::from_str_radix(hex.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    match hex.len() {
        8 => Some(IpAddr::V4(Ipv4Addr::from(word(0)?))),
        32 => {
            let mut octets = [0; 16];
            for (index, four) in octets.chunks_exact_mut(4).enumerate() {
                four.copy_from_slice(&word(index * 8)?);
            }
            Some(IpAddr::V6(Ipv6Addr::from(octets)).to_canonical())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_endian = "little")]
    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 101 1 0 100 0 0 10 0
   1: 00000000:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 102 1 0 100 0 0 10 0
   2: 0100007F:1F92 0100007F:D431 01 00000000:00000000 00:00000000 00000000     0        0 103 1 0 100 0 0 10 0
";

    #[test]
    #[cfg(target_endian = "little")]
    fn a_listener_conflicts_with_its_own_address_and_the_wildcard() {
        let on = |address: &str, port| listening(TABLE, Protocol::Tcp, address.parse().unwrap(), port);
        assert_eq!(on("127.0.0.1", 8080), [101]);
        assert_eq!(on("0.0.0.0", 8080), [101]);
        assert_eq!(on("::", 8080), [101]);
        assert!(on("127.0.0.2", 8080).is_empty());
        assert_eq!(on("192.0.2.1", 8081), [102]);
        assert!(on("127.0.0.1", 8082).is_empty(), "an open connection does not hold its port");
    }

    #[test]
    fn invalid_tables_have_no_listeners() {
        for table in
            ["", "x\n\n", "h\n0: 1:2", "h\n0: zz:1F90 0:0 0A a b c d e 1", "h\n0: é00000:1 b 0A a b c d e 1"]
        {
            assert!(listening(table, Protocol::Udp, IpAddr::V4(Ipv4Addr::LOCALHOST), 8080).is_empty());
        }
    }
}
