//! How a container reaches the host itself.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::process::Command;

use super::tool::{OutboundTool, Tool};
use crate::{NetnsError, Result};

/// The option that maps an address to the host's; versions before August 2024 do not have it.
pub(super) const MAP_OPTION: &str = "--map-guest-addr";

/// Whether a container needs an address at which it reaches services of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostAccess {
    #[default]
    NotNeeded,
    Needed,
}

/// How the host is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostRoute {
    /// Not reachable at the address that pasta copies.
    None,
    /// Through an address that pasta maps to the host's.
    Mapped,
    /// Through the host's own address. With pasta, the container has another one then.
    Own(IpAddr),
}

/// The address that newer versions of pasta map to the host's; podman uses the same.
const MAPPED: IpAddr = IpAddr::V4(Ipv4Addr::new(169, 254, 1, 2));

/// An address in a network that is reserved for documentation. Nothing is sent to it.
const ELSEWHERE: (Ipv4Addr, u16) = (Ipv4Addr::new(192, 0, 2, 1), 9);

impl HostRoute {
    pub(super) fn choose(access: HostAccess, tool: &OutboundTool) -> Result<Self> {
        match (access, tool.tool) {
            (HostAccess::NotNeeded, _) => Ok(Self::None),
            (HostAccess::Needed, Tool::Pasta) if maps_addresses(tool) => Ok(Self::Mapped),
            (HostAccess::Needed, _) => own_address().map(Self::Own),
        }
    }

    /// The address of the host, from inside.
    pub(super) fn address(self) -> Option<IpAddr> {
        match self {
            Self::None => None,
            Self::Mapped => Some(MAPPED),
            Self::Own(address) => Some(address),
        }
    }
}

/// Whether this version of pasta can map an address to the host's.
fn maps_addresses(pasta: &OutboundTool) -> bool {
    let help = Command::new(&pasta.path).arg("--help").output();
    help.is_ok_and(|output| {
        let text = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&text).contains(MAP_OPTION)
    })
}

/// The address from which this machine speaks to others.
fn own_address() -> Result<IpAddr> {
    let address = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| {
        socket.connect(ELSEWHERE)?;
        Ok(socket.local_addr()?.ip())
    });
    address.map_err(|source| NetnsError::NoHostAddress { source })
}
