//! The main function of a forwarder process.

use std::io;
use std::os::fd::OwnedFd;

use rustix::process::{Resource, Rlimit, Signal};
use rustix::thread::{CapabilitySet, CapabilitySets};
use tokio::net::{TcpListener, UdpSocket};
use tokio::signal::unix::{SignalKind, signal};

use super::budget::DescriptorBudget;
use super::handover::{Handover, InheritedDescriptors, ListenerSpec};
use super::{ForwardOptions, Protocol, tcp, udp};
use crate::{NetnsError, Result};

/// Forwards connections until `SIGTERM`, which is also sent when the parent ends.
///
/// Call this in a dedicated process: it takes ownership of inherited descriptors, moves the calling thread into the
/// container's namespace for good, and drops all capabilities, because from there on it only handles untrusted bytes. It
/// raises the limit on open files to the hard limit.
pub fn serve(handover: &Handover) -> Result<()> {
    let failed = |what| move |source: io::Error| NetnsError::Forward { what, source };
    let InheritedDescriptors { namespace, listeners } = handover.adopt()?;
    rustix::process::set_parent_process_death_signal(Some(Signal::TERM))
        .map_err(|error| failed("cannot set the parent death signal")(error.into()))?;
    let parent = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    if u32::try_from(parent) != Ok(handover.parent) {
        return Ok(());
    }
    namespace.enter()?;
    drop(namespace);
    let budget = DescriptorBudget::new(raise_file_limit(), listeners.len());
    drop_privileges().map_err(failed("cannot drop privileges"))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed("cannot watch sockets"))?;
    runtime
        .block_on(run(listeners, handover.options, &budget))
        .map_err(failed("cannot watch sockets and signals"))
}

async fn run(
    listeners: Vec<(OwnedFd, ListenerSpec)>,
    options: ForwardOptions,
    budget: &DescriptorBudget,
) -> io::Result<()> {
    let mut terminated = signal(SignalKind::terminate())?;
    // Writing to a closed connection must return an error and not end the process, whatever the surrounding program has
    // configured.
    let _quiet = signal(SignalKind::pipe())?;
    for (socket, ListenerSpec { protocol, container_port, .. }) in listeners {
        match protocol {
            Protocol::Tcp => {
                let listener = std::net::TcpListener::from(socket);
                listener.set_nonblocking(true)?;
                let listener = TcpListener::from_std(listener)?;
                let mode = options.relay_mode;
                drop(tokio::spawn(tcp::forward(listener, container_port, mode, budget.clone())));
            }
            Protocol::Udp => {
                let listener = std::net::UdpSocket::from(socket);
                listener.set_nonblocking(true)?;
                let listener = UdpSocket::from_std(listener)?;
                drop(tokio::spawn(udp::forward(listener, container_port, options.udp_idle, budget.clone())));
            }
        }
    }
    terminated.recv().await;
    Ok(())
}

/// Raises the limit on open files to the hard limit, which needs no privileges: thousands of connections need two to six
/// descriptors each. Returns the limit in effect.
fn raise_file_limit() -> Option<u64> {
    let Rlimit { maximum, .. } = rustix::process::getrlimit(Resource::Nofile);
    // With less, new connections wait for others to end.
    let _ = rustix::process::setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    rustix::process::getrlimit(Resource::Nofile).current
}

fn drop_privileges() -> io::Result<()> {
    let none = CapabilitySet::empty();
    rustix::thread::set_no_new_privs(true)?;
    rustix::thread::set_capabilities(
        None,
        CapabilitySets { effective: none, permitted: none, inheritable: none },
    )?;
    Ok(())
}
