//! Prices of Azure's GPU sizes, renewed from the public price list.
//!
//! A plan is as good as its prices, and those in the program are as old as the program. Microsoft publishes the list
//! without a sign-in, as rows of everything that was ever metered: pages that move while they are read, prices of last
//! year and of next month, Windows and reservations under one name. [`refresh`] walks it region by region, keeps what
//! is the price of a size by the hour (the rules are in one file), and writes a table of the same form as the embedded
//! one, for `cudock_facts` to lay over it.
//!
//! Money is read digit by digit and never as a float. A run may be killed, cut off or turned away at any point:
//! regions that were read are kept for the next run, and the table that was there stays until a whole new one has been
//! read back.

mod decimal;
mod endpoint;
pub mod env;
mod error;
mod fetch;
mod files;
mod journal;
mod meters;
mod meters_file;
mod page;
mod query;
mod refresh;
mod region;
mod report;
mod rules;
mod summary;
mod table;

pub use endpoint::{Endpoint, EndpointError};
pub use error::PricesError;
pub use fetch::Connection;
pub use journal::{Unfinished, unfinished};
pub use meters::MeterPrice;
pub use meters_file::MetersDone;
pub use refresh::{Listener, Request, refresh, table_in};
pub use region::{RegionPrices, SizePrice};
pub use report::{RegionLine, Report};
pub use rules::LeftOut;
pub use summary::{PriceSource, PriceSummary};
pub use table::Changes;

use cudock_facts::version::Date;

/// Reads one page of the list for a region and these sizes, as [`refresh`] does: what it says of them, and whether the
/// list goes on. For tests of the reader by itself.
pub fn read_page(
    bytes: &[u8],
    region: &str,
    sizes: &[String],
    today: Date,
) -> Result<(RegionPrices, bool), String> {
    let page = page::Page::parse(bytes).map_err(|error| error.to_string())?;
    let sizes = rules::Sizes::new(sizes.iter().cloned(), true);
    let mut gathered = region::Gathered::default();
    let mut meters = meters::GatheredMeters::default();
    for row in page.rows() {
        gathered.add(rules::judge(row, region, &sizes, today)?);
        meters.add(row, region, today)?;
    }
    let mut read = gathered.finish(region, today);
    (read.meters, _) = meters.finish();
    let goes_on = match page.next {
        Some(link) => Endpoint::default().next_page(&link).map(|_| true)?,
        None => false,
    };
    Ok((read, goes_on))
}
