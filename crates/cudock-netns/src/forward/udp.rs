//! Datagrams to a published port.
//!
//! A service answers to the address a datagram came from. So each client has a socket of its own inside, and what
//! arrives there is sent back to that client. Nothing says when a client is done, so one that is idle is forgotten.
//! Where a buffer is full a datagram is lost, as it would be on any network.
//!
//! An answer leaves from the address that the host's routes choose for the client. On a host with several addresses a
//! port published on all of them may answer from another than was asked; publishing on one address avoids it.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use socket2::SockRef;
use tokio::net::UdpSocket;
use tokio::task::{AbortHandle, JoinSet};

use super::budget::{Budget, Share};
use super::relay::with_scratch;
use super::tcp::INSIDE;

/// So many clients are remembered for a port; a sender of false addresses could otherwise use up all descriptors.
const MOST_CLIENTS: usize = 1024;

/// A client that is remembered.
struct Client {
    /// Tells it from an earlier one with the same address.
    number: u64,
    inside: Arc<UdpSocket>,
    clock: Arc<Clock>,
    answers: AbortHandle,
    _share: Share,
}

/// When something was last sent, either way.
struct Clock {
    start: Instant,
    last: AtomicU64,
}

impl Clock {
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

/// Carries datagrams to a port inside and their answers back, for ever.
pub(super) async fn forward(listener: UdpSocket, port: u16, idle: Duration, budget: Budget) {
    let mut published = Published {
        listener: Arc::new(listener),
        port,
        idle,
        budget,
        clients: HashMap::new(),
        answers: JoinSet::new(),
        count: 0,
    };
    loop {
        tokio::select! {
            // An error is one client's, sent back by the network; it ends by being taken.
            _ = published.listener.readable() => with_scratch(|scratch| {
                if let Ok((length, client)) = published.listener.try_recv_from(scratch) {
                    published.carry(client, scratch.get(..length).unwrap_or_default());
                }
            }),
            Some(ended) = published.answers.join_next() => {
                if let Ok((client, number)) = ended {
                    published.forget(client, number);
                }
            }
        }
    }
}

/// A published port and those who use it.
struct Published {
    listener: Arc<UdpSocket>,
    port: u16,
    idle: Duration,
    budget: Budget,
    clients: HashMap<SocketAddr, Client>,
    answers: JoinSet<(SocketAddr, u64)>,
    /// How many clients there have ever been.
    count: u64,
}

impl Published {
    fn carry(&mut self, from: SocketAddr, datagram: &[u8]) {
        if let Some(known) = self.clients.get(&from) {
            known.clock.touch();
            match SockRef::from(&*known.inside).send(datagram) {
                // The service has ended since; another may be there by now.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    let number = known.number;
                    self.forget(from, number);
                }
                _ => return,
            }
        }
        self.welcome(from, datagram);
    }

    /// If nobody is there the datagram is lost, and the next one tries again.
    fn welcome(&mut self, client: SocketAddr, first: &[u8]) {
        if self.clients.len() >= MOST_CLIENTS {
            self.forget_the_idlest();
        }
        let Some(share) = self.budget.take(1).or_else(|| {
            self.forget_the_idlest();
            self.budget.take(1)
        }) else {
            return;
        };
        let Ok(inside) = open(self.port, first) else { return };
        let (inside, clock) = (Arc::new(inside), Arc::new(Clock::new()));
        let back = Back {
            listener: self.listener.clone(),
            client,
            inside: inside.clone(),
            clock: clock.clone(),
            idle: self.idle,
        };
        self.count += 1;
        let number = self.count;
        let answers = self.answers.spawn(async move {
            back.carry().await;
            (client, number)
        });
        self.clients.insert(client, Client { number, inside, clock, answers, _share: share });
    }

    fn forget(&mut self, client: SocketAddr, number: u64) {
        if self.clients.get(&client).is_some_and(|known| known.number == number)
            && let Some(forgotten) = self.clients.remove(&client)
        {
            forgotten.answers.abort();
        }
    }

    fn forget_the_idlest(&mut self) {
        let idlest = self.clients.iter().max_by_key(|(_, client)| client.clock.idle());
        if let Some((&client, &Client { number, .. })) = idlest {
            self.forget(client, number);
        }
    }
}

/// A socket inside over which a first datagram was sent, and not refused.
fn open(port: u16, first: &[u8]) -> io::Result<UdpSocket> {
    let mut refused = io::Error::from(io::ErrorKind::ConnectionRefused);
    for address in INSIDE {
        match open_at(SocketAddr::new(address, port), first) {
            Ok(socket) => return UdpSocket::from_std(socket),
            Err(error) => refused = error,
        }
    }
    Err(refused)
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
    // Over the loopback device a refusal is back before `send` returns.
    match socket.take_error()? {
        Some(refused) => Err(refused),
        None => Ok(socket),
    }
}

/// The way back to one client.
struct Back {
    listener: Arc<UdpSocket>,
    client: SocketAddr,
    inside: Arc<UdpSocket>,
    clock: Arc<Clock>,
    idle: Duration,
}

impl Back {
    /// Until the client has been idle for long enough, or the service is gone.
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
                let datagram = scratch.get(..length).unwrap_or_default();
                let _ = SockRef::from(&*self.listener).send_to(datagram, &self.client.into());
                io::Result::Ok(())
            });
            if carried.is_err_and(|error| error.kind() != io::ErrorKind::WouldBlock) {
                return;
            }
        }
    }
}
