//! What a conversion changed.

use std::collections::BTreeMap;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fp16Stats {
    /// Operators that compute in fp16.
    pub half_nodes: usize,
    /// Operators that stay in fp32, by name.
    pub full_nodes: BTreeMap<String, usize>,
    /// Casts that were added.
    pub casts: usize,
    /// Weights beyond the range of fp16, which became its largest number.
    pub clamped: u64,
    /// Weights too close to zero for fp16, which became its smallest number.
    pub raised: u64,
}
