//! The cost of one offer at several scales.

use cudock_base::Usd;

use crate::catalog::offer::Offer;
use crate::curve::PerMille;

/// An offer and its cost at each scale, as far as it can do the work.
#[derive(Debug)]
pub struct CostLine {
    pub name: String,
    pub offer: Offer,
    /// Its cost by scale, in rising order.
    pub points: Vec<(PerMille, Usd)>,
}

impl CostLine {
    pub(crate) fn cost_at(&self, at: PerMille) -> Option<Usd> {
        let index = self.points.binary_search_by_key(&at, |(at, _)| *at).ok()?;
        self.points.get(index).map(|(_, cost)| *cost)
    }
}
