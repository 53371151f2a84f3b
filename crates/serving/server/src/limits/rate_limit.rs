//! Limits how many requests each client may send.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use cudock_base::lock;

use crate::request::keys::KeyId;
use crate::request::rejection::HttpRejection;

/// Maximum number of clients that are counted one by one. Beyond that, new ones share one count.
const MAX_CLIENTS: usize = 1 << 16;
/// Shortest time between two searches for clients that may be forgotten, in nanoseconds.
const SWEEP_INTERVAL: u64 = 1_000_000_000;

/// Limits the requests of each client to a rate, with a burst. A client is an API key, or an address where there are no
/// keys; of IPv6 addresses, a network of 64 bits.
pub struct RateLimiter {
    /// Nanoseconds between two requests at the highest rate.
    interval: u64,
    /// How far a client may be ahead of that rate, in nanoseconds.
    tolerance: u64,
    start: Instant,
    clients: Mutex<Clients>,
}

#[derive(Default)]
struct Clients {
    /// When each client's next request is due, in nanoseconds from the start. One that is due now may be forgotten.
    due: HashMap<ClientId, u64>,
    /// The same for all clients for which there is no room.
    others_due: u64,
    swept: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ClientId {
    Key(KeyId),
    Address(IpAddr),
}

impl RateLimiter {
    /// Allows `per_second` requests of each client, and `burst` at once.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and saturates")]
    pub fn new(per_second: f64, burst: u32) -> Self {
        let interval = (1e9 / per_second).max(1.0) as u64;
        Self {
            interval,
            tolerance: interval.saturating_mul(u64::from(burst.saturating_sub(1))),
            start: Instant::now(),
            clients: Mutex::default(),
        }
    }

    /// Counts a request, or rejects it. `key` is that of an authorized request, if keys are required.
    pub(crate) fn check(&self, key: Option<KeyId>, peer: Option<IpAddr>) -> Result<(), HttpRejection> {
        let now = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let address = || network(peer.unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED)));
        let client = key.map_or_else(|| ClientId::Address(address()), ClientId::Key);
        self.check_at(client, now)
            .map_err(|wait| HttpRejection::RateLimited { retry_after: Duration::from_nanos(wait) })
    }

    /// The error is the time to wait, in nanoseconds.
    fn check_at(&self, client: ClientId, now: u64) -> Result<(), u64> {
        let mut clients = lock(&self.clients);
        let due = clients.due_of(client, now);
        let ahead = due.saturating_sub(now);
        if ahead > self.tolerance {
            return Err(ahead - self.tolerance);
        }
        *due = (*due).max(now).saturating_add(self.interval);
        Ok(())
    }
}

impl Clients {
    fn due_of(&mut self, client: ClientId, now: u64) -> &mut u64 {
        if self.due.len() >= MAX_CLIENTS && !self.due.contains_key(&client) {
            if now.saturating_sub(self.swept) >= SWEEP_INTERVAL {
                self.swept = now;
                self.due.retain(|_, due| *due > now);
            }
            if self.due.len() >= MAX_CLIENTS {
                return &mut self.others_due;
            }
        }
        self.due.entry(client).or_default()
    }
}

/// The part of an address that belongs to one client.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn client(number: u32) -> ClientId {
        ClientId::Address(IpAddr::V4(number.into()))
    }

    #[test]
    fn a_burst_passes_and_then_the_rate_counts() {
        let limiter = RateLimiter::new(10.0, 3);
        for _ in 0..3 {
            assert_eq!(limiter.check_at(client(1), SECOND), Ok(()));
        }
        assert_eq!(limiter.check_at(client(1), SECOND), Err(SECOND / 10));
        assert_eq!(limiter.check_at(client(2), SECOND), Ok(()), "another client has its own limit");
        assert_eq!(limiter.check_at(client(1), SECOND + SECOND / 20), Err(SECOND / 20));
        assert_eq!(limiter.check_at(client(1), SECOND + SECOND / 10), Ok(()));
        assert!(limiter.check_at(client(1), SECOND + SECOND / 10).is_err());
        for _ in 0..3 {
            assert_eq!(
                limiter.check_at(client(1), 60 * SECOND),
                Ok(()),
                "a pause earns no more than a burst"
            );
        }
        assert!(limiter.check_at(client(1), 60 * SECOND).is_err());
    }

    #[test]
    fn memory_is_bounded_and_clients_without_room_share_a_limit() {
        let limiter = RateLimiter::new(0.001, 1);
        let most = u32::try_from(MAX_CLIENTS).unwrap();
        for number in 0..most {
            assert_eq!(limiter.check_at(client(number), 1), Ok(()));
        }
        assert_eq!(limiter.check_at(client(most), 1), Ok(()));
        assert!(limiter.check_at(client(most + 1), 1).is_err());
        assert!(limiter.check_at(client(0), 1).is_err(), "those with a count of their own keep it");
        assert_eq!(lock(&limiter.clients).due.len(), MAX_CLIENTS);
        let later = 2000 * SECOND;
        assert_eq!(limiter.check_at(client(most + 1), later), Ok(()));
        assert_eq!(lock(&limiter.clients).due.len(), 1, "clients that may send again are forgotten");
    }

    #[test]
    fn an_ipv6_client_is_its_network() {
        for (address, expected) in [("10.1.2.3", "10.1.2.3"), ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::")] {
            assert_eq!(network(address.parse().unwrap()), expected.parse::<IpAddr>().unwrap());
        }
    }

    #[test]
    fn a_key_counts_wherever_it_is_used() {
        let limiter = RateLimiter::new(1.0, 1);
        let (here, there) = (Some([10, 0, 0, 1].into()), Some([10, 0, 0, 2].into()));
        let key = KeyId::default();
        assert_eq!(limiter.check(Some(key), here), Ok(()));
        let error = limiter.check(Some(key), there).unwrap_err();
        assert!(matches!(error, HttpRejection::RateLimited { .. }), "{error}");
        assert_eq!(limiter.check(None, there), Ok(()));
    }
}
