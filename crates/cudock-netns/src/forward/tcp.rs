//! Connections to a published port.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};

use super::Carriage;
use super::budget::{Budget, Share};
use super::relay::both_ways;

/// How long to wait when the process has no descriptor left, until connections have ended. Those who come meanwhile
/// wait in the kernel's queue.
const PAUSE: Duration = Duration::from_millis(20);

/// Where services of a container are looked for, in this order: few listen on IPv6 alone.
pub(super) const INSIDE: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

/// Takes connections and carries each to a port inside, for ever.
pub(super) async fn forward(listener: TcpListener, port: u16, carriage: Carriage, budget: Budget) {
    loop {
        match listener.accept().await {
            Ok((client, _)) => {
                let Some(share) = budget.wait_for(2).await else { return };
                drop(tokio::spawn(carry(client, port, carriage, budget.clone(), share)));
            }
            Err(error) if of_the_client(&error) => {}
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Whether it is only the connection that could not be taken, and not us who could not take it.
fn of_the_client(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset)
}

async fn carry(client: TcpStream, port: u16, carriage: Carriage, budget: Budget, _share: Share) {
    // Nobody listens inside: leaving here closes the client's connection, which is all it can be told.
    let Ok(inside) = connect(port).await else { return };
    for stream in [&client, &inside] {
        // Both only make a good connection better.
        let _ = stream.set_nodelay(true);
        let _ = SockRef::from(stream).set_keepalive(true);
    }
    both_ways(&client, &inside, carriage, &budget).await;
}

async fn connect(port: u16) -> io::Result<TcpStream> {
    let mut refused = io::Error::from(io::ErrorKind::ConnectionRefused);
    for address in INSIDE {
        match TcpStream::connect(SocketAddr::new(address, port)).await {
            Ok(stream) => return Ok(stream),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}
