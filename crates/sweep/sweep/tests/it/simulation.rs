//! Whole sweeps against a simulated world with a virtual clock, in which the sweep is killed between any two steps.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use cudock_base::{Rng, Usd};
use cudock_sweep::STOP_MARGIN;
use cudock_sweep::policy::{Asha, Bandit, EvaluationSchedule, Hyperband, Median, Slack, Truncation};
use cudock_sweep::{
    AttemptEnd, Event, Journal, StopReason, Sweep, SweepAction, SweepLog, SweepPlan, TerminationPolicy,
    TrialId, TrialStatus,
};
use proptest::prelude::*;

use crate::support::{at, plan, reported, started};

const SLOTS: u32 = 3;

/// A process of a trial.
struct Process {
    start: u64,
    end: u64,
    end_with: AttemptEnd,
    values: Vec<f64>,
    /// When it is gone after it was stopped.
    stopped: Option<u64>,
}

/// What happens to be true outside, decided by random numbers.
struct World {
    rng: Rng,
    now: u64,
    processes: BTreeMap<(TrialId, u32), Process>,
    /// In thousandths: how often the sweep is killed between two steps.
    kills: u64,
    price: Option<Usd>,
    most_at_once: usize,
}

/// The sweep was killed.
struct Killed;

impl World {
    fn maybe_kill(&mut self) -> Result<(), Killed> {
        if self.rng.below(1000) < self.kills { Err(Killed) } else { Ok(()) }
    }

    fn is_alive(process: &Process, now: u64) -> bool {
        now < process.stopped.unwrap_or(process.end).min(process.end)
    }

    fn start(&mut self, trial: TrialId, attempt: u32) {
        let length = 1 + self.rng.below(300);
        let end_with = match self.rng.below(10) {
            0 => AttemptEnd::Exited { code: 1 },
            1 => AttemptEnd::Signaled { signal: 9 },
            _ => AttemptEnd::Exited { code: 0 },
        };
        let values =
            (0..self.rng.below(8)).map(|_| if self.rng.below(20) == 0 { f64::NAN } else { self.rng.unit() });
        let process = Process {
            start: self.now,
            end: self.now + length,
            end_with,
            values: values.collect(),
            stopped: None,
        };
        assert!(self.processes.insert((trial, attempt), process).is_none(), "an attempt was started twice");
        let alive = self.processes.values().filter(|process| Self::is_alive(process, self.now)).count();
        self.most_at_once = self.most_at_once.max(alive);
    }

    /// One process of the sweep, until it is killed or the sweep has finished.
    fn run(&mut self, log: &mut SweepLog, is_first: bool) -> Result<(), Killed> {
        if !is_first {
            let resumed = Event::Resumed { slots: SLOTS, price_per_hour: self.price };
            log.record(at(self.now), vec![resumed]).unwrap();
            let live: Vec<_> =
                log.sweep().live().map(|(trial, attempt)| (trial.id, attempt.number)).collect();
            for (trial, attempt) in live {
                self.maybe_kill()?;
                if !self.processes.contains_key(&(trial, attempt)) {
                    let (end, ran) = (AttemptEnd::Lost, Duration::ZERO);
                    log.record(at(self.now), vec![Event::Ended { trial, attempt, end, ran }]).unwrap();
                }
                // A stop that was decided, and perhaps not carried out, is carried out.
                if log.sweep().trial(trial).unwrap().status == TrialStatus::Stopping {
                    self.stop(trial, attempt);
                }
            }
        }
        loop {
            self.act(log)?;
            if log.sweep().end().is_some() {
                return Ok(());
            }
            self.observe(log)?;
            let wake = log
                .sweep()
                .wake_at(at(self.now))
                .map(|time| time.since(at(0)).as_millis().div_ceil(1000) as u64);
            let next = self.now + 1 + self.rng.below(20);
            self.now = wake.filter(|wake| *wake > self.now).map_or(next, |wake| next.min(wake));
        }
    }

    fn act(&mut self, log: &mut SweepLog) -> Result<(), Killed> {
        for action in log.sweep().next(at(self.now)) {
            self.maybe_kill()?;
            log.record(at(self.now), action.events()).unwrap();
            self.maybe_kill()?;
            match action {
                SweepAction::Start { trial, attempt, .. } => {
                    self.start(trial, attempt);
                    self.maybe_kill()?;
                    log.record(at(self.now), vec![started(trial.0, attempt)]).unwrap();
                }
                SweepAction::Stop { trial, attempt, .. } => self.stop(trial, attempt),
                SweepAction::Propose { .. } | SweepAction::Finish { .. } => {}
            }
        }
        Ok(())
    }

    fn stop(&mut self, trial: TrialId, attempt: u32) {
        let (now, delay) = (self.now, self.rng.below(STOP_MARGIN.as_secs()));
        if let Some(process) = self.processes.get_mut(&(trial, attempt)) {
            process.stopped.get_or_insert(now + delay);
        }
    }

    /// Reads all output from the beginning, as a process does that does not know what was read before.
    fn observe(&mut self, log: &mut SweepLog) -> Result<(), Killed> {
        let live: Vec<_> = log.sweep().live().map(|(trial, attempt)| (trial.id, attempt.number)).collect();
        for (trial, attempt) in live {
            let process = &self.processes[&(trial, attempt)];
            let shown = process.values.len() as u64 * (self.now.min(process.end) - process.start)
                / (process.end - process.start);
            let events = (1..=shown).zip(&process.values);
            let events = events
                .map(|(interval, value)| reported(trial.0, attempt, "score", interval, *value))
                .collect();
            log.record(at(self.now), events).unwrap();
            self.maybe_kill()?;
            let process = &self.processes[&(trial, attempt)];
            if !Self::is_alive(process, self.now) {
                let gone = process.stopped.unwrap_or(process.end).min(process.end);
                let end = if gone < process.end {
                    AttemptEnd::Signaled { signal: 15 }
                } else {
                    process.end_with.clone()
                };
                let ran = Duration::from_secs(gone - process.start);
                log.record(at(self.now), vec![Event::Ended { trial, attempt, end, ran }]).unwrap();
            }
        }
        Ok(())
    }
}

/// Runs a sweep to its end, however often it is killed.
fn simulate(plan: SweepPlan, price: Option<Usd>, seed: u64, kills: u64, path: &Path) -> (World, Sweep) {
    let mut world =
        World { rng: Rng::new(seed), now: 0, processes: BTreeMap::new(), kills, price, most_at_once: 0 };
    let mut log = SweepLog::create(path, at(0), plan, SLOTS, price).unwrap();
    let mut is_first = true;
    while world.run(&mut log, is_first).is_err() {
        is_first = false;
        drop(log);
        world.now += world.rng.below(500);
        log = SweepLog::open(path).unwrap();
    }
    (world, log.sweep().clone())
}

fn plans() -> impl Strategy<Value = SweepPlan> {
    let schedule = EvaluationSchedule { interval: 1, delay: 2 };
    let policy = prop::sample::select(vec![
        None,
        Some(TerminationPolicy::Bandit(Bandit { slack: Slack::Factor(0.1), schedule })),
        Some(TerminationPolicy::Median(Median { schedule })),
        Some(TerminationPolicy::Truncation(Truncation {
            percentage: 30.0,
            exclude_finished: true,
            schedule,
        })),
        Some(TerminationPolicy::Asha(Asha { min_steps: 1, max_steps: Some(6), reduction: 2 })),
        Some(TerminationPolicy::Hyperband(Hyperband { min_steps: 1, max_steps: 6, reduction: 2 })),
    ]);
    let seconds = |range: std::ops::Range<u64>| {
        prop::option::of(range).prop_map(|time: Option<u64>| time.map(Duration::from_secs))
    };
    let cents = prop::option::of(1_u64..40).prop_map(|cents| cents.map(Usd::from_cents));
    (policy, 1_u32..12, 1_u32..4, 0_u32..3, seconds(20..400), seconds(100..2000), cents).prop_map(
        |(policy, trials, concurrent, retries, trial_timeout, timeout, dollars)| {
            let mut plan = SweepPlan { policy, retries, ..plan(trials) };
            plan.limits.concurrent = Some(concurrent);
            (plan.limits.trial_timeout, plan.limits.timeout, plan.limits.dollars) =
                (trial_timeout, timeout, dollars);
            plan
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_trial_counts_exactly_once_through_any_kill(plan in plans(), seed in any::<u64>(), kills in 0_u64..80) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        // A budget cannot be kept by a sweep that is dead while its trials run on.
        let price = Some(Usd::from_cents(100));
        let (world, sweep) = simulate(plan.clone(), price, seed, kills, &path);
        prop_assert!(sweep.end().is_some() && sweep.live().next().is_none());
        prop_assert!(sweep.trials().iter().all(|trial| trial.status.is_ended()));
        // Every process is an attempt in the journal with its end, and only those that never ran are lost.
        let mut attempts = BTreeSet::new();
        for trial in sweep.trials() {
            for attempt in &trial.attempts {
                let process = world.processes.get(&(trial.id, attempt.number));
                let end = attempt.end.as_ref().unwrap();
                prop_assert_eq!(process.is_none(), *end == AttemptEnd::Lost);
                prop_assert!(attempts.insert((trial.id, attempt.number)));
            }
            prop_assert!(trial.attempts.len() as u32 <= plan.retries + 1);
        }
        prop_assert!(world.processes.keys().all(|key| attempts.contains(key)));
        prop_assert!(world.processes.values().all(|process| !World::is_alive(process, world.now)));
        // A result is that of the process that succeeded.
        for trial in sweep.trials().iter().filter(|trial| trial.status == TrialStatus::Succeeded) {
            let process = &world.processes[&(trial.id, trial.attempt().unwrap().number)];
            let best = process.values.iter().copied().filter(|value| value.is_finite()).reduce(f64::max);
            prop_assert_eq!(trial.result.as_ref().unwrap()[0], best.unwrap());
        }
    }

    #[test]
    fn limits_are_never_exceeded(plan in plans(), seed in any::<u64>()) {
        let directory = tempfile::tempdir().unwrap();
        let (world, sweep) = simulate(plan.clone(), Some(Usd::from_cents(100)), seed, 0, &directory.path().join("j"));
        let limits = &plan.limits;
        prop_assert!(sweep.trials().len() as u32 <= limits.trials.unwrap());
        prop_assert!(world.most_at_once as u32 <= limits.concurrent.unwrap().min(SLOTS));
        if let Some(limit) = limits.trial_timeout {
            let attempts = sweep.trials().iter().flat_map(|trial| &trial.attempts);
            prop_assert!(attempts.clone().all(|attempt| attempt.ran <= limit + STOP_MARGIN));
        }
        if let Some(limit) = limits.timeout {
            let attempts = sweep.trials().iter().flat_map(|trial| &trial.attempts);
            let ends = attempts.map(|attempt| attempt.starting.since(at(0)) + attempt.ran);
            prop_assert!(ends.max().unwrap_or_default() <= limit + STOP_MARGIN);
        }
        if let Some(limit) = limits.dollars {
            let cost = sweep.cost(sweep.last_event());
            prop_assert!(cost <= limit, "{cost} of {limit}");
        }
    }

    #[test]
    fn no_trial_is_started_after_one_was_stopped_for_the_budget(
        plan in plans(), cents in 1_u64..20, seed in any::<u64>(), kills in 0_u64..30,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let mut plan = plan;
        plan.limits.dollars = Some(Usd::from_cents(cents));
        simulate(plan, Some(Usd::from_cents(100)), seed, kills, &path);
        let records = Journal::read(&path).unwrap();
        let for_budget = |event: &Event| matches!(event, Event::StopDecided { reason: StopReason::Budget { .. }, .. });
        let mut after = records.iter().skip_while(|record| !for_budget(&record.event));
        let started = after.find(|record| matches!(record.event, Event::Starting { .. }));
        prop_assert!(started.is_none(), "{started:?}");
    }

    #[test]
    fn replaying_a_journal_decides_the_same(plan in plans(), seed in any::<u64>(), kills in 0_u64..30) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        simulate(plan, Some(Usd::from_cents(100)), seed, kills, &path);
        let records = Journal::read(&path).unwrap();
        let mut sweep = Sweep::replay(&records[..1]).unwrap();
        for (index, record) in records.iter().enumerate().skip(1) {
            // Each stop and each start is what the events before it lead to.
            match &record.event {
                Event::StopDecided { trial, attempt, reason: StopReason::Policy(decision) } => {
                    let reason = StopReason::Policy(*decision);
                    let stop = SweepAction::Stop { trial: *trial, attempt: *attempt, reason };
                    prop_assert!(sweep.next(record.at).contains(&stop));
                }
                Event::Proposed { trial, parameters } => {
                    let is_start = |action: &SweepAction| matches!(
                        action, SweepAction::Start { trial: id, parameters: same, .. } if id == trial && same == parameters
                    );
                    prop_assert!(sweep.next(record.at).iter().any(is_start));
                }
                _ => {}
            }
            sweep.apply(record).unwrap();
            if index % 16 == 0 {
                let again = Sweep::replay(&records[..=index]).unwrap();
                prop_assert_eq!(format!("{:?}", again), format!("{:?}", sweep));
                prop_assert_eq!(again.next(record.at), sweep.next(record.at));
            }
        }
    }
}
