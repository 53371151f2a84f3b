//! Machines as a parameter: which slots a trial may have, what they cost, and the cheapest way to the target.

use std::ops::Range;
use std::time::Duration;

use cudock_base::Usd;

use super::error::ApplyError;
use super::sweep::Sweep;
use super::trial::{Trial, cost_of};
use crate::event::MachineSlots;
use crate::objective::Objective;
use crate::space::Assignment;

/// A trial that came to the target of the objective.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TargetReached<'s> {
    pub trial: &'s Trial,
    /// The size that it ran on, if that is a parameter.
    pub size: Option<&'s str>,
    /// Time from its start until it reported the target; `cost` is the cost of that time.
    pub time: Duration,
    pub cost: Usd,
}

impl Sweep {
    pub(super) fn set_machines(&mut self, machines: &[MachineSlots]) -> Result<(), ApplyError> {
        let total = machines.iter().try_fold(0_u32, |sum, machine| sum.checked_add(machine.slots));
        if self.plan.machine.is_none() || total != Some(self.slots) {
            return Err(ApplyError::WrongMachines);
        }
        self.machines = machines.to_vec();
        Ok(())
    }

    /// The size that the parameters of a trial name.
    fn size_of<'a>(&self, parameters: &'a Assignment) -> Option<&'a str> {
        parameters.get(self.plan.machine.as_ref()?)?.as_text()
    }

    /// The slots that a trial may have: all, or those of its size. The sizes have theirs one after the other.
    pub(super) fn slots_for(&self, parameters: &Assignment) -> Range<u32> {
        let Some(size) = self.size_of(parameters) else { return 0..self.slots };
        let mut start = 0;
        for machine in &self.machines {
            let end = start + machine.slots;
            if machine.size == size {
                return start..end;
            }
            start = end;
        }
        // A size that is not there any more.
        0..0
    }

    /// The price of a slot for an hour.
    pub(super) fn slot_price(&self, slot: u32) -> Option<Usd> {
        let mut start = 0;
        for machine in &self.machines {
            start += machine.slots;
            if slot < start {
                return Some(machine.price_per_hour);
            }
        }
        self.price_per_hour
    }

    /// The cheapest trial of each size that came to the target of the objective, or of all if sizes are not a parameter;
    /// the cheapest first. Without a price, the fastest.
    pub fn cheapest(&self) -> Vec<TargetReached<'_>> {
        let [objective] = self.plan.objectives.as_slice() else { return Vec::new() };
        let Some(target) = objective.target else { return Vec::new() };
        let reached = self.trials.iter().filter_map(|trial| self.reached(trial, objective, target));
        let mut all: Vec<TargetReached<'_>> = reached.collect();
        all.sort_by_key(|one| (one.cost, one.time));
        let mut cheapest: Vec<TargetReached<'_>> = Vec::new();
        for one in all {
            if cheapest.iter().all(|found| found.size != one.size) {
                cheapest.push(one);
            }
        }
        cheapest
    }

    /// When a trial came to a target, if it did.
    fn reached<'s>(
        &'s self,
        trial: &'s Trial,
        objective: &Objective,
        target: f64,
    ) -> Option<TargetReached<'s>> {
        let attempt = trial.attempt()?;
        let score = |value: f64| objective.goal.score(value);
        let mut points = trial.curve(&objective.metric).iter();
        let time = points.find(|point| score(point.value) >= score(target))?.at.since(attempt.starting);
        let cost = attempt.price_per_hour.map_or(Usd::ZERO, |price| cost_of(price, time));
        Some(TargetReached { trial, size: self.size_of(&trial.parameters), time, cost })
    }
}
