//! The forwarder's process, as it sees itself.

use std::io;
use std::os::fd::OwnedFd;

use rustix::process::{Resource, Rlimit, Signal};
use rustix::thread::{CapabilitySet, CapabilitySets};
use tokio::net::{TcpListener, UdpSocket};
use tokio::signal::unix::{SignalKind, signal};

use super::budget::Budget;
use super::handover::{Adopted, Handed, Handover};
use super::{Options, Protocol, tcp, udp};
use crate::{Error, Result, sys};

/// Forwards what was handed over, until `SIGTERM`, which also comes when the parent ends.
///
/// For a process that does nothing else: it takes over descriptors by number, moves the calling thread into the
/// container's namespace for good, and gives up all capabilities, because from there on it only handles bytes of
/// strangers. It may open as many files as the hard limit allows.
pub fn serve(handover: &Handover) -> Result<()> {
    let failed = |what| move |source: io::Error| Error::Forward { what, source };
    let Adopted { namespace, listeners } = handover.adopt()?;
    rustix::process::set_parent_process_death_signal(Some(Signal::TERM))
        .map_err(|error| failed("cannot ask for a signal when the parent ends")(error.into()))?;
    let parent = sys::parent().map_or(0, |pid| pid.as_raw_nonzero().get());
    if u32::try_from(parent) != Ok(handover.parent) {
        return Ok(());
    }
    namespace.enter()?;
    drop(namespace);
    let budget = Budget::new(allow_many_files(), listeners.len());
    give_up_privileges().map_err(failed("cannot give up privileges"))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed("cannot watch sockets"))?;
    runtime
        .block_on(run(listeners, handover.options, &budget))
        .map_err(failed("cannot watch sockets and signals"))
}

async fn run(listeners: Vec<(OwnedFd, Handed)>, options: Options, budget: &Budget) -> io::Result<()> {
    let mut told_to_stop = signal(SignalKind::terminate())?;
    // A closed connection must be an error where it is written to, and not the end of the process, whatever the
    // program around us has chosen.
    let _quiet = signal(SignalKind::pipe())?;
    for (socket, Handed { protocol, container_port, .. }) in listeners {
        match protocol {
            Protocol::Tcp => {
                let listener = std::net::TcpListener::from(socket);
                listener.set_nonblocking(true)?;
                let listener = TcpListener::from_std(listener)?;
                drop(tokio::spawn(tcp::forward(listener, container_port, options.carriage, budget.clone())));
            }
            Protocol::Udp => {
                let listener = std::net::UdpSocket::from(socket);
                listener.set_nonblocking(true)?;
                let listener = UdpSocket::from_std(listener)?;
                drop(tokio::spawn(udp::forward(listener, container_port, options.udp_idle, budget.clone())));
            }
        }
    }
    told_to_stop.recv().await;
    Ok(())
}

/// Thousands of connections need two descriptors each, or six. Up to the hard limit no privilege is needed. Answers
/// the limit that holds.
fn allow_many_files() -> Option<u64> {
    let Rlimit { maximum, .. } = rustix::process::getrlimit(Resource::Nofile);
    // With less, connections wait for others to end.
    let _ = rustix::process::setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    rustix::process::getrlimit(Resource::Nofile).current
}

fn give_up_privileges() -> io::Result<()> {
    let none = CapabilitySet::empty();
    rustix::thread::set_no_new_privs(true)?;
    rustix::thread::set_capabilities(
        None,
        CapabilitySets { effective: none, permitted: none, inheritable: none },
    )?;
    Ok(())
}
