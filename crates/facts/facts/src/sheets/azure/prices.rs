//! The price of a size in every region.

use cudock_base::{UsageError, Usd};

use super::size::{TABLES, prices_of};
use crate::Facts;
use crate::sheets::result::{LookupResult, or_dash, value};
use crate::sheets::rows::SizePriceRow;
use crate::tables::{PriceRow, Size};

/// Prices of a GPU are shown to a hundredth of a cent.
const STEP: u128 = 100_000;

pub(super) fn result(facts: &Facts, size: &Size, region: Option<&str>) -> Result<LookupResult, UsageError> {
    let rows = prices_of(facts, size, region);
    if rows.is_empty() {
        let suffix = region.map_or_else(String::new, |region| format!(" in {region}"));
        return Err(UsageError::new(format!("no known price for {}{suffix}", size.name)));
    }
    let columns = ["region", "USD/h", "USD/GPU-h", "as of", "Spot", "saves", "as of"];
    let per_gpu = |row: &PriceRow<'_>| row.price.and_then(|usd| per_gpu(size, usd));
    let json = |row: &PriceRow<'_>| {
        let (usd_per_gpu_hour, spot_saves_percent) = (per_gpu(row), discount(row));
        value(&SizePriceRow { price: row, usd_per_gpu_hour, spot_saves_percent })
    };
    Ok(LookupResult::list_as(&TABLES, &rows, &columns, json, |row| {
        vec![
            row.region.to_owned(),
            or_dash(row.price),
            or_dash(per_gpu(row)),
            or_dash(row.price_date),
            or_dash(row.spot),
            or_dash(discount(row).map(|percent| format!("{percent} %"))),
            or_dash(row.spot_date),
        ]
    }))
}

/// The price of a whole GPU per hour; a fraction is scaled up to a whole one.
pub(super) fn per_gpu(size: &Size, price: Usd) -> Option<Usd> {
    let count = size.gpu_count.filter(|count| *count > 0.0)?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "GPUs of one machine")]
    let (times, parts) =
        if count < 1.0 { ((1.0 / count).round() as u128, 1) } else { (1, count.round() as u128) };
    let nanos = price.nanos().checked_mul(times)?.checked_div(parts)?;
    Some(Usd::from_nanos((nanos + STEP / 2) / STEP * STEP))
}

/// How much Spot saves in whole percent; negative if it costs more.
fn discount(row: &PriceRow<'_>) -> Option<i64> {
    let (price, spot) = (i128::try_from(row.price?.nanos()).ok()?, i128::try_from(row.spot?.nanos()).ok()?);
    i64::try_from((price - spot).checked_mul(100)?.checked_div(price)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_costs_as_much_as_its_whole_and_eight_gpus_an_eighth() {
        let facts = Facts::embedded();
        let of = |name: &str, micros: u64| {
            let size = facts.sizes().find(name).one().unwrap();
            per_gpu(size, Usd::from_micros(micros)).unwrap().to_string()
        };
        // A sixth of an A10 at 0.454, and eight A100s at 27.197.
        assert_eq!(of("Standard_NV6ads_A10_v5", 454_000), "2.724");
        assert_eq!(of("Standard_ND96asr_v4", 27_197_000), "3.3996");
    }
}
