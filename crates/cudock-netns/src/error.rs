//! What can go wrong, in words that say where and what to do.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use cudock_base::{ErrorKind, Report};

use crate::forward::{Holder, Protocol};

/// The result of whatever touches the system here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong with a container's network.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel did not give us a namespace.
    #[error("cannot make a network namespace{}", hint_for_unshare(.source))]
    Create {
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// The loopback device stayed down.
    #[error("cannot bring up the loopback device of a new network namespace")]
    Loopback {
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// No thread could be had to work in a namespace.
    #[error("cannot start a thread to work in a network namespace")]
    Thread {
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// A thread that worked in a namespace has ended, but the kernel still lists it.
    #[error("a thread that worked in a network namespace did not go away")]
    ThreadRemains,
    /// There is no such process, or it is not ours to look at.
    #[error("cannot open the network namespace of process {pid}")]
    OfProcess {
        /// The process.
        pid: u32,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// The path does not lead to a namespace.
    #[error("cannot open the network namespace at {}", path.display())]
    Open {
        /// The path.
        path: PathBuf,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// The namespace could not be given a name in the file system, or the name could not be taken away.
    #[error("cannot bind a network namespace to {}", path.display())]
    Bind {
        /// The path.
        path: PathBuf,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// The thread could not join the namespace.
    #[error("cannot enter a network namespace")]
    Enter {
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// A `-p` that cannot be understood.
    #[error("cannot publish `{text}`: {reason}, at column {column}")]
    Publication {
        /// What was given.
        text: String,
        /// Where in it the mistake begins; the first column is 1.
        column: usize,
        /// What is wrong.
        reason: String,
    },
    /// The same port of the host was asked for twice.
    #[error("port {port}/{protocol} of {address} is published twice")]
    PublishedTwice {
        /// The port of the host.
        port: u16,
        /// Its protocol.
        protocol: Protocol,
        /// The address of the host.
        address: IpAddr,
    },
    /// Somebody else has the port.
    #[error("port {port}/{protocol} of {address} is in use{}", by(.holder.as_ref()))]
    PortInUse {
        /// The port of the host.
        port: u16,
        /// Its protocol.
        protocol: Protocol,
        /// The address of the host.
        address: IpAddr,
        /// The process that has it, where `/proc` tells.
        holder: Option<Holder>,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// The port could not be had for another reason.
    #[error("cannot listen on port {port}/{protocol} of {address}{}", hint_for_listen(.source, *port))]
    Listen {
        /// The port of the host.
        port: u16,
        /// Its protocol.
        protocol: Protocol,
        /// The address of the host.
        address: IpAddr,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// What a forwarder was handed is not what was promised.
    #[error("the forwarder was handed `{text}`, which is wrong: {reason}")]
    Handover {
        /// What was handed over.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The forwarder could not do its work.
    #[error("cannot forward ports: {what}")]
    Forward {
        /// What it was doing.
        what: &'static str,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// A process could not be started.
    #[error("cannot start {program}")]
    Start {
        /// The program.
        program: String,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// Neither of the programs that give a namespace a way out is installed.
    #[error(
        "a network of its own with a way out needs pasta (or slirp4netns), and neither is installed; \
         hint: apt-get install passt, or --network host"
    )]
    NoOutbound,
    /// The kernel's device for such programs is not there, or not ours to open.
    #[error(
        "a network of its own with a way out needs /dev/net/tun; \
         hint: as root, modprobe tun and chmod 0666 /dev/net/tun, or --network host"
    )]
    Tun {
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// The program that gives the way out gave up.
    #[error("{program} did not connect the container's network: {said}")]
    Outbound {
        /// The program.
        program: String,
        /// What it said, or how it ended.
        said: String,
    },
    /// An `--add-host` that cannot be understood.
    #[error("cannot add the host `{text}`: {reason}, at column {column}")]
    AddHost {
        /// What was given.
        text: String,
        /// Where in it the mistake begins; the first column is 1.
        column: usize,
        /// What is wrong.
        reason: String,
    },
    /// A host name that no system would take.
    #[error("cannot use `{text}` as a host name: {reason}, at column {column}")]
    HostName {
        /// What was given.
        text: String,
        /// Where in it the mistake begins; the first column is 1.
        column: usize,
        /// What is wrong.
        reason: String,
    },
}

fn by(holder: Option<&Holder>) -> String {
    holder.map(|holder| format!(" by {holder}")).unwrap_or_default()
}

impl Report for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Publication { .. }
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
            "; hint: it needs root, or a user namespace of our own (`unshare --user --map-root-user`)"
        }
        io::ErrorKind::StorageFull => "; hint: the limit user.max_net_namespaces is reached",
        _ => "",
    }
}

fn hint_for_listen(source: &io::Error, port: u16) -> &'static str {
    match source.kind() {
        io::ErrorKind::PermissionDenied if port < 1024 => {
            "; hint: without root, ports begin at the sysctl net.ipv4.ip_unprivileged_port_start"
        }
        io::ErrorKind::AddrNotAvailable => "; hint: this host has no such address",
        _ => "",
    }
}
