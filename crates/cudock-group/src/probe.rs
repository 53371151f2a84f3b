//! When a container is asked after, and what follows from its answers.
//!
//! A state machine with the clock passed in. Azure says that its probes behave as those of Kubernetes and documents no
//! defaults of its own, so these are Kubernetes' defaults and rules.

use std::time::Duration;

use serde::Serialize;

use crate::restart::Moment;

/// When a probe asks, and how often it may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Timing {
    /// How long after the start the first question comes.
    pub initial_delay: Duration,
    /// From one question to the next; not zero.
    pub period: Duration,
    /// How long an answer may take; not zero.
    pub timeout: Duration,
    /// How many good answers in a row make it healthy; at least 1.
    pub success_threshold: u32,
    /// How many bad answers in a row make it unhealthy; at least 1.
    pub failure_threshold: u32,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            initial_delay: Duration::ZERO,
            period: Duration::from_secs(10),
            timeout: Duration::from_secs(1),
            success_threshold: 1,
            failure_threshold: 3,
        }
    }
}

/// What a probe is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The container is killed when it fails.
    Liveness,
    /// The container is ready while it succeeds, and not before it has.
    Readiness,
}

/// One question; its answer has to name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question(u64);

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Run the command or send the request, and tell [`Prober::answered`] before `by`: later it has failed.
    Ask {
        /// Which question this is.
        question: Question,
        /// When its time is up.
        by: Moment,
    },
    /// Nothing, until then or until the answer comes.
    Wait(Moment),
    /// Kill the container; whether it starts again its restart policy decides. Said once, and the last word.
    Restart,
    /// The container became ready, or stopped being it. Said when it changes.
    Ready(bool),
}

/// A wait that does not end.
pub const FOREVER: Moment = Duration::MAX;

/// Asks after one run of a container. For its next run there is a new one.
#[derive(Clone, Debug)]
pub struct Prober {
    purpose: Purpose,
    timing: Timing,
    /// When to ask next.
    due: Moment,
    /// The question that has no answer yet, and when its time is up.
    open: Option<(Question, Moment)>,
    asked: u64,
    successes: u32,
    failures: u32,
    ready: bool,
    /// A change nobody was told of yet.
    news: Option<Step>,
    over: bool,
}

impl Prober {
    /// For a container that started then.
    pub fn new(purpose: Purpose, timing: Timing, started: Moment) -> Self {
        Self {
            purpose,
            timing,
            due: started.saturating_add(timing.initial_delay),
            open: None,
            asked: 0,
            successes: 0,
            failures: 0,
            ready: false,
            news: None,
            over: false,
        }
    }

    /// Whether the container is known to be ready.
    pub fn is_ready(&self) -> bool {
        self.ready
    }

    /// What to do now. Ask again after each step, until it says to wait.
    pub fn step(&mut self, now: Moment) -> Step {
        if let Some((_, by)) = self.open
            && now >= by
        {
            self.open = None;
            self.count(false);
        }
        if let Some(news) = self.news.take() {
            return news;
        }
        if self.over {
            return Step::Wait(FOREVER);
        }
        match self.open {
            Some((_, by)) => Step::Wait(by),
            None if now < self.due => Step::Wait(self.due),
            None => self.ask(now),
        }
    }

    fn ask(&mut self, now: Moment) -> Step {
        let question = Question(self.asked);
        let by = now.saturating_add(self.timing.timeout.max(Duration::from_millis(1)));
        self.asked += 1;
        self.open = Some((question, by));
        // Questions keep their rhythm; one whose answer took longer than the period is followed at once.
        self.due = now.saturating_add(self.timing.period.max(Duration::from_millis(1)));
        Step::Ask { question, by }
    }

    /// An answer came. One to a question whose time is up counts for nothing.
    pub fn answered(&mut self, question: Question, healthy: bool, now: Moment) {
        if let Some((open, by)) = self.open
            && open == question
        {
            self.open = None;
            self.count(healthy && now < by);
        }
    }

    fn count(&mut self, healthy: bool) {
        if healthy {
            self.failures = 0;
            self.successes = self.successes.saturating_add(1);
        } else {
            self.successes = 0;
            self.failures = self.failures.saturating_add(1);
        }
        match self.purpose {
            Purpose::Liveness if self.failures >= self.timing.failure_threshold.max(1) && !self.over => {
                self.over = true;
                self.news = Some(Step::Restart);
            }
            Purpose::Liveness => {}
            Purpose::Readiness => self.turn(),
        }
    }

    fn turn(&mut self) {
        let ready = if self.ready {
            self.failures < self.timing.failure_threshold.max(1)
        } else {
            self.successes >= self.timing.success_threshold.max(1)
        };
        if ready != self.ready {
            self.ready = ready;
            self.news = Some(Step::Ready(ready));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(seconds: u64) -> Moment {
        Duration::from_secs(seconds)
    }

    fn ask(prober: &mut Prober, now: u64) -> Question {
        match prober.step(secs(now)) {
            Step::Ask { question, .. } => question,
            other => panic!("{other:?} at {now}"),
        }
    }

    fn answer(prober: &mut Prober, now: u64, healthy: bool) {
        let question = ask(prober, now);
        prober.answered(question, healthy, secs(now));
    }

    #[test]
    fn the_first_question_comes_after_the_delay_and_the_others_each_period() {
        let timing = Timing { initial_delay: secs(5), period: secs(7), ..Timing::default() };
        let mut prober = Prober::new(Purpose::Liveness, timing, secs(100));
        assert_eq!(prober.step(secs(100)), Step::Wait(secs(105)));
        answer(&mut prober, 105, true);
        assert_eq!(prober.step(secs(105)), Step::Wait(secs(112)));
        answer(&mut prober, 112, true);
        assert_eq!(prober.step(secs(113)), Step::Wait(secs(119)));
    }

    #[test]
    fn liveness_restarts_after_failures_in_a_row_and_only_once() {
        let mut prober = Prober::new(Purpose::Liveness, Timing::default(), secs(0));
        for (now, healthy) in [(0, false), (10, false), (20, true), (30, false), (40, false), (50, false)] {
            answer(&mut prober, now, healthy);
        }
        assert_eq!(prober.step(secs(50)), Step::Restart);
        assert_eq!(prober.step(secs(50)), Step::Wait(FOREVER));
        assert_eq!(prober.step(secs(500)), Step::Wait(FOREVER));
    }

    #[test]
    fn readiness_begins_as_no_and_turns_at_its_thresholds() {
        let timing = Timing { success_threshold: 2, failure_threshold: 2, ..Timing::default() };
        let mut prober = Prober::new(Purpose::Readiness, timing, secs(0));
        let mut said = Vec::new();
        for (round, healthy) in
            [true, false, true, true, false, true, false, false, true, true].into_iter().enumerate()
        {
            let now = u64::try_from(round).unwrap() * 10;
            answer(&mut prober, now, healthy);
            match prober.step(secs(now)) {
                Step::Ready(ready) => said.push((round, ready)),
                Step::Wait(_) => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(said, [(3, true), (7, false), (9, true)]);
        assert!(prober.is_ready());
    }

    #[test]
    fn no_answer_in_time_is_a_failure_and_a_late_one_counts_for_nothing() {
        let timing = Timing { timeout: secs(2), failure_threshold: 2, ..Timing::default() };
        let mut prober = Prober::new(Purpose::Liveness, timing, secs(0));
        let late = ask(&mut prober, 0);
        assert_eq!(prober.step(secs(1)), Step::Wait(secs(2)));
        assert_eq!(prober.step(secs(2)), Step::Wait(secs(10)));
        prober.answered(late, true, secs(3));
        let second = ask(&mut prober, 10);
        prober.answered(late, true, secs(11));
        prober.answered(second, true, secs(12));
        assert_eq!(prober.step(secs(12)), Step::Restart, "an answer at the last moment is too late");
    }

    #[test]
    fn a_question_that_took_longer_than_the_period_is_followed_at_once() {
        let timing = Timing { period: secs(1), timeout: secs(5), ..Timing::default() };
        let mut prober = Prober::new(Purpose::Liveness, timing, secs(0));
        let question = ask(&mut prober, 0);
        assert_eq!(prober.step(secs(3)), Step::Wait(secs(5)), "never two questions at once");
        prober.answered(question, true, secs(4));
        ask(&mut prober, 4);
    }
}
