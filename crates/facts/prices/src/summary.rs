//! Summarizes a price table: how many prices, how old, and from where.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use cudock_facts::STALE_AFTER_DAYS;
use cudock_facts::tables::Prices;
use cudock_facts::version::Date;
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Debug, Serialize, JsonSchema)]
pub struct PriceSummary {
    /// Its file; none if it is embedded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// The day of its newest price.
    pub as_of: Date,
    /// How many days ago that was.
    pub age_days: i32,
    pub stale: bool,
    pub rows: usize,
    pub sizes: usize,
    pub regions: BTreeSet<String>,
    pub sources: Vec<PriceSource>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct PriceSource {
    pub name: String,
    pub address: String,
    /// How many prices; pay as you go and Spot are counted separately.
    pub prices: usize,
    pub oldest: Date,
    pub newest: Date,
}

impl PriceSummary {
    pub fn of(prices: &Prices, path: Option<PathBuf>, day: Date) -> Self {
        let mut sources: BTreeMap<&str, (usize, Date, Date)> = BTreeMap::new();
        let mut sizes = BTreeSet::new();
        let mut regions = BTreeSet::new();
        let mut rows = 0;
        for row in prices.rows() {
            rows += 1;
            sizes.insert(row.size);
            regions.insert(row.region.to_owned());
            for (name, date) in [(row.price_source, row.price_date), (row.spot_source, row.spot_date)] {
                let (Some(name), Some(date)) = (name, date) else { continue };
                let (count, oldest, newest) = sources.entry(name).or_insert((0, date, date));
                (*count, *oldest, *newest) = (*count + 1, date.min(*oldest), date.max(*newest));
            }
        }
        let address = |name: &str| {
            let known = prices.sources.iter().find(|source| source.name == name);
            known.map(|source| source.address.clone()).unwrap_or_default()
        };
        let sources = sources.into_iter().map(|(name, (prices, oldest, newest))| PriceSource {
            name: name.to_owned(),
            address: address(name),
            prices,
            oldest,
            newest,
        });
        let as_of = prices.newest();
        let age_days = day.days_since(as_of);
        Self {
            path,
            as_of,
            age_days,
            stale: age_days > STALE_AFTER_DAYS,
            rows,
            sizes: sizes.len(),
            regions,
            sources: sources.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use cudock_facts::Facts;

    use super::*;

    #[test]
    fn the_embedded_prices_are_summarized_with_their_sources() {
        let facts = Facts::embedded();
        let newest = facts.prices().newest();
        let summary = PriceSummary::of(facts.prices(), None, newest);
        assert_eq!((summary.age_days, summary.stale), (0, false));
        assert_eq!(summary.rows, facts.prices().rows().count());
        assert!(summary.sources.iter().any(|source| source.newest == newest && source.prices > 0));
        assert!(summary.sources.iter().all(|source| source.oldest <= source.newest));
    }
}
