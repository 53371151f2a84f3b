//! Collects choices in any order, and sorts them.

use std::collections::HashMap;

use crate::choice::Choice;
use crate::text::LineTracker;

/// The limit for choices in one text. A program has a handful; a text with more is a list of sizes.
pub const MAX_CHOICES: usize = 10_000;

/// The choices in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The choices, in the order of the text.
    pub choices: Vec<Choice>,
    /// The number of choices beyond the limit.
    pub left_out: usize,
}

/// The choices found so far.
pub(super) struct ChoiceCollector<'t> {
    text: &'t str,
    choices: Vec<Choice>,
    /// Indexes into `choices` by start byte.
    by_start: HashMap<usize, usize>,
    left_out: usize,
    /// The first region in the text.
    region: Option<String>,
    /// The comments, sorted before [`Self::in_comment`] is used.
    pub(super) comments: Vec<(usize, usize)>,
}

impl<'t> ChoiceCollector<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let (choices, by_start, comments) = (Vec::new(), HashMap::new(), Vec::new());
        Self { text, choices, by_start, left_out: 0, region: None, comments }
    }

    /// Adds a choice. Of two choices at the same bytes, the first stays and takes over what it did not know.
    pub(super) fn add(&mut self, choice: Choice) {
        let start = choice.span.start;
        if let Some(known) = self.by_start.get(&start).and_then(|index| self.choices.get_mut(*index)) {
            if known.role.is_empty() {
                known.role = choice.role;
            }
            known.service = known.service.or(choice.service);
            known.region = known.region.take().or(choice.region);
            known.low_priority |= choice.low_priority;
        } else if self.choices.len() < MAX_CHOICES {
            self.by_start.insert(start, self.choices.len());
            self.choices.push(choice);
        } else {
            self.left_out += 1;
        }
    }

    pub(super) fn starts_at(&self, start: usize) -> bool {
        self.by_start.contains_key(&start)
    }

    /// Sets the region for choices without their own; the first one stays.
    pub(super) fn set_region(&mut self, region: &str) {
        self.region.get_or_insert_with(|| region.to_owned());
    }

    pub(super) fn in_comment(&self, at: usize) -> bool {
        let next = self.comments.partition_point(|(start, _)| *start <= at);
        next.checked_sub(1).and_then(|last| self.comments.get(last)).is_some_and(|(_, end)| at < *end)
    }

    pub(super) fn finish(mut self) -> Reading {
        self.choices.sort_by_key(|choice| choice.span.start);
        let mut tracker = LineTracker::new(self.text);
        for choice in &mut self.choices {
            choice.span = tracker.span(choice.span.start, choice.span.end);
            choice.region = choice.region.take().or_else(|| self.region.clone());
        }
        Reading { choices: self.choices, left_out: self.left_out }
    }
}
