//! Who waits, in which order.
//!
//! Requests of one bucket and one priority are a linked list through a slab, so that entering, leaving at the front and
//! leaving from the middle (the client went away) take the same few steps and no memory. The heads of the lists are
//! ordered by arrival, with each level of priority counting as so much later an arrival: the urgent overtake, but
//! nobody is overtaken for ever.

use std::collections::BTreeSet;

use crate::hash::NumberMap;
use crate::slab::{NONE, Slab};
use crate::{Arrival, Ticket};

/// Levels of priority that are told apart.
pub const LEVELS: usize = 16;

/// A request that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) ticket: Ticket,
    pub(crate) rows: usize,
    pub(crate) arrived: u64,
    /// The last moment, if there is none.
    pub(crate) deadline: u64,
    /// The name of its bucket.
    pub(crate) bucket_name: u64,
    bytes: usize,
    level: usize,
    /// Its bucket's number; [`NONE`] for those that run alone.
    bucket: u32,
    sequence: u64,
    before: u32,
    after: u32,
}

#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
}

impl List {
    const EMPTY: Self = Self { head: NONE, tail: NONE };
}

#[derive(Debug)]
struct Bucket {
    name: u64,
    rows: usize,
    requests: usize,
    levels: [List; LEVELS],
    /// Where it stands among the buckets' heads.
    standing: Option<(u64, u64)>,
}

/// All that wait.
#[derive(Debug)]
pub(crate) struct Queue {
    /// By how much later an arrival one level of priority counts.
    ageing: u64,
    entries: Slab<Entry>,
    tickets: NumberMap<u32>,
    buckets: Slab<Bucket>,
    names: NumberMap<u32>,
    /// The first of each bucket: standing and number of the bucket.
    heads: BTreeSet<(u64, u64, u32)>,
    alone: List,
    /// Entries by deadline, for those that have one.
    deadlines: BTreeSet<(u64, u32)>,
    rows_by_level: [usize; LEVELS],
    sequence: u64,
    rows: usize,
    bytes: usize,
}

impl Queue {
    pub(crate) fn new(ageing: u64) -> Self {
        Self {
            ageing,
            entries: Slab::new(),
            tickets: NumberMap::default(),
            buckets: Slab::new(),
            names: NumberMap::default(),
            heads: BTreeSet::new(),
            alone: List::EMPTY,
            deadlines: BTreeSet::new(),
            rows_by_level: [0; LEVELS],
            sequence: 0,
            rows: 0,
            bytes: 0,
        }
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn requests(&self) -> usize {
        self.tickets.len()
    }

    pub(crate) fn buckets(&self) -> usize {
        self.heads.len()
    }

    /// Rows that a request of that priority, arriving now, would have before it, as long as nobody has aged.
    pub(crate) fn rows_before(&self, priority: u32) -> usize {
        self.rows_by_level.iter().take(level_of(priority) + 1).sum()
    }

    pub(crate) fn next_deadline(&self) -> Option<u64> {
        self.deadlines.first().map(|&(deadline, _)| deadline)
    }

    /// Lets a request in; whether there was a number left for it.
    pub(crate) fn push(&mut self, now: u64, arrival: &Arrival) -> bool {
        let Some(bucket) = self.bucket_named(arrival.bucket) else { return false };
        self.enter(now, arrival, bucket)
    }

    /// Lets a request in that runs before all others, in a batch of its own.
    pub(crate) fn push_alone(&mut self, now: u64, arrival: &Arrival) -> bool {
        self.enter(now, arrival, NONE)
    }

    /// The bucket whose turn it is: its number, name and rows.
    pub(crate) fn first_bucket(&self) -> Option<(u32, u64, usize)> {
        let &(_, _, number) = self.heads.first()?;
        let bucket = self.buckets.get(number)?;
        Some((number, bucket.name, bucket.rows))
    }

    /// The request of that bucket whose turn it is, and its number.
    pub(crate) fn peek(&self, bucket: u32) -> Option<(u32, &Entry)> {
        let (_, _, number) = self.head_of(bucket)?;
        Some((number, self.entries.get(number)?))
    }

    /// Takes the request with the number that [`Self::peek`] gave. Until [`Self::settle`] was called the order of
    /// buckets is not to be asked for.
    pub(crate) fn pop(&mut self, number: u32) -> Option<Entry> {
        self.leave(number)
    }

    /// Puts a bucket in its place after requests were taken from it.
    pub(crate) fn settle(&mut self, bucket: u32) {
        let head = self.head_of(bucket).map(|(standing, sequence, _)| (standing, sequence));
        let Some(state) = self.buckets.get_mut(bucket) else { return };
        if state.standing != head {
            if let Some((standing, sequence)) = state.standing {
                self.heads.remove(&(standing, sequence, bucket));
            }
            if let Some((standing, sequence)) = head {
                self.heads.insert((standing, sequence, bucket));
            }
            state.standing = head;
        }
        if state.requests == 0 {
            self.names.remove(&state.name);
            self.buckets.take(bucket);
        }
    }

    /// Takes the first of those that run alone.
    pub(crate) fn pop_alone(&mut self) -> Option<Entry> {
        self.leave(self.alone.head)
    }

    pub(crate) fn has_alone(&self) -> bool {
        self.alone.head != NONE
    }

    /// Takes a request out wherever it stands.
    pub(crate) fn remove(&mut self, ticket: Ticket) -> Option<Entry> {
        let number = *self.tickets.get(&ticket.0)?;
        let entry = self.leave(number)?;
        self.settle(entry.bucket);
        Some(entry)
    }

    /// Takes out a request whose deadline has come, if there is one.
    pub(crate) fn pop_expired(&mut self, now: u64) -> Option<Entry> {
        let &(deadline, number) = self.deadlines.first()?;
        if deadline > now {
            return None;
        }
        let entry = self.leave(number)?;
        self.settle(entry.bucket);
        Some(entry)
    }

    fn bucket_named(&mut self, name: u64) -> Option<u32> {
        if let Some(&number) = self.names.get(&name) {
            return Some(number);
        }
        let bucket = Bucket { name, rows: 0, requests: 0, levels: [List::EMPTY; LEVELS], standing: None };
        let number = self.buckets.insert(bucket)?;
        self.names.insert(name, number);
        Some(number)
    }

    /// Standing, sequence and number of the request whose turn it is in a bucket.
    fn head_of(&self, bucket: u32) -> Option<(u64, u64, u32)> {
        let levels = &self.buckets.get(bucket)?.levels;
        levels
            .iter()
            .filter_map(|list| {
                let entry = self.entries.get(list.head)?;
                Some((self.standing(entry), entry.sequence, list.head))
            })
            .min()
    }

    fn standing(&self, entry: &Entry) -> u64 {
        entry.arrived.saturating_add(self.ageing.saturating_mul(entry.level as u64))
    }

    fn list(&mut self, bucket: u32, level: usize) -> Option<&mut List> {
        if bucket == NONE {
            return Some(&mut self.alone);
        }
        self.buckets.get_mut(bucket)?.levels.get_mut(level)
    }

    fn enter(&mut self, now: u64, arrival: &Arrival, bucket: u32) -> bool {
        let level = level_of(arrival.priority);
        let Some(&mut List { tail, .. }) = self.list(bucket, level) else { return false };
        self.sequence += 1;
        let entry = Entry {
            ticket: arrival.ticket,
            rows: arrival.rows,
            arrived: now,
            deadline: arrival.deadline.map_or(u64::MAX, |deadline| deadline.0),
            bucket_name: arrival.bucket,
            bytes: arrival.bytes,
            level,
            bucket,
            sequence: self.sequence,
            before: tail,
            after: NONE,
        };
        let Some(number) = self.entries.insert(entry) else { return false };
        if let Some(before) = self.entries.get_mut(tail) {
            before.after = number;
        }
        if let Some(list) = self.list(bucket, level) {
            list.tail = number;
            if tail == NONE {
                list.head = number;
            }
        }
        self.tickets.insert(entry.ticket.0, number);
        if entry.deadline != u64::MAX {
            self.deadlines.insert((entry.deadline, number));
        }
        self.rows = self.rows.saturating_add(entry.rows);
        self.bytes = self.bytes.saturating_add(entry.bytes);
        if let Some(rows) = self.rows_by_level.get_mut(level) {
            *rows = rows.saturating_add(entry.rows);
        }
        if let Some(bucket) = self.buckets.get_mut(bucket) {
            bucket.rows = bucket.rows.saturating_add(entry.rows);
            bucket.requests += 1;
        }
        // Only the first of its level can change the head of its bucket.
        if tail == NONE {
            self.settle(bucket);
        }
        true
    }

    fn leave(&mut self, number: u32) -> Option<Entry> {
        let entry = self.entries.take(number)?;
        if let Some(before) = self.entries.get_mut(entry.before) {
            before.after = entry.after;
        }
        if let Some(after) = self.entries.get_mut(entry.after) {
            after.before = entry.before;
        }
        if let Some(list) = self.list(entry.bucket, entry.level) {
            if list.head == number {
                list.head = entry.after;
            }
            if list.tail == number {
                list.tail = entry.before;
            }
        }
        self.tickets.remove(&entry.ticket.0);
        if entry.deadline != u64::MAX {
            self.deadlines.remove(&(entry.deadline, number));
        }
        self.rows = self.rows.saturating_sub(entry.rows);
        self.bytes = self.bytes.saturating_sub(entry.bytes);
        if let Some(rows) = self.rows_by_level.get_mut(entry.level) {
            *rows = rows.saturating_sub(entry.rows);
        }
        if let Some(bucket) = self.buckets.get_mut(entry.bucket) {
            bucket.rows = bucket.rows.saturating_sub(entry.rows);
            bucket.requests = bucket.requests.saturating_sub(1);
        }
        Some(entry)
    }
}

fn level_of(priority: u32) -> usize {
    (priority as usize).min(LEVELS - 1)
}
