//! Forwards TCP connections.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};

use super::RelayMode;
use super::budget::{DescriptorBudget, DescriptorPermit};
use super::relay::relay;

/// The pause after failing to accept, when the process has no descriptors left. New connections wait in the kernel's queue
/// meanwhile.
const PAUSE: Duration = Duration::from_millis(20);

/// The addresses to try inside, in this order: few services listen only on IPv6.
pub(super) const INSIDE: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

/// Accepts connections and forwards each to a port inside, forever.
pub(super) async fn forward(
    listener: TcpListener,
    port: u16,
    relay_mode: RelayMode,
    budget: DescriptorBudget,
) {
    loop {
        match listener.accept().await {
            Ok((client, _)) => {
                let Some(permit) = budget.acquire(2).await else { return };
                drop(tokio::spawn(carry(client, port, relay_mode, budget.clone(), permit)));
            }
            Err(error) if is_client_error(&error) => {}
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Whether only this connection failed, rather than accepting in general.
fn is_client_error(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset)
}

async fn carry(
    client: TcpStream,
    port: u16,
    relay_mode: RelayMode,
    budget: DescriptorBudget,
    _permit: DescriptorPermit,
) {
    // Nothing listens inside: returning closes the client's connection.
    let Ok(inside) = connect(port).await else { return };
    for stream in [&client, &inside] {
        // Both are only optimizations.
        let _ = stream.set_nodelay(true);
        let _ = SockRef::from(stream).set_keepalive(true);
    }
    relay(&client, &inside, relay_mode, &budget).await;
}

async fn connect(port: u16) -> io::Result<TcpStream> {
    let mut last_error = io::Error::from(io::ErrorKind::ConnectionRefused);
    for address in INSIDE {
        match TcpStream::connect(SocketAddr::new(address, port)).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last_error = error,
        }
    }
    Err(last_error)
}
