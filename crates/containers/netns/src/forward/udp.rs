//! Forwards UDP datagrams.
//!
//! A service replies to the source address of a datagram. So each client gets its own socket inside, and what arrives there
//! is sent back to that client. UDP has no end of a connection, so idle clients are removed. If a buffer is full, datagrams
//! are lost, as on any network.
//!
//! A reply leaves from the address that the host's routes choose. On a host with several addresses, a port published on
//! all of them may reply from a different address than the client used; publishing on one address avoids this.

use cudock_base::bug::Parts;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use socket2::SockRef;
use tokio::net::UdpSocket;
use tokio::task::{AbortHandle, JoinSet};

use super::budget::{DescriptorBudget, DescriptorPermit};
use super::relay::with_scratch;
use super::tcp::INSIDE;

/// The number of clients of a port; otherwise spoofed addresses could exhaust all descriptors.
const MAX_CLIENTS: usize = 1024;

struct Client {
    /// Distinguishes it from an earlier client with the same address.
    number: u64,
    inside: Arc<UdpSocket>,
    clock: Arc<IdleClock>,
    replies: AbortHandle,
    _permit: DescriptorPermit,
}

/// The time of the last datagram in either direction.
struct IdleClock {
    start: Instant,
    last: AtomicU64,
}

impl IdleClock {
    fn new() -> Self {
        Self { start: Instant::now(), last: AtomicU64::new(0) }
    }

    fn touch(&self) {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(now, Ordering::Relaxed);
    }

    fn idle(&self) -> Duration {
        self.start.elapsed().saturating_sub(Duration::from_millis(self.last.load(Ordering::Relaxed)))
    }
}

/// Forwards datagrams to a port inside and the replies back, forever.
pub(super) async fn forward(listener: UdpSocket, port: u16, idle: Duration, budget: DescriptorBudget) {
    let mut forwarder = UdpForwarder {
        listener: Arc::new(listener),
        port,
        idle,
        budget,
        clients: HashMap::new(),
        replies: JoinSet::new(),
        count: 0,
    };
    loop {
        tokio::select! {
            // An error concerns one client, and is cleared by receiving it.
            _ = forwarder.listener.readable() => with_scratch(|scratch| {
                if let Ok((length, client)) = forwarder.listener.try_recv_from(scratch) {
                    forwarder.carry(client, scratch.part(..length));
                }
            }),
            Some(ended) = forwarder.replies.join_next() => {
                if let Ok((client, number)) = ended {
                    forwarder.remove_client(client, number);
                }
            }
        }
    }
}

/// A published port and its clients.
struct UdpForwarder {
    listener: Arc<UdpSocket>,
    port: u16,
    idle: Duration,
    budget: DescriptorBudget,
    clients: HashMap<SocketAddr, Client>,
    replies: JoinSet<(SocketAddr, u64)>,
    /// The number of clients so far.
    count: u64,
}

impl UdpForwarder {
    fn carry(&mut self, from: SocketAddr, datagram: &[u8]) {
        if let Some(known) = self.clients.get(&from) {
            known.clock.touch();
            match SockRef::from(&*known.inside).send(datagram) {
                // The service has ended; another one may be listening by now.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    let number = known.number;
                    self.remove_client(from, number);
                }
                _ => return,
            }
        }
        self.add_client(from, datagram);
    }

    /// Adds a client and forwards its first datagram. If nothing listens, the datagram is lost, and the next one tries again.
    fn add_client(&mut self, client: SocketAddr, first: &[u8]) {
        if self.clients.len() >= MAX_CLIENTS {
            self.remove_idlest();
        }
        let Some(permit) = self.budget.try_acquire(1).or_else(|| {
            self.remove_idlest();
            self.budget.try_acquire(1)
        }) else {
            return;
        };
        let Ok(inside) = open(self.port, first) else { return };
        let (inside, clock) = (Arc::new(inside), Arc::new(IdleClock::new()));
        let back = ReplyPath {
            listener: self.listener.clone(),
            client,
            inside: inside.clone(),
            clock: clock.clone(),
            idle: self.idle,
        };
        self.count += 1;
        let number = self.count;
        let replies = self.replies.spawn(async move {
            back.carry().await;
            (client, number)
        });
        self.clients.insert(client, Client { number, inside, clock, replies, _permit: permit });
    }

    fn remove_client(&mut self, client: SocketAddr, number: u64) {
        if self.clients.get(&client).is_some_and(|known| known.number == number)
            && let Some(removed) = self.clients.remove(&client)
        {
            removed.replies.abort();
        }
    }

    fn remove_idlest(&mut self) {
        let idlest = self.clients.iter().max_by_key(|(_, client)| client.clock.idle());
        if let Some((&client, &Client { number, .. })) = idlest {
            self.remove_client(client, number);
        }
    }
}

/// Opens a socket inside and sends a first datagram that is not refused.
fn open(port: u16, first: &[u8]) -> io::Result<UdpSocket> {
    let mut last_error = io::Error::from(io::ErrorKind::ConnectionRefused);
    for address in INSIDE {
        match open_at(SocketAddr::new(address, port), first) {
            Ok(socket) => return UdpSocket::from_std(socket),
            Err(error) => last_error = error,
        }
    }
    Err(last_error)
}

fn open_at(to: SocketAddr, first: &[u8]) -> io::Result<std::net::UdpSocket> {
    let any = match to.ip() {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let socket = std::net::UdpSocket::bind(SocketAddr::new(any, 0))?;
    socket.set_nonblocking(true)?;
    socket.connect(to)?;
    socket.send(first)?;
    // On the loopback device, a refusal arrives before `send` returns.
    match socket.take_error()? {
        Some(last_error) => Err(last_error),
        None => Ok(socket),
    }
}

/// Sends replies back to one client.
struct ReplyPath {
    listener: Arc<UdpSocket>,
    client: SocketAddr,
    inside: Arc<UdpSocket>,
    clock: Arc<IdleClock>,
    idle: Duration,
}

impl ReplyPath {
    /// Runs until the client has been idle for long enough, or the service is gone.
    async fn carry(&self) {
        loop {
            let rest = self.idle.saturating_sub(self.clock.idle());
            match tokio::time::timeout(rest, self.inside.readable()).await {
                Err(_) if self.clock.idle() >= self.idle => return,
                Err(_) => continue,
                Ok(Err(_)) => return,
                Ok(Ok(())) => {}
            }
            let carried = with_scratch(|scratch| {
                let length = self.inside.try_recv(scratch)?;
                self.clock.touch();
                let datagram = scratch.part(..length);
                let _ = SockRef::from(&*self.listener).send_to(datagram, &self.client.into());
                io::Result::Ok(())
            });
            if carried.is_err_and(|error| error.kind() != io::ErrorKind::WouldBlock) {
                return;
            }
        }
    }
}
