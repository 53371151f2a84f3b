//! A sweep together with its journal.

use std::path::Path;

use cudock_base::{Timestamp, Usd};

use super::{Event, Journal, JournalError, Record};
use crate::config::SweepPlan;
use crate::state::Sweep;

/// The state of a sweep that is always the one in its journal.
#[derive(Debug)]
pub struct SweepLog {
    journal: Journal,
    sweep: Sweep,
}

impl SweepLog {
    /// Creates the journal of a new sweep; the file must not exist.
    pub fn create(
        path: &Path,
        now: Timestamp,
        plan: SweepPlan,
        slots: u32,
        price_per_hour: Option<Usd>,
    ) -> Result<Self, JournalError> {
        if plan.limits.dollars.is_some() && price_per_hour.is_none() {
            return Err(JournalError::NoPrice);
        }
        let created =
            [Record { at: now, event: Event::Created { plan: Box::new(plan), slots, price_per_hour } }];
        let sweep = Sweep::replay(&created)?;
        Ok(Self { journal: Journal::create(path, &created)?, sweep })
    }

    /// Opens the journal of an existing sweep.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let (journal, records) = Journal::open(path)?;
        Ok(Self { journal, sweep: Sweep::replay(&records)? })
    }

    pub fn sweep(&self) -> &Sweep {
        &self.sweep
    }

    /// Applies events and appends them to the journal, synced if one of them announces a change to the outside. If one
    /// does not fit the state, those before it are recorded.
    pub fn record(&mut self, now: Timestamp, events: Vec<Event>) -> Result<(), JournalError> {
        let mut records = Vec::with_capacity(events.len());
        let mut result = Ok(());
        for event in events {
            let record = Record { at: now, event };
            result = self.sweep.apply(&record);
            if result.is_err() {
                break;
            }
            records.push(record);
        }
        let sync = records.iter().any(|record| record.event.needs_sync());
        self.journal.append(&records, sync)?;
        Ok(result?)
    }
}
