//! The services' clock. Local clocks lie, and times in tokens and assertions are compared with the services' own.

use std::sync::atomic::{AtomicI64, Ordering};

use cudock_base::Timestamp;

/// The lead of the services' clock over the local one, according to the last response.
#[derive(Debug, Default)]
pub(crate) struct ServerClock {
    ahead_millis: AtomicI64,
}

impl ServerClock {
    pub(crate) fn observe(&self, date: Option<Timestamp>) {
        if let Some(date) = date {
            self.ahead_millis.store(millis(date).saturating_sub(millis(Timestamp::now())), Ordering::Relaxed);
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        let now = millis(Timestamp::now()).saturating_add(self.ahead_millis.load(Ordering::Relaxed));
        Timestamp::from_millis(u64::try_from(now).unwrap_or_default())
    }
}

fn millis(time: Timestamp) -> i64 {
    time.millis().and_then(|millis| i64::try_from(millis).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_follows_the_last_date() {
        let clock = ServerClock::default();
        for date in ["2040-01-01T00:00:00Z", "1990-01-01T00:00:00Z"] {
            let date = Timestamp::parse(date).unwrap();
            clock.observe(Some(date));
            clock.observe(None);
            let late = millis(clock.now()) - millis(date);
            assert!((0..60_000).contains(&late), "{late} ms");
        }
    }
}
