//! Detection of clients that send a body too slowly.
//!
//! A limit on pauses alone lets a client hold memory forever with a byte now and then. So a body is judged in windows:
//! each must bring a minimum, and the more has arrived already, the more it must bring.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::time::{Sleep, sleep};

/// Smallest accepted rate in bytes per second.
const MIN_RATE: f64 = 1024.0;
/// A window must also bring this fraction (1/32) of what arrived before it.
const SHARE: usize = 32;
/// Longest pause of a client while the server is shutting down.
const LAST_PAUSE: Duration = Duration::from_secs(1);

/// Watches one body as it arrives. It costs nothing while there are bytes to read.
#[derive(Debug)]
pub struct StallDetector {
    window: Duration,
    started: Option<Instant>,
    at_start: usize,
    at_tick: usize,
    tick: Option<Pin<Box<Sleep>>>,
}

impl StallDetector {
    pub fn new(window: Duration) -> Self {
        Self { window, started: None, at_start: 0, at_tick: 0, tick: None }
    }

    /// Starts over: the client owes nothing at the moment.
    pub fn pause(&mut self) {
        self.started = None;
        self.tick = None;
    }

    /// Call this when nothing can be read, with the number of bytes received so far. It is ready once the client is too
    /// slow.
    pub fn poll_stalled(
        &mut self,
        context: &mut Context<'_>,
        received: usize,
        draining: impl Fn() -> bool,
    ) -> Poll<()> {
        let every = self.window.min(LAST_PAUSE);
        let started = *self.started.get_or_insert_with(|| {
            (self.at_start, self.at_tick) = (received, received);
            Instant::now()
        });
        let mut tick = self.tick.take().unwrap_or_else(|| Box::pin(sleep(every)));
        loop {
            if tick.as_mut().poll(context).is_pending() {
                self.tick = Some(tick);
                return Poll::Pending;
            }
            if draining() && received == self.at_tick {
                return Poll::Ready(());
            }
            self.at_tick = received;
            if started.elapsed() >= self.window {
                if received - self.at_start < min_bytes(self.at_start, self.window) {
                    return Poll::Ready(());
                }
                self.started = Some(Instant::now());
                self.at_start = received;
            }
            tick = Box::pin(sleep(every));
        }
    }
}

/// Bytes that a window must bring, given what arrived before it.
fn min_bytes(before: usize, window: Duration) -> usize {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and saturates")]
    let rate = (MIN_RATE * window.as_secs_f64()) as usize;
    rate.max(before / SHARE).max(1)
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[test]
    fn the_minimum_grows_with_the_received_bytes() {
        let window = Duration::from_secs(30);
        for (before, needed) in [(0, 30 << 10), (100 << 10, 30 << 10), (32 << 20, 1 << 20)] {
            assert_eq!(min_bytes(before, window), needed, "{before}");
        }
        assert_eq!(min_bytes(0, Duration::ZERO), 1);
    }

    #[tokio::test]
    async fn a_trickling_client_is_dropped_and_a_steady_one_is_not() {
        let window = Duration::from_millis(40);
        let watched = |step: usize| {
            let (mut stall, mut received) = (StallDetector::new(window), 0);
            poll_fn(move |context| {
                received += step;
                stall.poll_stalled(context, received, || false)
            })
        };
        watched(1).await;
        assert!(tokio::time::timeout(window * 5, watched(1 << 10)).await.is_err());
    }

    #[tokio::test]
    async fn a_server_that_shuts_down_does_not_wait_for_a_silent_client() {
        let mut stall = StallDetector::new(Duration::from_secs(600));
        poll_fn(|context| stall.poll_stalled(context, 10, || true)).await;
    }
}
