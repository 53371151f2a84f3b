//! When the next request is likely to come.
//!
//! Most clients send their next request after they have their answer. So after a batch was answered its requests come
//! back: the first after a while that the network and the client take, the others close behind. How many clients there
//! are shows in how many requests were ever in the server at once lately. Both together tell an idle device whether
//! somebody is about to join those who wait.

use crate::average::Average;
use crate::number::{real, span, whole};

/// Answered batches after which an old crowd is forgotten; twice as many at most.
const WINDOW: u32 = 16;
/// No gap is known better than this.
const JITTER: f64 = 5_000.0;

/// The rhythm of arrivals.
#[derive(Debug, Default)]
pub(crate) struct Rhythm {
    last_arrival: u64,
    last_answer: Option<u64>,
    since_answer: u32,
    /// Between two arrivals with no answer in between.
    gap: Average,
    /// From an answer to the next arrival.
    return_time: Average,
    last_knock: Option<u64>,
    /// Between two requests, let in or not.
    knocks: Average,
    crowd: usize,
    crowd_before: usize,
    answers: u32,
    bet: Option<Bet>,
    /// Share of bets lost lately.
    lost: f64,
}

/// That so many more come until then. Whether anybody really waits for them makes no difference to how it ends, so it is
/// learned without trying.
#[derive(Clone, Copy, Debug)]
struct Bet {
    until: u64,
    wanted: usize,
}

/// What is hoped for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Hope {
    /// When all of them are expected, in nanoseconds.
    pub(crate) all: f64,
    /// Until when the next one may come before hope is lost.
    pub(crate) next: u64,
}

impl Rhythm {
    /// Somebody asks to be let in.
    pub(crate) fn knocked(&mut self, now: u64) {
        if let Some(last) = self.last_knock.replace(now) {
            self.knocks.learn(span(now.saturating_sub(last)));
        }
    }

    /// How many more will ask to be let in within so long.
    pub(crate) fn knocks_within(&self, nanos: f64) -> usize {
        self.knocks
            .value()
            .map_or(0, |gap| usize::try_from(whole(nanos / gap.max(1.0))).unwrap_or(usize::MAX))
    }

    /// A request was let in; `present` are in the server now, queued or running.
    pub(crate) fn arrived(&mut self, now: u64, present: usize) {
        match self.last_answer {
            Some(answer) if self.since_answer == 0 => {
                self.return_time.learn(span(now.saturating_sub(answer)));
            }
            Some(_) => {
                self.gap.learn(span(now.saturating_sub(self.last_arrival)));
            }
            None => {}
        }
        self.settle_bet(now, 1);
        self.last_arrival = now;
        self.since_answer = self.since_answer.saturating_add(1);
        self.crowd = self.crowd.max(present);
    }

    /// A batch was answered; `left` are in the server still.
    pub(crate) fn answered(&mut self, now: u64, left: usize) {
        self.last_answer = Some(now);
        self.since_answer = 0;
        self.answers += 1;
        if self.answers >= WINDOW {
            self.answers = 0;
            self.crowd_before = self.crowd;
            self.crowd = left;
        }
    }

    /// Bets that most of `missing` more requests come until then, unless a bet is still open.
    pub(crate) fn bet(&mut self, now: u64, until: u64, missing: usize) {
        self.settle_bet(now, 0);
        if self.bet.is_none() {
            self.bet = Some(Bet { until, wanted: missing - missing / 4 });
        }
    }

    /// Whether those hoped for mostly come.
    pub(crate) fn is_lucky(&self) -> bool {
        self.lost < 0.5
    }

    fn settle_bet(&mut self, now: u64, came: usize) {
        let Some(bet) = &mut self.bet else { return };
        let lost = now > bet.until;
        bet.wanted = bet.wanted.saturating_sub(came);
        if lost || bet.wanted == 0 {
            self.lost += (if lost { 1.0 } else { 0.0 } - self.lost) / 8.0;
            self.bet = None;
        }
    }

    /// How many clients there seem to be.
    pub(crate) fn clients(&self) -> usize {
        self.crowd.max(self.crowd_before)
    }

    pub(crate) fn gap(&self) -> Option<f64> {
        self.gap.value()
    }

    pub(crate) fn return_time(&self) -> Option<f64> {
        self.return_time.value()
    }

    /// When `missing` more requests are expected, if the last answer was given, or is going to be, at `answer`.
    pub(crate) fn hope(&self, answer: u64, missing: usize) -> Option<Hope> {
        let gap = self.gap.value();
        let returning = self.since_answer == 0 || self.last_answer.is_none_or(|last| last < answer);
        let (next, slack) = if returning {
            let return_time = self.return_time.value()?;
            (span(answer) + return_time, return_time + 2.0 * gap.unwrap_or(0.0) + JITTER)
        } else {
            (span(self.last_arrival) + gap?, 2.0 * gap? + JITTER)
        };
        let more = real(missing.saturating_sub(1));
        let all = if more > 0.0 { next + more * gap? } else { next };
        Some(Hope { all, next: whole(next + slack) })
    }
}
