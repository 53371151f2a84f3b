//! The host side of published ports.

use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use socket2::{Domain, Socket};

use super::{PortMapping, PortOwner, Protocol};
use crate::{NetnsError, Result};

/// Connections that may wait until they are accepted; the kernel may lower it.
const BACKLOG: i32 = 4096;

/// Bound ports of the host, with their mappings. Nothing is accepted yet.
#[derive(Debug, Default)]
pub struct Listeners {
    pub(super) all: Vec<Listener>,
}

/// One bound port of the host.
#[derive(Debug)]
pub(super) struct Listener {
    /// The mapping, with the host port actually bound.
    pub(super) mapping: PortMapping,
    pub(super) socket: OwnedFd,
}

impl Listeners {
    /// Binds all ports, or none. From here on, the kernel queues connections.
    ///
    /// A mapping without an address gets one socket on all addresses of both families, or only of IPv4
    /// if the host has no IPv6.
    pub fn bind(mappings: &[PortMapping]) -> Result<Self> {
        let mut seen = HashSet::new();
        for one in mappings.iter().filter(|one| one.host_port != 0) {
            if !seen.insert((one.host_ip, one.host_port, one.protocol)) {
                return Err(NetnsError::PublishedTwice {
                    port: one.host_port,
                    protocol: one.protocol,
                    address: one.address(),
                });
            }
        }
        let all = mappings.iter().map(bind_one).collect::<Result<_>>()?;
        Ok(Self { all })
    }

    /// The port mappings, with the host ports actually bound.
    pub fn mappings(&self) -> Vec<PortMapping> {
        self.all.iter().map(|one| one.mapping).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

fn bind_one(mapping: &PortMapping) -> Result<Listener> {
    let everywhere = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    let opened = match mapping.host_ip {
        Some(address) => open(mapping, address, true),
        None => open(mapping, everywhere, false).or_else(|error| match error.raw_os_error() {
            Some(NO_FAMILY | NO_ADDRESS) => open(mapping, mapping.address(), true),
            _ => Err(error),
        }),
    };
    let (protocol, port, address) = (mapping.protocol, mapping.host_port, mapping.address());
    let socket = opened.map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => match PortOwner::find(protocol, address, port) {
            Some(ourselves) if ourselves.pid == std::process::id() => {
                NetnsError::PublishedTwice { port, protocol, address }
            }
            owner => NetnsError::PortInUse { port, protocol, address, owner, source },
        },
        _ => NetnsError::Listen { port, protocol, address, source },
    })?;
    let local =
        socket.local_addr().map_err(|source| NetnsError::Listen { port, protocol, address, source })?;
    let host_port = local.as_socket().map_or(port, |it| it.port());
    Ok(Listener { mapping: PortMapping { host_port, ..*mapping }, socket: socket.into() })
}

const NO_FAMILY: i32 = rustix::io::Errno::AFNOSUPPORT.raw_os_error();
const NO_ADDRESS: i32 = rustix::io::Errno::ADDRNOTAVAIL.raw_os_error();

fn open(mapping: &PortMapping, address: IpAddr, one_family: bool) -> io::Result<Socket> {
    let to = SocketAddr::new(address, mapping.host_port);
    let socket = Socket::new(Domain::for_address(to), mapping.protocol.socket_type(), None)?;
    socket.set_nonblocking(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(one_family)?;
    }
    if mapping.protocol == Protocol::Tcp {
        // Lingering connections of a previous container must not block its port.
        socket.set_reuse_address(true)?;
    }
    socket.bind(&to.into())?;
    if mapping.protocol == Protocol::Tcp {
        socket.listen(BACKLOG)?;
    }
    Ok(socket)
}
