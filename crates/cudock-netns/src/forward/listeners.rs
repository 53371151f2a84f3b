//! The host's side of published ports.

use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use socket2::{Domain, Socket, Type};

use super::{Holder, Protocol, Publication};
use crate::{Error, Result};

/// How many connections may wait until the forwarder takes them; the kernel takes less where it must.
const BACKLOG: i32 = 4096;

/// Ports of the host that are ours, and where each leads. Nobody accepts on them yet.
#[derive(Debug, Default)]
pub struct Listeners {
    all: Vec<Listener>,
}

/// One port of the host.
#[derive(Debug)]
pub struct Listener {
    publication: Publication,
    socket: OwnedFd,
}

impl Listeners {
    /// Takes all the ports, or none. From here on connections are let in, and wait to be carried.
    ///
    /// Without an address, one socket listens on all addresses of both families, or of IPv4's alone where the host
    /// has no IPv6.
    pub fn bind(publications: &[Publication]) -> Result<Self> {
        let mut seen = HashSet::new();
        for one in publications.iter().filter(|one| one.host_port != 0) {
            if !seen.insert((one.host_ip, one.host_port, one.protocol)) {
                return Err(Error::PublishedTwice {
                    port: one.host_port,
                    protocol: one.protocol,
                    address: one.address(),
                });
            }
        }
        let all = publications.iter().map(bind_one).collect::<Result<_>>()?;
        Ok(Self { all })
    }

    /// The publications, each with the port it really got.
    pub fn publications(&self) -> Vec<Publication> {
        self.all.iter().map(|one| one.publication).collect()
    }

    /// Whether there is nothing to forward.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Each listener.
    pub fn iter(&self) -> impl Iterator<Item = &Listener> {
        self.all.iter()
    }
}

impl Listener {
    /// What it is for, with the port it really got.
    pub fn publication(&self) -> Publication {
        self.publication
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn bind_one(wanted: &Publication) -> Result<Listener> {
    let everywhere = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    let opened = match wanted.host_ip {
        Some(address) => open(wanted, address, true),
        None => open(wanted, everywhere, false).or_else(|error| match error.raw_os_error() {
            Some(NO_FAMILY | NO_ADDRESS) => open(wanted, wanted.address(), true),
            _ => Err(error),
        }),
    };
    let (protocol, port, address) = (wanted.protocol, wanted.host_port, wanted.address());
    let socket = opened.map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => match Holder::find(protocol, address, port) {
            Some(ourselves) if ourselves.pid == std::process::id() => {
                Error::PublishedTwice { port, protocol, address }
            }
            holder => Error::PortInUse { port, protocol, address, holder, source },
        },
        _ => Error::Listen { port, protocol, address, source },
    })?;
    let local = socket.local_addr().map_err(|source| Error::Listen { port, protocol, address, source })?;
    let host_port = local.as_socket().map_or(port, |it| it.port());
    Ok(Listener { publication: Publication { host_port, ..*wanted }, socket: socket.into() })
}

const NO_FAMILY: i32 = rustix::io::Errno::AFNOSUPPORT.raw_os_error();
const NO_ADDRESS: i32 = rustix::io::Errno::ADDRNOTAVAIL.raw_os_error();

fn open(wanted: &Publication, address: IpAddr, one_family: bool) -> io::Result<Socket> {
    let kind = match wanted.protocol {
        Protocol::Tcp => Type::STREAM,
        Protocol::Udp => Type::DGRAM,
    };
    let to = SocketAddr::new(address, wanted.host_port);
    let socket = Socket::new(Domain::for_address(to), kind, None)?;
    socket.set_nonblocking(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(one_family)?;
    }
    if wanted.protocol == Protocol::Tcp {
        // Connections of a former container that linger must not keep the next from its port.
        socket.set_reuse_address(true)?;
    }
    socket.bind(&to.into())?;
    if wanted.protocol == Protocol::Tcp {
        socket.listen(BACKLOG)?;
    }
    Ok(socket)
}
