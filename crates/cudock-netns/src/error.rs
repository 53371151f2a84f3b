//! Errors of container networks.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use cudock_base::{ErrorKind, Report};

use crate::forward::{PortOwner, Protocol};

/// The result type of this crate.
pub type Result<T, E = NetnsError> = std::result::Result<T, E>;

/// An error of a container's network.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetnsError {
    /// A network namespace cannot be created.
    #[error("cannot create a network namespace{}", hint_for_unshare(.source))]
    Create {
        /// The error of the system call.
        #[source]
        source: io::Error,
    },
    /// The loopback device cannot be brought up.
    #[error("cannot bring up the loopback device of a new network namespace")]
    Loopback {
        /// The error of the system call.
        #[source]
        source: io::Error,
    },
    /// No thread can be started.
    #[error("cannot start a thread in a network namespace")]
    Thread {
        /// The error of the system call.
        #[source]
        source: io::Error,
    },
    /// A thread in a namespace has ended, but the kernel still lists it.
    #[error("timed out waiting for a thread in a network namespace to exit")]
    ThreadRemains,
    /// The process does not exist, or access to it is denied.
    #[error("cannot open the network namespace of process {pid}")]
    OfProcess {
        /// The process id.
        pid: u32,
        /// The error of the system call.
        #[source]
        source: io::Error,
    },
    /// The path is not a network namespace.
    #[error("cannot open the network namespace at {}", path.display())]
    Open {
        path: PathBuf,
        /// The error of the system call.
        #[source]
        source: io::Error,
    },
    /// The namespace cannot be bound to a path, or unbound from it.
    #[error("cannot bind a network namespace to {}", path.display())]
    Bind {
        path: PathBuf,
        /// The error of the system call.
        #[source]
        source: io::Error,
    },
    /// A thread cannot join the namespace.
    #[error("cannot enter a network namespace")]
    Enter {
        /// The error of the system call.
        #[source]
        source: io::Error,
    },
    /// Invalid value of `-p`.
    #[error("cannot publish `{text}`: {reason}, at column {column}")]
    PortMapping {
        text: String,
        /// The column of the error, counted from 1.
        column: usize,
        reason: String,
    },
    /// The same host port is published twice.
    #[error("port {port}/{protocol} on {address} is published twice")]
    PublishedTwice {
        /// The host port.
        port: u16,
        protocol: Protocol,
        /// The host address.
        address: IpAddr,
    },
    /// Another process uses the port.
    #[error("port {port}/{protocol} on {address} is already in use{}", by(.owner.as_ref()))]
    PortInUse {
        /// The host port.
        port: u16,
        protocol: Protocol,
        /// The host address.
        address: IpAddr,
        /// The process that uses it, if `/proc` shows it.
        owner: Option<PortOwner>,
        /// The error of the system call.
        #[source]
        source: io::Error,
    },
    /// Listening failed for another reason.
    #[error("cannot listen on port {port}/{protocol} on {address}{}", hint_for_listen(.source, *port))]
    Listen {
        /// The host port.
        port: u16,
        protocol: Protocol,
        /// The host address.
        address: IpAddr,
        /// The error of the system call.
        #[source]
        source: io::Error,
    },
    /// The argument of a forwarder process is invalid.
    #[error("invalid forwarder argument `{text}`: {reason}")]
    Handover {
        /// The argument.
        text: String,
        reason: String,
    },
    /// A forwarder failed.
    #[error("cannot forward ports: {what}")]
    Forward {
        /// What failed.
        what: &'static str,
        /// The error of the system call.
        #[source]
        source: io::Error,
    },
    /// A process cannot be started.
    #[error("cannot start {program}")]
    Start {
        program: String,
        /// The error of the system call.
        #[source]
        source: io::Error,
    },
    /// No tool for outbound connections is installed.
    #[error(
        "outbound network access needs pasta or slirp4netns, and neither is installed; \
         hint: apt-get install passt, or --network host"
    )]
    NoOutbound,
    /// The TUN device does not exist or cannot be opened.
    #[error(
        "outbound network access needs /dev/net/tun; \
         hint: as root, modprobe tun and chmod 0666 /dev/net/tun, or --network host"
    )]
    Tun {
        /// The error of the system call.
        #[source]
        source: io::Error,
    },
    /// The tool for outbound connections failed.
    #[error("{program} failed to connect the container's network: {output}")]
    Outbound {
        program: String,
        /// Its error output, or its exit status.
        output: String,
    },
    /// Invalid value of `--add-host`.
    #[error("cannot add host `{text}`: {reason}, at column {column}")]
    AddHost {
        text: String,
        /// The column of the error, counted from 1.
        column: usize,
        reason: String,
    },
    /// Invalid host name.
    #[error("invalid host name `{text}`: {reason}, at column {column}")]
    HostName {
        text: String,
        /// The column of the error, counted from 1.
        column: usize,
        reason: String,
    },
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
