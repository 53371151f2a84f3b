//! Records requests that crash engines, so that one client with such requests does not stop all others.
//!
//! A first crash says little: most have other causes. After another one within a minute, each counts: batches are small,
//! so that a crash takes few requests with it ([`cudock_batcher::Batcher::be_careful`]); a request that was alone in the
//! engine is at fault; another engine is kept ready. The error of a request at fault is only sent when the next crash can
//! be afforded, because its client may send it again at once. And a request that is known to crash engines is not run.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cudock_base::lock;
use cudock_tensor::Tensor;

use crate::ServeError;
use crate::reply::{ReplyBatch, ReplySender};

/// Time in which a crash after another one is no coincidence.
const WARY_TIME: Duration = Duration::from_secs(60);
/// Time for which a request that crashes engines is rejected.
const BAN_TIME: Duration = Duration::from_secs(600);
/// Maximum number of requests that are remembered.
const MAX_SUSPECTS: usize = 1024;
/// Shortest time between two crashes after which the errors of the requests at fault are sent.
const CRASH_INTERVAL: Duration = Duration::from_secs(1);
/// Longest time for which the error of a request is held back.
const MAX_HOLD: Duration = Duration::from_secs(10);

/// The crashes of a model's engines.
#[derive(Default)]
pub(crate) struct Crashes {
    state: Mutex<CrashState>,
    /// How many requests are known to crash engines. Nearly always zero, and asked by every request.
    banned: AtomicUsize,
    hasher: RandomState,
}

#[derive(Default)]
struct CrashState {
    /// The number of the engine that crashed last, and when.
    last: Option<(u64, Instant)>,
    /// When there were two crashes within a short time.
    wary_since: Option<Instant>,
    suspects: VecDeque<Suspect>,
    /// Errors of requests at fault that are held back.
    held: VecDeque<HeldError>,
}

struct HeldError {
    sender: ReplySender,
    error: ServeError,
    since: Instant,
}

/// A request during which an engine crashed.
struct Suspect {
    hash: u64,
    crashed: Instant,
    is_banned: bool,
}

impl Crashes {
    /// Records that an engine crashed while it ran requests; its lanes may all report it. Returns whether an earlier one
    /// did a short time before.
    pub(crate) fn record(&self, engine: u64, now: Instant) -> bool {
        let mut state = lock(&self.state);
        if let Some((_, crashed)) = state.last.filter(|(last, _)| *last != engine) {
            let is_soon = now.saturating_duration_since(crashed) < WARY_TIME;
            state.wary_since = is_soon.then_some(now);
        }
        state.last = Some((engine, now));
        state.wary_since.is_some()
    }

    /// Whether there were several crashes a short time ago.
    pub(crate) fn is_wary(&self, now: Instant) -> bool {
        let since = lock(&self.state).wary_since;
        since.is_some_and(|since| now.saturating_duration_since(since) < WARY_TIME)
    }

    /// Records that a request is at fault for a crash: `for_certain`, or only because it was alone in the engine. It is
    /// banned when it is at fault for certain or again.
    pub(crate) fn blame(&self, inputs: &[Tensor], for_certain: bool, now: Instant) {
        let hash = self.hash(inputs);
        let mut state = lock(&self.state);
        state.suspects.retain(|suspect| now.saturating_duration_since(suspect.crashed) < BAN_TIME);
        let known = state.suspects.iter().position(|suspect| suspect.hash == hash);
        let is_known = known.and_then(|index| state.suspects.remove(index)).is_some();
        if state.suspects.len() == MAX_SUSPECTS {
            state.suspects.pop_front();
        }
        state.suspects.push_back(Suspect { hash, crashed: now, is_banned: for_certain || is_known });
        let banned = state.suspects.iter().filter(|suspect| suspect.is_banned).count();
        self.banned.store(banned, Ordering::Relaxed);
    }

    /// Rejects a request that is known to crash engines.
    pub(crate) fn check(&self, inputs: &[Tensor]) -> Result<(), ServeError> {
        if self.banned.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        let (hash, now) = (self.hash(inputs), Instant::now());
        let is_banned = lock(&self.state).suspects.iter().any(|suspect| {
            suspect.is_banned
                && suspect.hash == hash
                && now.saturating_duration_since(suspect.crashed) < BAN_TIME
        });
        if is_banned { Err(ServeError::Engine(BANNED.to_owned())) } else { Ok(()) }
    }

    /// Keyed, so that a client cannot construct a request with the hash of another.
    fn hash(&self, inputs: &[Tensor]) -> u64 {
        let parts: Vec<_> = inputs.iter().map(|tensor| (tensor.shape(), tensor.data().as_ref())).collect();
        self.hasher.hash_one(parts)
    }

    /// Holds the error of a request at fault back until [`Self::release`].
    pub(crate) fn hold(&self, sender: ReplySender, error: ServeError, since: Instant) {
        lock(&self.state).held.push_back(HeldError { sender, error, since });
    }

    /// Sends the error that has been held back longest, if another crash can be afforded now and the last one was not a
    /// moment ago: its client may cause the next. Sends all that have been held back for too long.
    pub(crate) fn release(&self, can_crash: bool, now: Instant) {
        let mut state = lock(&self.state);
        if state.held.is_empty() {
            return;
        }
        let is_due = |held: &&HeldError| now.saturating_duration_since(held.since) >= MAX_HOLD;
        let due = state.held.iter().take_while(is_due).count();
        let last = state.last.filter(|_| state.wary_since.is_some());
        let is_calm = last.is_none_or(|(_, last)| now.saturating_duration_since(last) >= CRASH_INTERVAL);
        let count = due.max(usize::from(can_crash && is_calm));
        let held: Vec<_> = state.held.drain(..count).collect();
        drop(state);
        send(held);
    }

    /// Sends all errors that are held back.
    pub(crate) fn release_all(&self) {
        let held = std::mem::take(&mut lock(&self.state).held);
        send(held);
    }
}

fn send(held: impl IntoIterator<Item = HeldError>) {
    let mut replies = ReplyBatch::new(None);
    for HeldError { sender, error, .. } in held {
        replies.add(sender, Err(error));
    }
    replies.deliver();
}

const BANNED: &str = "the engine died when it ran this request before; it is not run again for ten minutes";

#[cfg(test)]
mod tests {
    use cudock_tensor::DType;

    use super::*;

    fn inputs(number: u8) -> [Tensor; 1] {
        [Tensor::new(DType::U8, vec![1, 1], vec![number].into()).unwrap()]
    }

    #[test]
    fn a_second_crash_within_a_minute_makes_wary_for_a_minute() {
        let (crashes, start) = (Crashes::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(!crashes.record(1, at(0)));
        // Another lane of the same engine.
        assert!(!crashes.record(1, at(0)));
        assert!(!crashes.record(2, at(61)) && !crashes.is_wary(at(61)));
        assert!(crashes.record(3, at(100)) && crashes.record(3, at(100)));
        assert!(crashes.is_wary(at(159)) && !crashes.is_wary(at(160)));
        assert!(!crashes.record(4, at(200)));
    }

    #[test]
    fn a_request_is_banned_for_ten_minutes_once_it_is_at_fault_for_certain_or_twice() {
        let (crashes, start) = (Crashes::default(), Instant::now().checked_sub(BAN_TIME).unwrap());
        let is_banned = |number| crashes.check(&inputs(number)).is_err();
        crashes.blame(&inputs(1), true, Instant::now());
        crashes.blame(&inputs(2), false, Instant::now());
        crashes.blame(&inputs(3), true, start);
        assert!(is_banned(1) && !is_banned(2) && !is_banned(3) && !is_banned(4));
        crashes.blame(&inputs(2), false, Instant::now());
        assert!(is_banned(2));
    }

    #[test]
    fn no_more_requests_are_remembered_than_fit() {
        let crashes = Crashes::default();
        for number in 0..=MAX_SUSPECTS {
            let number = u32::try_from(number).unwrap().to_le_bytes().to_vec();
            let input = Tensor::new(DType::U8, vec![1, 4], number.into()).unwrap();
            crashes.blame(&[input], true, Instant::now());
        }
        assert_eq!(lock(&crashes.state).suspects.len(), MAX_SUSPECTS);
        assert_eq!(crashes.banned.load(Ordering::Relaxed), MAX_SUSPECTS);
    }
}
