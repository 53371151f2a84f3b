//! A sweep together with its journal.

use std::path::Path;
use std::time::Duration;

use cudock_base::{Timestamp, Usd};

use super::error::JournalError;
use super::file::Journal;
use crate::config::SweepPlan;
use crate::event::{Event, Record};
use crate::state::Sweep;

/// The state of a sweep that is always the one in its journal.
#[derive(Debug)]
pub struct SweepLog {
    journal: Journal,
    sweep: Sweep,
    /// Whether intents are on disk before they are carried out.
    syncs_intents: bool,
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
        Ok(Self { journal: Journal::create(path, &created)?, sweep, syncs_intents: true })
    }

    /// Opens the journal of an existing sweep.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let (journal, records) = Journal::open(path)?;
        Ok(Self { journal, sweep: Sweep::replay(&records)?, syncs_intents: true })
    }

    /// Whether intents are on disk before they are carried out. Written they are in any case, which is enough if trials
    /// cannot survive what a written line does not: a crash of the machine.
    pub fn sync_intents(&mut self, syncs: bool) {
        self.syncs_intents = syncs;
    }

    /// Syncs events that were recorded at least this long ago.
    pub fn sync_older_than(&mut self, age: Duration) -> Result<(), JournalError> {
        self.journal.sync_older_than(age)
    }

    pub fn sweep(&self) -> &Sweep {
        &self.sweep
    }

    /// Applies events and appends them to the journal, synced if one of them needs it. If one does not fit the state,
    /// those before it are recorded.
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
        let sync = records.iter().any(|record| record.event.needs_sync(self.syncs_intents));
        self.journal.append(&records, sync)?;
        Ok(result?)
    }
}
