//! The next actions of a sweep.

use std::collections::BTreeSet;

use cudock_base::{Timestamp, Usd};

use super::sweep::Sweep;
use super::trial::TrialStatus;
use crate::event::{Event, StopReason, SweepEnd};
use crate::sampler::NextTrial;
use crate::space::Assignment;
use crate::trial_id::TrialId;

/// Something to do. Its [`events`](Self::events) are recorded first.
#[derive(Debug, Clone, PartialEq)]
pub enum SweepAction {
    /// Start an attempt of a trial.
    Start {
        trial: TrialId,
        attempt: u32,
        /// The lowest free one of those that it may have.
        slot: u32,
        parameters: Assignment,
        /// Whether the trial is to be recorded as well.
        is_new: bool,
    },
    /// A new trial waits for a slot of its size, while others begin.
    Propose { trial: TrialId, parameters: Assignment },
    /// Stop an attempt.
    Stop { trial: TrialId, attempt: u32, reason: StopReason },
    /// End the sweep; nothing is running.
    Finish { end: SweepEnd },
}

impl SweepAction {
    /// The events to record before the action is carried out.
    pub fn events(&self) -> Vec<Event> {
        match self {
            Self::Start { trial, attempt, slot, parameters, is_new } => {
                let proposed = Event::Proposed { trial: *trial, parameters: parameters.clone() };
                let starting = Event::Starting { trial: *trial, attempt: *attempt, slot: *slot };
                is_new.then_some(proposed).into_iter().chain([starting]).collect()
            }
            Self::Propose { trial, parameters } => {
                vec![Event::Proposed { trial: *trial, parameters: parameters.clone() }]
            }
            Self::Stop { trial, attempt, reason } => {
                vec![Event::StopDecided { trial: *trial, attempt: *attempt, reason: reason.clone() }]
            }
            Self::Finish { end } => vec![Event::Finished { end: *end }],
        }
    }
}

impl Sweep {
    /// The actions due at a time. Once the events of an action are applied, it is not returned
    /// again.
    pub fn next(&self, now: Timestamp) -> Vec<SweepAction> {
        if self.end.is_some() {
            return Vec::new();
        }
        let exceeded = self.exceeded(now);
        let mut actions = self.stops(now, exceeded.as_ref().map(|(reason, _)| reason));
        if let Some((_, end)) = exceeded {
            if self.live.is_empty() {
                actions.push(SweepAction::Finish { end });
            }
        } else if !self.is_paused {
            let starts = self.starts(now);
            if starts.is_empty() && self.live.is_empty() {
                actions.push(SweepAction::Finish { end: self.reached_end() });
            }
            actions.extend(starts);
        }
        actions
    }

    fn stops(&self, now: Timestamp, exceeded: Option<&StopReason>) -> Vec<SweepAction> {
        let running = self.live().filter(|(trial, _)| trial.status != TrialStatus::Stopping);
        let stops = running.filter_map(|(trial, attempt)| {
            let policy = self.decided.get(&trial.id).map(|decision| StopReason::Policy(*decision));
            let reason = policy.or_else(|| exceeded.cloned()).or_else(|| self.timed_out(attempt, now))?;
            Some(SweepAction::Stop { trial: trial.id, attempt: attempt.number, reason })
        });
        stops.collect()
    }

    fn starts(&self, now: Timestamp) -> Vec<SweepAction> {
        let slots = self.slots.min(self.plan.limits.concurrent.unwrap_or(u32::MAX));
        let room = usize::try_from(slots).unwrap_or(usize::MAX).saturating_sub(self.live.len());
        let used = self.live().map(|(_, attempt)| attempt.slot);
        let mut used: BTreeSet<u32> = used.collect();
        let again = self.waiting.iter().filter_map(|id| {
            let trial = self.trial(*id)?;
            Some((*id, u32::try_from(trial.attempts.len()).ok()? + 1, trial.parameters.clone(), false))
        });
        let next = u32::try_from(self.trials.len()).unwrap_or(u32::MAX);
        let limit = self.trial_limit().map_or(u32::MAX, |limit| u32::try_from(limit).unwrap_or(u32::MAX));
        let new = (next..limit).map_while(|number| {
            let id = TrialId(number);
            let parameters = self.plan.sampler.propose(&NextTrial {
                space: &self.plan.space,
                seed: self.plan.seed,
                id,
                combinations: self.combinations.as_ref(),
                observations: &|| self.observations().collect(),
            })?;
            Some((id, 1, parameters, true))
        });
        let mut candidates = again.chain(new);
        let (mut actions, mut cost) = (Vec::new(), Usd::ZERO);
        if self.is_spent {
            return actions;
        }
        let (mut started, mut waiting) = (0, self.waiting.len());
        while started < room {
            let Some((trial, attempt, parameters, is_new)) = candidates.next() else { break };
            let Some(slot) = self.slots_for(&parameters).find(|slot| !used.contains(slot)) else {
                // Samplers learn from results, so no more trials are proposed ahead than there are slots.
                match (is_new, waiting < usize::try_from(self.slots).unwrap_or(usize::MAX)) {
                    (true, false) => break,
                    (true, true) => {
                        waiting += 1;
                        actions.push(SweepAction::Propose { trial, parameters });
                    }
                    (false, _) => {}
                }
                continue;
            };
            cost += self.expected_cost(slot);
            if !self.can_pay(now, cost) {
                break;
            }
            started += 1;
            used.insert(slot);
            actions.push(SweepAction::Start { trial, attempt, slot, parameters, is_new });
        }
        actions
    }

    /// Why no further trial is started, when nothing is running.
    fn reached_end(&self) -> SweepEnd {
        let next = self.trials.len();
        if self.is_spent
            || !self.waiting.is_empty()
            || self.trial_limit().is_none_or(|limit| (next as u64) < limit)
        {
            SweepEnd::Budget
        } else if self.combinations.as_ref().is_some_and(|all| next >= all.len()) {
            SweepEnd::SpaceExhausted
        } else {
            SweepEnd::Trials
        }
    }
}
