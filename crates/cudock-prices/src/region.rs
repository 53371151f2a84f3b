//! What the list says of one region, with doubles settled.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use cudock_base::Timestamp;
use cudock_facts::version::Date;
use serde::{Deserialize, Serialize};

use crate::meters::MeterPrice;
use crate::rules::{LeftOut, Price, Verdict};

/// How many names of unknown sizes are kept.
const MOST_UNKNOWN: usize = 200;

/// The prices of one region, as they were read on a day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegionPrices {
    /// The region.
    pub region: String,
    /// The day.
    pub day: Date,
    /// The sizes that have a price there, by name.
    pub sizes: Vec<SizePrice>,
    /// Meters of other services.
    pub meters: Vec<MeterPrice>,
    /// How many pages the answers had.
    pub pages: u32,
    /// How many rows they had.
    pub rows: u64,
    /// Rows that are no price of a size, by the reason.
    pub left_out: BTreeMap<LeftOut, u64>,
    /// Sizes whose price had more than six decimals.
    pub rounded: BTreeSet<String>,
    /// Sizes with two prices that began at once: the dearer one was taken.
    pub contested: BTreeSet<String>,
    /// Sizes with a price that look like ones with a GPU and are in no table.
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
    /// Spot.
    pub spot: Option<u64>,
}

/// Gathers the rows of a region.
///
/// Pages are cut out of a list that moves: a row may come twice, and so may a price and the one that took its place.
/// The one that began last counts, in whatever order they come.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    best: BTreeMap<(String, bool), Best>,
    left_out: BTreeMap<LeftOut, u64>,
    unknown: BTreeSet<String>,
}

#[derive(Debug, Clone, Copy)]
struct Best {
    micros: u64,
    start: Option<Timestamp>,
    rounded: bool,
    contested: bool,
}

impl Gathered {
    pub(crate) fn add(&mut self, verdict: Verdict<'_>) {
        match verdict {
            Verdict::Price(price) => self.add_price(&price),
            Verdict::Unknown(name) => {
                if self.unknown.len() < MOST_UNKNOWN {
                    self.unknown.insert(name.to_owned());
                }
            }
            Verdict::LeftOut(reason) => *self.left_out.entry(reason).or_default() += 1,
        }
    }

    fn add_price(&mut self, price: &Price<'_>) {
        let new = Best {
            micros: price.usd.units,
            start: price.start,
            rounded: price.usd.rounded,
            contested: false,
        };
        self.best
            .entry((price.size.to_owned(), price.spot))
            .and_modify(|best| match new.start.cmp(&best.start) {
                Ordering::Greater => *best = new,
                Ordering::Less => {}
                Ordering::Equal => {
                    let contested = best.contested || new.micros != best.micros;
                    *best = Best { contested, ..if new.micros > best.micros { new } else { *best } };
                }
            })
            .or_insert(new);
    }

    pub(crate) fn finish(self, region: &str, day: Date) -> RegionPrices {
        let named = |is: fn(&Best) -> bool| {
            let found = self.best.iter().filter(|(_, best)| is(best));
            found.map(|((size, _), _)| size.clone()).collect::<BTreeSet<String>>()
        };
        let (rounded, contested) = (named(|best| best.rounded), named(|best| best.contested));
        let mut sizes: BTreeMap<String, SizePrice> = BTreeMap::new();
        for ((size, spot), best) in self.best {
            let row =
                sizes.entry(size.clone()).or_insert_with(|| SizePrice { size, price: None, spot: None });
            *(if spot { &mut row.spot } else { &mut row.price }) = Some(best.micros);
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
    use crate::decimal::Exact;

    fn gathered(prices: &[(u64, &str)]) -> RegionPrices {
        let mut gathered = Gathered::default();
        for (units, start) in prices {
            let usd = Exact { units: *units, rounded: *units == 7 };
            gathered.add(Verdict::Price(Price {
                size: "A",
                spot: false,
                usd,
                start: Timestamp::parse(start),
            }));
        }
        gathered.finish("westeurope", "2026-11-15".parse().unwrap())
    }

    #[test]
    fn of_two_prices_the_one_that_began_last_counts() {
        let orders = [[(5, "2021-04-01"), (4, "2025-01-01")], [(4, "2025-01-01"), (5, "2021-04-01")]];
        for order in orders {
            let region = gathered(&order);
            assert_eq!(region.sizes, [SizePrice { size: "A".into(), price: Some(4), spot: None }]);
            assert!(region.contested.is_empty());
        }
        // One without a date is older than any.
        assert_eq!(gathered(&[(4, "2025-01-01"), (9, "")]).sizes[0].price, Some(4));
    }

    #[test]
    fn a_row_that_comes_twice_counts_once() {
        let region = gathered(&[(5, "2021-04-01"), (5, "2021-04-01")]);
        assert_eq!((region.sizes[0].price, region.contested.len()), (Some(5), 0));
    }

    #[test]
    fn of_two_prices_that_began_at_once_the_dearer_counts_and_that_is_told() {
        for order in [[(5, "2025-01-01"), (6, "2025-01-01")], [(6, "2025-01-01"), (5, "2025-01-01")]] {
            let region = gathered(&order);
            assert_eq!(region.sizes[0].price, Some(6));
            assert_eq!(region.contested.iter().collect::<Vec<_>>(), ["A"]);
        }
        // A later price settles it.
        let settled = gathered(&[(5, "2025-01-01"), (6, "2025-01-01"), (1, "2026-01-01")]);
        assert_eq!((settled.sizes[0].price, settled.contested.len()), (Some(1), 0));
    }

    #[test]
    fn a_price_that_was_rounded_is_told() {
        assert!(gathered(&[(7, "2025-01-01")]).rounded.contains("A"));
        assert!(gathered(&[(7, "2025-01-01"), (8, "2026-01-01")]).rounded.is_empty());
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
            let one = gathered(&order);
            let turn = turn % order.len();
            order.rotate_left(turn);
            let two = gathered(&order);
            order.reverse();
            let three = gathered(&order);
            prop_assert_eq!(&one, &two);
            prop_assert_eq!(&one, &three);
        }
    }
}
