//! Errors of container networks.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use cudock_base::{ErrorKind, Report};

use crate::forward::{PortOwner, Protocol};

pub type Result<T, E = NetnsError> = std::result::Result<T, E>;

/// An error of a container's network.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetnsError {
    #[error("cannot create a network namespace{}", hint_for_unshare(.source))]
    Create { source: io::Error },
    #[error("cannot bring up the loopback device of a new network namespace")]
    Loopback { source: io::Error },
    #[error("cannot start a thread in a network namespace")]
    Thread { source: io::Error },
    /// A thread in a namespace has ended, but the kernel still lists it.
    #[error("timed out waiting for a thread in a network namespace to exit")]
    ThreadRemains,
    #[error("cannot open the network namespace at {}", path.display())]
    Open { path: PathBuf, source: io::Error },
    /// The namespace cannot be bound to a path, or unbound from it.
    #[error("cannot bind a network namespace to {}", path.display())]
    Bind { path: PathBuf, source: io::Error },
    #[error("cannot enter a network namespace")]
    Enter { source: io::Error },
    /// Invalid value of `-p`.
    #[error("cannot publish `{text}`: {reason}, at column {column}")]
    PortMapping { text: String, column: usize, reason: String },
    #[error("port {port}/{protocol} on {address} is published twice")]
    PublishedTwice { port: u16, protocol: Protocol, address: IpAddr },
    #[error("port {port}/{protocol} on {address} is already in use{}", by(.owner.as_ref()))]
    PortInUse {
        port: u16,
        protocol: Protocol,
        address: IpAddr,
        /// The process that uses it, if `/proc` shows it.
        owner: Option<PortOwner>,
        source: io::Error,
    },
    #[error("cannot listen on port {port}/{protocol} on {address}{}", hint_for_listen(.source, *port))]
    Listen { port: u16, protocol: Protocol, address: IpAddr, source: io::Error },
    #[error("invalid forwarder argument `{text}`: {reason}")]
    Handover { text: String, reason: String },
    #[error("cannot forward ports: {what}")]
    Forward { what: &'static str, source: io::Error },
    #[error("cannot start {program}")]
    Start { program: String, source: io::Error },
    #[error(
        "outbound network access needs pasta or slirp4netns, and neither is installed; \
         hint: apt-get install passt, or --network host"
    )]
    NoOutbound,
    #[error(
        "outbound network access needs /dev/net/tun; \
         hint: as root, modprobe tun and chmod 0666 /dev/net/tun, or --network host"
    )]
    Tun { source: io::Error },
    #[error(
        "this machine has no network address at which a container could reach it; \
         hint: --network host"
    )]
    NoHostAddress { source: io::Error },
    #[error("{program} failed to connect the container's network: {output}")]
    Outbound {
        program: String,
        /// Its error output, or its exit status.
        output: String,
    },
    /// Invalid value of `--add-host`.
    #[error("cannot add host `{text}`: {reason}, at column {column}")]
    AddHost { text: String, column: usize, reason: String },
    #[error("invalid host name `{text}`: {reason}, at column {column}")]
    HostName { text: String, column: usize, reason: String },
}

fn by(owner: Option<&PortOwner>) -> String {
    owner.map(|owner| format!(" by {owner}")).unwrap_or_default()
}

impl Report for NetnsError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::PortMapping { .. }
            | Self::PublishedTwice { .. }
            | Self::AddHost { .. }
            | Self::HostName { .. } => ErrorKind::Input,
            _ => ErrorKind::Outside,
        }
    }
}

fn hint_for_unshare(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::PermissionDenied => {
            "; hint: run as root, or in a user namespace (`unshare --user --map-root-user`)"
        }
        io::ErrorKind::StorageFull => "; hint: the limit user.max_net_namespaces is reached",
        _ => "",
    }
}

fn hint_for_listen(source: &io::Error, port: u16) -> &'static str {
    match source.kind() {
        io::ErrorKind::PermissionDenied if port < 1024 => {
            "; hint: without root, ports start at the sysctl net.ipv4.ip_unprivileged_port_start"
        }
        io::ErrorKind::AddrNotAvailable => "; hint: this host does not have that address",
        _ => "",
    }
}
