//! The queue of admitted requests, in the order in which they run.
//!
//! Requests of one bucket and one priority level form a linked list through a slab, so that pushing, popping and
//! removing from the middle (the client disconnected) take constant time and allocate nothing. The heads of the lists
//! are ordered by arrival time, and each priority level counts as a fixed delay of the arrival: urgent requests
//! overtake, but no request starves.

use std::collections::BTreeSet;

use slab::Slab;

use crate::hash::U64Map;
use crate::{Arrival, Ticket};

/// A slab key that is never in use.
const NONE: usize = usize::MAX;

pub const LEVELS: usize = 16;

#[derive(Clone, Copy, Debug)]
pub(crate) struct QueuedRequest {
    pub(crate) ticket: Ticket,
    pub(crate) rows: usize,
    pub(crate) arrived: u64,
    /// `u64::MAX` if it has none.
    pub(crate) deadline: u64,
    pub(crate) bucket_hash: u64,
    bytes: usize,
    level: usize,
    /// Slab key of its bucket; [`NONE`] if it runs isolated.
    bucket: usize,
    sequence: u64,
    prev: usize,
    next: usize,
}

#[derive(Clone, Copy, Debug)]
struct RequestList {
    head: usize,
    tail: usize,
}

impl RequestList {
    const EMPTY: Self = Self { head: NONE, tail: NONE };
}

#[derive(Debug)]
struct Bucket {
    hash: u64,
    rows: usize,
    requests: usize,
    levels: [RequestList; LEVELS],
    /// Its rank in `Queue::heads`.
    rank: Option<(u64, u64)>,
}

#[derive(Debug)]
pub(crate) struct Queue {
    /// Delay of the arrival that one priority level counts as.
    aging: u64,
    slots: Slab<QueuedRequest>,
    tickets: U64Map<usize>,
    buckets: Slab<Bucket>,
    bucket_keys: U64Map<usize>,
    /// The first request of each bucket: rank, sequence and key of the bucket.
    heads: BTreeSet<(u64, u64, usize)>,
    isolated: RequestList,
    /// Requests with a deadline, ordered by it.
    deadlines: BTreeSet<(u64, usize)>,
    rows_by_level: [usize; LEVELS],
    sequence: u64,
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
}

impl Queue {
    pub(crate) fn new(aging: u64) -> Self {
        Self {
            aging,
            slots: Slab::new(),
            tickets: U64Map::default(),
            buckets: Slab::new(),
            bucket_keys: U64Map::default(),
            heads: BTreeSet::new(),
            isolated: RequestList::EMPTY,
            deadlines: BTreeSet::new(),
            rows_by_level: [0; LEVELS],
            sequence: 0,
            rows: 0,
            bytes: 0,
        }
    }

    pub(crate) fn requests(&self) -> usize {
        self.tickets.len()
    }

    pub(crate) fn buckets(&self) -> usize {
        self.heads.len()
    }

    /// Rows that would run before a request of that priority arriving now, if none has aged.
    pub(crate) fn rows_before(&self, priority: u32) -> usize {
        self.rows_by_level.iter().take(level_of(priority) + 1).sum()
    }

    pub(crate) fn next_deadline(&self) -> Option<u64> {
        self.deadlines.first().map(|&(deadline, _)| deadline)
    }

    pub(crate) fn push(&mut self, now: u64, arrival: &Arrival) {
        let bucket = self.bucket_key(arrival.bucket);
        self.link(now, arrival, bucket);
    }

    /// Adds a request that runs before all others, in a batch of its own.
    pub(crate) fn push_isolated(&mut self, now: u64, arrival: &Arrival) {
        self.link(now, arrival, NONE);
    }

    /// The bucket that runs next: key, hash and rows.
    pub(crate) fn first_bucket(&self) -> Option<(usize, u64, usize)> {
        let &(_, _, key) = self.heads.first()?;
        let bucket = self.buckets.get(key)?;
        Some((key, bucket.hash, bucket.rows))
    }

    /// The request of that bucket that runs next, and its key.
    pub(crate) fn peek(&self, bucket: usize) -> Option<(usize, &QueuedRequest)> {
        let (_, _, key) = self.head_of(bucket)?;
        Some((key, self.slots.get(key)?))
    }

    /// Updates the rank of a bucket after requests were removed from it.
    pub(crate) fn update_rank(&mut self, bucket: usize) {
        let head = self.head_of(bucket).map(|(rank, sequence, _)| (rank, sequence));
        let Some(entry) = self.buckets.get_mut(bucket) else { return };
        if entry.rank != head {
            if let Some((rank, sequence)) = entry.rank {
                self.heads.remove(&(rank, sequence, bucket));
            }
            if let Some((rank, sequence)) = head {
                self.heads.insert((rank, sequence, bucket));
            }
            entry.rank = head;
        }
        if entry.requests == 0 {
            self.bucket_keys.remove(&entry.hash);
            self.buckets.try_remove(bucket);
        }
    }

    pub(crate) fn pop_isolated(&mut self) -> Option<QueuedRequest> {
        self.pop(self.isolated.head)
    }

    pub(crate) fn has_isolated(&self) -> bool {
        self.isolated.head != NONE
    }

    /// Removes a request from any position.
    pub(crate) fn remove(&mut self, ticket: Ticket) -> Option<QueuedRequest> {
        self.take(*self.tickets.get(&ticket.0)?)
    }

    /// Removes a request whose deadline has passed, if there is one.
    pub(crate) fn pop_expired(&mut self, now: u64) -> Option<QueuedRequest> {
        let &(deadline, key) = self.deadlines.first()?;
        if deadline > now { None } else { self.take(key) }
    }

    fn take(&mut self, key: usize) -> Option<QueuedRequest> {
        let entry = self.pop(key)?;
        self.update_rank(entry.bucket);
        Some(entry)
    }

    fn bucket_key(&mut self, hash: u64) -> usize {
        let buckets = &mut self.buckets;
        *self.bucket_keys.entry(hash).or_insert_with(|| {
            let levels = [RequestList::EMPTY; LEVELS];
            buckets.insert(Bucket { hash, rows: 0, requests: 0, levels, rank: None })
        })
    }

    /// Rank, sequence and key of the request that runs next in a bucket.
    fn head_of(&self, bucket: usize) -> Option<(u64, u64, usize)> {
        let levels = &self.buckets.get(bucket)?.levels;
        levels
            .iter()
            .filter_map(|list| {
                let entry = self.slots.get(list.head)?;
                Some((self.rank(entry), entry.sequence, list.head))
            })
            .min()
    }

    fn rank(&self, entry: &QueuedRequest) -> u64 {
        entry.arrived.saturating_add(self.aging.saturating_mul(entry.level as u64))
    }

    fn list(&mut self, bucket: usize, level: usize) -> Option<&mut RequestList> {
        if bucket == NONE {
            return Some(&mut self.isolated);
        }
        self.buckets.get_mut(bucket)?.levels.get_mut(level)
    }

    fn link(&mut self, now: u64, arrival: &Arrival, bucket: usize) {
        let level = level_of(arrival.priority);
        let Some(&mut RequestList { tail, .. }) = self.list(bucket, level) else { return };
        self.sequence += 1;
        let entry = QueuedRequest {
            ticket: arrival.ticket,
            rows: arrival.rows,
            arrived: now,
            deadline: arrival.deadline.map_or(u64::MAX, |deadline| deadline.0),
            bucket_hash: arrival.bucket,
            bytes: arrival.bytes,
            level,
            bucket,
            sequence: self.sequence,
            prev: tail,
            next: NONE,
        };
        let key = self.slots.insert(entry);
        if let Some(prev) = self.slots.get_mut(tail) {
            prev.next = key;
        }
        if let Some(list) = self.list(bucket, level) {
            list.tail = key;
            if tail == NONE {
                list.head = key;
            }
        }
        self.tickets.insert(entry.ticket.0, key);
        if entry.deadline != u64::MAX {
            self.deadlines.insert((entry.deadline, key));
        }
        self.count(&entry, usize::saturating_add);
        // Only the first of its level can change the head of its bucket.
        if tail == NONE {
            self.update_rank(bucket);
        }
    }

    /// Adds a request to the totals, or subtracts it from them.
    fn count(&mut self, entry: &QueuedRequest, change: impl Fn(usize, usize) -> usize) {
        self.rows = change(self.rows, entry.rows);
        self.bytes = change(self.bytes, entry.bytes);
        if let Some(rows) = self.rows_by_level.get_mut(entry.level) {
            *rows = change(*rows, entry.rows);
        }
        if let Some(bucket) = self.buckets.get_mut(entry.bucket) {
            bucket.rows = change(bucket.rows, entry.rows);
            bucket.requests = change(bucket.requests, 1);
        }
    }

    /// Removes the request with that key. The order of buckets is stale until [`Self::update_rank`] is called.
    pub(crate) fn pop(&mut self, key: usize) -> Option<QueuedRequest> {
        let entry = self.slots.try_remove(key)?;
        if let Some(prev) = self.slots.get_mut(entry.prev) {
            prev.next = entry.next;
        }
        if let Some(next) = self.slots.get_mut(entry.next) {
            next.prev = entry.prev;
        }
        if let Some(list) = self.list(entry.bucket, entry.level) {
            if list.head == key {
                list.head = entry.next;
            }
            if list.tail == key {
                list.tail = entry.prev;
            }
        }
        self.tickets.remove(&entry.ticket.0);
        if entry.deadline != u64::MAX {
            self.deadlines.remove(&(entry.deadline, key));
        }
        self.count(&entry, usize::saturating_sub);
        Some(entry)
    }
}

fn level_of(priority: u32) -> usize {
    (priority as usize).min(LEVELS - 1)
}
