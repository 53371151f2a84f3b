//! Refreshes the prices of Azure's GPU sizes from the public price list.
//!
//! The embedded prices are as old as the program. Microsoft publishes the current list without authentication, but it
//! contains every meter that ever existed: past and future prices, Windows, reservations, on pages that shift while they
//! are read. [`refresh`] reads it region by region, keeps the hourly prices of sizes (see `rules.rs`), and writes an overlay
//! table in the format of the embedded one.
//!
//! Prices are parsed as decimal text, never as floats. A run may fail at any point: regions that were read are kept for
//! the next run, and the existing table is replaced only by a complete one that reads back correctly.

mod api;
pub mod env;
mod error;
mod fetch;
mod files;
mod journal;
mod meters;
mod refresh;
mod region;
mod report;
mod request;
mod rules;
mod summary;
mod table;

pub use api::endpoint::{Endpoint, EndpointError};
pub use error::PricesError;
pub use fetch::Connection;
pub use journal::{Unfinished, unfinished};
pub use meters::MeterPrice;
pub use meters::file::MeterChanges;
pub use refresh::{Listener, refresh, table_in};
pub use region::{RegionPrices, SizePrice};
pub use report::{RefreshReport, RegionSummary};
pub use request::RefreshRequest;
pub use rules::SkipReason;
pub use summary::{PriceSource, PriceSummary};
pub use table::Changes;

use cudock_facts::version::Date;

/// Reads one page of the list as [`refresh`] does: the prices of a region, and whether another page follows. For tests and
/// fuzzing of the reader.
pub fn read_page(
    bytes: &[u8],
    region: &str,
    sizes: &[String],
    today: Date,
) -> Result<(RegionPrices, bool), String> {
    let page = api::page::Page::parse(bytes).map_err(|error| error.to_string())?;
    let sizes = rules::Sizes::new(sizes.iter().cloned(), true);
    let mut collector = region::RegionCollector::default();
    let mut meters = meters::MeterCollector::default();
    for row in page.rows() {
        collector.add(rules::judge(row, region, &sizes, today)?);
        meters.add(row, region, today)?;
    }
    let mut read = collector.finish(region, today);
    (read.meters, _) = meters.finish();
    let has_next = match page.next {
        Some(link) => Endpoint::default().next_page(&link).map(|_| true)?,
        None => false,
    };
    Ok((read, has_next))
}
