//! The price of a size in every region.

use cudock_base::UsageError;

use super::fields::{TABLES, per_gpu, prices_of};
use crate::Facts;
use crate::sheets::result::{LookupResult, or_dash, value};
use crate::sheets::rows::SizePriceRow;
use crate::tables::{PriceRow, Size};

pub(super) fn result(facts: &Facts, size: &Size, region: Option<&str>) -> Result<LookupResult, UsageError> {
    let rows = prices_of(facts, size, region);
    if rows.is_empty() {
        let suffix = region.map_or_else(String::new, |region| format!(" in {region}"));
        return Err(UsageError::new(format!("no known price for {}{suffix}", size.name)));
    }
    let columns = ["region", "USD/h", "USD/GPU-h", "as of", "Spot", "saves", "as of"];
    let gpu_price = |row: &PriceRow<'_>| row.price.and_then(|usd| per_gpu(size, usd));
    let json = |row: &PriceRow<'_>| {
        let (usd_per_gpu_hour, spot_saves_percent) = (gpu_price(row), discount(row));
        value(&SizePriceRow { price: row, usd_per_gpu_hour, spot_saves_percent })
    };
    Ok(LookupResult::list_as(&TABLES, &rows, &columns, json, |row| {
        vec![
            row.region.to_owned(),
            or_dash(row.price),
            or_dash(gpu_price(row)),
            or_dash(row.price_date),
            or_dash(row.spot),
            or_dash(discount(row).map(|percent| format!("{percent} %"))),
            or_dash(row.spot_date),
        ]
    }))
}

/// How much Spot saves in whole percent; negative if it costs more.
fn discount(row: &PriceRow<'_>) -> Option<i64> {
    let (price, spot) = (i128::try_from(row.price?.nanos()).ok()?, i128::try_from(row.spot?.nanos()).ok()?);
    i64::try_from((price - spot).checked_mul(100)?.checked_div(price)?).ok()
}
