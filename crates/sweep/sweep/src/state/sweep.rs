//! The state of a sweep.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cudock_base::{Timestamp, Usd};

use super::error::ApplyError;
use super::trial::{Trial, TrialAttempt};
use crate::config::SweepPlan;
use crate::event::{Event, MachineSlots, Record, SweepEnd};
use crate::pareto::pareto_front;
use crate::policy::{Decision, History};
use crate::sampler::{Combinations, Observation};
use crate::trial_id::TrialId;

/// Maximum number of trials at the same time, whatever a journal claims.
const MAX_SLOTS: u32 = 10_000;

/// A sweep as recorded in its journal.
#[derive(Debug, Clone)]
pub struct Sweep {
    pub(super) plan: SweepPlan,
    /// Those of the space, if the sampler tries all of them.
    pub(super) combinations: Option<Combinations>,
    pub(super) created: Timestamp,
    pub(super) last_event: Timestamp,
    pub(super) slots: u32,
    pub(super) price_per_hour: Option<Usd>,
    /// The slots of each size, if sizes are a parameter.
    pub(super) machines: Vec<MachineSlots>,
    /// Trials that were added to the limit.
    pub(super) added: u32,
    pub(super) is_paused: bool,
    pub(super) is_canceled: bool,
    pub(super) end: Option<SweepEnd>,
    /// Active time until the clock was stopped last, and since when it runs again.
    pub(super) active_before: Duration,
    pub(super) active_since: Option<Timestamp>,
    pub(super) trials: Vec<Trial>,
    /// Trials with an attempt that may exist.
    pub(super) live: BTreeSet<TrialId>,
    /// Trials that are to be started.
    pub(super) waiting: BTreeSet<TrialId>,
    /// Reports of the objective, if there is a policy.
    pub(super) history: Option<History>,
    /// Trials that the policy stops, before that is recorded.
    pub(super) decided: BTreeMap<TrialId, Decision>,
    /// Cost of the attempts that have ended.
    pub(super) spent: Usd,
    /// Times of the trials that succeeded, sorted.
    pub(super) times: Vec<Duration>,
    /// Times of the attempts that failed or were stopped, but not for the end of the sweep; sorted.
    pub(super) other_times: Vec<Duration>,
    /// Whether a trial was stopped because the budget was spent.
    pub(super) is_spent: bool,
}

impl Sweep {
    /// The state after some records, of which the first is that of the creation.
    pub fn replay(records: &[Record]) -> Result<Self, ApplyError> {
        let (first, rest) = records.split_first().ok_or(ApplyError::NotCreated)?;
        let mut sweep = Self::create(first)?;
        for record in rest {
            sweep.apply(record)?;
        }
        Ok(sweep)
    }

    fn create(record: &Record) -> Result<Self, ApplyError> {
        let Event::Created { plan, slots, price_per_hour } = &record.event else {
            return Err(ApplyError::NotCreated);
        };
        let plan = SweepPlan::clone(plan);
        let goal = plan.objectives.first().map(|objective| objective.goal).ok_or(ApplyError::NoObjective)?;
        let mut sweep = Self {
            combinations: plan.sampler.combinations(&plan.space),
            created: record.at,
            last_event: record.at,
            slots: 0,
            price_per_hour: None,
            machines: Vec::new(),
            added: 0,
            is_paused: false,
            is_canceled: false,
            end: None,
            active_before: Duration::ZERO,
            active_since: Some(record.at),
            trials: Vec::new(),
            live: BTreeSet::new(),
            waiting: BTreeSet::new(),
            history: plan.policy.is_some().then(|| History::new(goal)),
            decided: BTreeMap::new(),
            spent: Usd::ZERO,
            times: Vec::new(),
            other_times: Vec::new(),
            is_spent: false,
            plan,
        };
        sweep.set_resources(*slots, *price_per_hour)?;
        Ok(sweep)
    }

    pub(super) fn set_resources(
        &mut self,
        slots: u32,
        price_per_hour: Option<Usd>,
    ) -> Result<(), ApplyError> {
        if slots == 0 {
            return Err(ApplyError::NoSlots);
        }
        if self.plan.limits.dollars.is_some() && price_per_hour.is_none() {
            return Err(ApplyError::NoPrice);
        }
        (self.slots, self.price_per_hour) = (slots.min(MAX_SLOTS), price_per_hour);
        self.machines.clear();
        Ok(())
    }

    pub fn plan(&self) -> &SweepPlan {
        &self.plan
    }

    pub fn created(&self) -> Timestamp {
        self.created
    }

    /// When the last event was recorded.
    pub fn last_event(&self) -> Timestamp {
        self.last_event
    }

    pub fn slots(&self) -> u32 {
        self.slots
    }

    pub fn price_per_hour(&self) -> Option<Usd> {
        self.price_per_hour
    }

    pub fn is_paused(&self) -> bool {
        self.is_paused
    }

    pub fn end(&self) -> Option<SweepEnd> {
        self.end
    }

    /// All trials, by number.
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    pub fn trial(&self, id: TrialId) -> Option<&Trial> {
        self.trials.get(usize::try_from(id.0).ok()?)
    }

    /// The trials whose last attempt may exist, with that attempt.
    pub fn live(&self) -> impl Iterator<Item = (&Trial, &TrialAttempt)> {
        self.live.iter().filter_map(|id| {
            let trial = self.trial(*id)?;
            Some((trial, trial.attempt()?))
        })
    }

    /// Maximum number of trials, with those that were added; none if only time or money ends the sweep.
    pub fn trial_limit(&self) -> Option<u64> {
        let limit = self.plan.limits.trials.map(|trials| u64::from(trials) + u64::from(self.added));
        let combinations = self.combinations.as_ref().map(|all| all.len() as u64);
        limit.into_iter().chain(combinations).min()
    }

    /// The trials with a result, and those that run by what they have reached so far; the best first. With several
    /// objectives, those of the Pareto front come first.
    pub fn ranked(&self) -> Vec<&Trial> {
        let mut ranked = self.standings();
        if let [objective] = self.plan.objectives.as_slice() {
            let score = |result: &[f64]| {
                result.first().map_or(f64::NEG_INFINITY, |value| objective.goal.score(*value))
            };
            ranked.sort_by(|a, b| score(&b.1).total_cmp(&score(&a.1)));
            return ranked.into_iter().map(|(trial, _)| trial).collect();
        }
        let front = self.front_of(&ranked);
        let mut numbered: Vec<(usize, &Trial)> = ranked.iter().map(|(trial, _)| *trial).enumerate().collect();
        numbered.sort_by_key(|(index, _)| !front.contains(index));
        numbered.into_iter().map(|(_, trial)| trial).collect()
    }

    /// The best trial, if there is one objective.
    pub fn best(&self) -> Option<&Trial> {
        (self.plan.objectives.len() == 1).then(|| self.ranked().into_iter().next())?
    }

    /// The trials that no other is better than in every objective; the best one if there is one objective.
    pub fn front(&self) -> Vec<&Trial> {
        if self.plan.objectives.len() == 1 {
            return self.best().into_iter().collect();
        }
        let trials = self.standings();
        self.front_of(&trials).into_iter().filter_map(|index| Some(trials.get(index)?.0)).collect()
    }

    /// The indexes of the results that no other is better than in every objective.
    fn front_of(&self, standings: &[(&Trial, Vec<f64>)]) -> BTreeSet<usize> {
        let goals: Vec<_> = self.plan.objectives.iter().map(|objective| objective.goal).collect();
        let results: Vec<&[f64]> = standings.iter().map(|(_, result)| result.as_slice()).collect();
        pareto_front(&results, &goals).into_iter().collect()
    }

    fn standings(&self) -> Vec<(&Trial, Vec<f64>)> {
        let standing = |trial| Some((trial, Trial::standing(trial, &self.plan.objectives)?));
        self.trials.iter().filter_map(standing).collect()
    }

    /// The cost of all attempts until now.
    pub fn cost(&self, now: Timestamp) -> Usd {
        self.spent + self.live().map(|(_, attempt)| attempt.cost(now)).sum()
    }

    /// The time that the sweep has been active: not the time while it was paused or its process did not exist.
    pub fn active_time(&self, now: Timestamp) -> Duration {
        let running = self.active_since.map_or(Duration::ZERO, |since| now.since(since));
        self.active_before.saturating_add(running)
    }

    /// The trials that a sampler learns from.
    pub(super) fn observations(&self) -> impl Iterator<Item = Observation<'_>> {
        let goal = self.plan.objectives.first().map(|objective| objective.goal);
        self.trials.iter().filter_map(move |trial| {
            let value = *trial.result.as_deref()?.first()?;
            Some(Observation { parameters: &trial.parameters, loss: -goal?.score(value) })
        })
    }
}
