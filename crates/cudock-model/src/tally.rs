//! Tensors, counted.

use std::collections::BTreeMap;

use crate::format::NumberFormat;

/// What the tensors of a model come to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many tensors there are.
    pub tensors: u64,
    /// Tensors by the format of their numbers.
    pub by_format: BTreeMap<NumberFormat, Share>,
    /// The largest.
    pub largest: Option<Tensor>,
}

/// The tensors of one format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share {
    /// Their numbers.
    pub elements: u64,
    /// What those take.
    pub bytes: u64,
}

/// A tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// Its name; the first part of it if it is long.
    pub name: String,
    /// How its numbers are kept.
    pub format: NumberFormat,
    /// How many there are.
    pub elements: u64,
    /// What they take.
    pub bytes: u64,
}

/// The longest name that is kept.
const LONGEST_NAME: usize = 200;

impl Tally {
    /// Counts a tensor.
    pub(crate) fn add(&mut self, name: &str, format: NumberFormat, elements: u64, bytes: u64) {
        self.tensors += 1;
        let share = self.by_format.entry(format).or_default();
        share.elements = share.elements.saturating_add(elements);
        share.bytes = share.bytes.saturating_add(bytes);
        if self.largest.as_ref().is_none_or(|largest| bytes > largest.bytes) {
            let name = name.chars().take(LONGEST_NAME).collect();
            self.largest = Some(Tensor { name, format, elements, bytes });
        }
    }

    /// Counts all of another.
    pub(crate) fn merge(&mut self, other: Tally) {
        self.tensors += other.tensors;
        for (format, share) in other.by_format {
            let own = self.by_format.entry(format).or_default();
            own.elements = own.elements.saturating_add(share.elements);
            own.bytes = own.bytes.saturating_add(share.bytes);
        }
        let larger = |one: Tensor, other: Tensor| if other.bytes > one.bytes { other } else { one };
        self.largest = match (self.largest.take(), other.largest) {
            (Some(one), Some(other)) => Some(larger(one, other)),
            (one, other) => one.or(other),
        };
    }

    /// What was learnt: the numbers of all tensors but those that hold shapes, places, flags or words.
    pub fn parameters(&self) -> u64 {
        self.sum(|format, share| if format.is_weight() { share.elements } else { 0 })
    }

    /// Bytes of all tensors.
    pub fn bytes(&self) -> u64 {
        self.sum(|_, share| share.bytes)
    }

    /// The format most bytes are in.
    pub fn main_format(&self) -> Option<NumberFormat> {
        self.by_format.iter().max_by_key(|(_, share)| share.bytes).map(|(format, _)| *format)
    }

    fn sum(&self, part: impl Fn(NumberFormat, &Share) -> u64) -> u64 {
        self.by_format.iter().fold(0_u64, |sum, (format, share)| sum.saturating_add(part(*format, share)))
    }
}
