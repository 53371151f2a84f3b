//! Choices as they come in, before they are put in order.

use std::collections::HashMap;

use super::{MOST_CHOICES, Reading};
use crate::choice::{Choice, Service, What};
use crate::text::Walker;

/// A choice that was found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) what: What,
    pub(super) by: String,
    pub(super) service: Option<Service>,
    pub(super) region: Option<String>,
    pub(super) low_priority: bool,
}

impl Found {
    pub(super) fn new(start: usize, end: usize, what: What) -> Self {
        Self { start, end, what, by: String::new(), service: None, region: None, low_priority: false }
    }
}

/// What was found so far.
pub(super) struct Draft<'t> {
    text: &'t str,
    found: Vec<Found>,
    /// Which choice stands at a byte.
    at: HashMap<usize, usize>,
    left_out: usize,
    /// The first region the text names anywhere.
    region: Option<String>,
    /// The parts that are comments, in order once all are in.
    pub(super) comments: Vec<(usize, usize)>,
}

impl<'t> Draft<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, found: Vec::new(), at: HashMap::new(), left_out: 0, region: None, comments: Vec::new() }
    }

    /// Takes a choice in. Of the same words the first choice stays, and takes over what it did not know.
    pub(super) fn add(&mut self, found: Found) {
        if let Some(known) = self.at.get(&found.start).and_then(|index| self.found.get_mut(*index)) {
            if known.by.is_empty() {
                known.by = found.by;
            }
            known.service = known.service.or(found.service);
            known.region = known.region.take().or(found.region);
            known.low_priority |= found.low_priority;
        } else if self.found.len() < MOST_CHOICES {
            self.at.insert(found.start, self.found.len());
            self.found.push(found);
        } else {
            self.left_out += 1;
        }
    }

    /// Whether a choice begins at a byte.
    pub(super) fn has(&self, start: usize) -> bool {
        self.at.contains_key(&start)
    }

    /// Takes note of a region that is meant for everything that has none of its own.
    pub(super) fn region(&mut self, region: &str) {
        if self.region.is_none() {
            self.region = Some(region.to_owned());
        }
    }

    /// Whether a byte lies in a comment.
    pub(super) fn in_comment(&self, at: usize) -> bool {
        let next = self.comments.partition_point(|(start, _)| *start <= at);
        next.checked_sub(1).and_then(|last| self.comments.get(last)).is_some_and(|(_, end)| at < *end)
    }

    pub(super) fn finish(mut self) -> Reading {
        self.found.sort_by_key(|found| found.start);
        let mut walker = Walker::new(self.text);
        let region = self.region;
        let choices = self.found.into_iter().map(|found| Choice {
            span: walker.span(found.start, found.end),
            what: found.what,
            by: found.by,
            service: found.service,
            region: found.region.or_else(|| region.clone()),
            low_priority: found.low_priority,
        });
        Reading { choices: choices.collect(), left_out: self.left_out }
    }
}
