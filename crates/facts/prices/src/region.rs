//! The prices of one region, without duplicates.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use cudock_base::{Timestamp, Usd};
use cudock_facts::version::Date;
use serde::{Deserialize, Serialize};

use crate::meters::MeterPrice;
use crate::rules::{Price, RowVerdict, SkipReason};

/// How many names of unknown sizes are kept.
const MOST_UNKNOWN: usize = 200;

/// The prices of one region, as they were read on a day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegionPrices {
    pub region: String,
    pub day: Date,
    pub sizes: Vec<SizePrice>,
    pub meters: Vec<MeterPrice>,
    pub pages: u32,
    pub rows: u64,
    /// Rows that were skipped, by reason.
    pub left_out: BTreeMap<SkipReason, u64>,
    /// Sizes whose price had more than six decimals.
    pub rounded: BTreeSet<String>,
    /// Sizes with two prices of the same start date, of which the higher was used.
    pub contested: BTreeSet<String>,
    /// Sizes that look like GPU sizes and are not in the tables.
    pub unknown: BTreeSet<String>,
}

/// The prices of a size, in millionths of a dollar an hour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SizePrice {
    /// The size, as the tables write it.
    pub size: String,
    /// Pay as you go.
    pub price: Option<u64>,
    pub spot: Option<u64>,
}

/// Collects the rows of a region.
///
/// The list changes while its pages are read: a row may appear twice, and so may a price and its replacement. The price
/// that started last counts, in any order.
#[derive(Debug, Default)]
pub(crate) struct RegionCollector {
    best: BTreeMap<(String, bool), BestPrice>,
    left_out: BTreeMap<SkipReason, u64>,
    unknown: BTreeSet<String>,
}

#[derive(Debug, Clone, Copy)]
struct BestPrice {
    usd: Usd,
    start: Option<Timestamp>,
    rounded: bool,
    contested: bool,
}

impl RegionCollector {
    pub(crate) fn add(&mut self, verdict: RowVerdict<'_>) {
        match verdict {
            RowVerdict::Price(price) => self.add_price(&price),
            RowVerdict::Unknown(name) => {
                if self.unknown.len() < MOST_UNKNOWN {
                    self.unknown.insert(name.to_owned());
                }
            }
            RowVerdict::Skipped(reason) => *self.left_out.entry(reason).or_default() += 1,
        }
    }

    fn add_price(&mut self, price: &Price<'_>) {
        let new = BestPrice { usd: price.usd, start: price.start, rounded: price.rounded, contested: false };
        self.best
            .entry((price.size.to_owned(), price.spot))
            .and_modify(|best| match new.start.cmp(&best.start) {
                Ordering::Greater => *best = new,
                Ordering::Less => {}
                Ordering::Equal => {
                    let contested = best.contested || new.usd != best.usd;
                    *best = BestPrice { contested, ..if new.usd > best.usd { new } else { *best } };
                }
            })
            .or_insert(new);
    }

    pub(crate) fn finish(self, region: &str, day: Date) -> RegionPrices {
        let named = |is: fn(&BestPrice) -> bool| {
            let found = self.best.iter().filter(|(_, best)| is(best));
            found.map(|((size, _), _)| size.clone()).collect::<BTreeSet<String>>()
        };
        let (rounded, contested) = (named(|best| best.rounded), named(|best| best.contested));
        let mut sizes: BTreeMap<String, SizePrice> = BTreeMap::new();
        for ((size, spot), best) in self.best {
            let row =
                sizes.entry(size.clone()).or_insert_with(|| SizePrice { size, price: None, spot: None });
            *(if spot { &mut row.spot } else { &mut row.price }) =
                u64::try_from(best.usd.nanos() / 1000).ok();
        }
        RegionPrices {
            region: region.to_owned(),
            day,
            sizes: sizes.into_values().collect(),
            meters: Vec::new(),
            pages: 0,
            rows: 0,
            left_out: self.left_out,
            rounded,
            contested,
            unknown: self.unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn collector(prices: &[(u64, &str)]) -> RegionPrices {
        let mut collector = RegionCollector::default();
        for (units, start) in prices {
            collector.add(RowVerdict::Price(Price {
                size: "A",
                spot: false,
                usd: Usd::from_micros(*units),
                rounded: *units == 7,
                start: Timestamp::parse(start),
            }));
        }
        collector.finish("westeurope", "2026-11-15".parse().unwrap())
    }

    #[test]
    fn of_two_prices_the_one_that_began_last_counts() {
        let orders = [[(5, "2021-04-01"), (4, "2025-01-01")], [(4, "2025-01-01"), (5, "2021-04-01")]];
        for order in orders {
            let region = collector(&order);
            assert_eq!(region.sizes, [SizePrice { size: "A".into(), price: Some(4), spot: None }]);
            assert!(region.contested.is_empty());
        }
        // A price without a date is older than any other.
        assert_eq!(collector(&[(4, "2025-01-01"), (9, "")]).sizes[0].price, Some(4));
    }

    #[test]
    fn a_row_that_comes_twice_counts_once() {
        let region = collector(&[(5, "2021-04-01"), (5, "2021-04-01")]);
        assert_eq!((region.sizes[0].price, region.contested.len()), (Some(5), 0));
    }

    #[test]
    fn of_two_prices_with_the_same_start_the_higher_counts_and_is_reported() {
        for order in [[(5, "2025-01-01"), (6, "2025-01-01")], [(6, "2025-01-01"), (5, "2025-01-01")]] {
            let region = collector(&order);
            assert_eq!(region.sizes[0].price, Some(6));
            assert_eq!(region.contested.iter().collect::<Vec<_>>(), ["A"]);
        }
        // A later price settles it.
        let settled = collector(&[(5, "2025-01-01"), (6, "2025-01-01"), (1, "2026-01-01")]);
        assert_eq!((settled.sizes[0].price, settled.contested.len()), (Some(1), 0));
    }

    #[test]
    fn a_rounded_price_is_reported() {
        assert!(collector(&[(7, "2025-01-01")]).rounded.contains("A"));
        assert!(collector(&[(7, "2025-01-01"), (8, "2026-01-01")]).rounded.is_empty());
    }

    proptest! {
        #[test]
        fn the_order_of_rows_does_not_matter(
            rows in proptest::collection::vec((1_u64..9, 2020_i32..2026), 1..8),
            turn in 0_usize..8,
        ) {
            let texts: Vec<(u64, String)> =
                rows.iter().map(|(units, year)| (*units, format!("{year}-01-01"))).collect();
            let mut order: Vec<(u64, &str)> = texts.iter().map(|(units, day)| (*units, day.as_str())).collect();
            let one = collector(&order);
            let turn = turn % order.len();
            order.rotate_left(turn);
            let two = collector(&order);
            order.reverse();
            let three = collector(&order);
            prop_assert_eq!(&one, &two);
            prop_assert_eq!(&one, &three);
        }
    }
}
