//! Statistics of tensors.

use std::collections::BTreeMap;

use crate::format::NumberFormat;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TensorStats {
    pub tensors: u64,
    /// Totals by number format.
    pub by_format: BTreeMap<NumberFormat, FormatStats>,
    pub largest: Option<TensorInfo>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FormatStats {
    pub elements: u64,
    pub bytes: u64,
}

impl FormatStats {
    fn add(&mut self, elements: u64, bytes: u64) {
        self.elements = self.elements.saturating_add(elements);
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorInfo {
    /// The name, shortened if necessary.
    pub name: String,
    pub format: NumberFormat,
    pub elements: u64,
    pub bytes: u64,
}

/// The longest name to keep.
const MAX_NAME: usize = 200;

impl TensorStats {
    pub(crate) fn add(&mut self, name: &str, format: NumberFormat, elements: u64, bytes: u64) {
        self.tensors += 1;
        self.by_format.entry(format).or_default().add(elements, bytes);
        if self.largest.as_ref().is_none_or(|largest| bytes > largest.bytes) {
            let name = name.chars().take(MAX_NAME).collect();
            self.largest = Some(TensorInfo { name, format, elements, bytes });
        }
    }

    pub(crate) fn merge(&mut self, other: TensorStats) {
        self.tensors += other.tensors;
        for (format, share) in other.by_format {
            self.by_format.entry(format).or_default().add(share.elements, share.bytes);
        }
        // Of equal ones the last is taken, which is this one's.
        self.largest = other.largest.into_iter().chain(self.largest.take()).max_by_key(|tensor| tensor.bytes);
    }

    /// The number of parameters: the elements of all tensors, except shapes, indices, flags and strings.
    pub fn parameters(&self) -> u64 {
        self.sum(|format, share| if format.is_weight() { share.elements } else { 0 })
    }

    pub fn bytes(&self) -> u64 {
        self.sum(|_, share| share.bytes)
    }

    pub fn main_format(&self) -> Option<NumberFormat> {
        self.by_format.iter().max_by_key(|(_, share)| share.bytes).map(|(format, _)| *format)
    }

    fn sum(&self, part: impl Fn(NumberFormat, &FormatStats) -> u64) -> u64 {
        self.by_format.iter().fold(0_u64, |sum, (format, share)| sum.saturating_add(part(*format, share)))
    }
}
