//! What several sheets show of a size: its GPUs and its prices.

use cudock_base::Usd;

use crate::Facts;
use crate::tables::{PriceRow, Size};

pub(super) const TABLES: [&str; 3] = ["azure_sizes", "azure_prices", "gpus"];

/// Prices of a GPU are shown to a hundredth of a cent.
const STEP: u128 = 100_000;

/// The number of GPUs, or the fraction of one.
pub(super) fn count(size: &Size) -> String {
    match size.gpu_count {
        Some(count) if count < 1.0 => format!("1/{:.0}", 1.0 / count),
        Some(count) => count.to_string(),
        None => "?".to_owned(),
    }
}

pub(super) fn gpu_text(size: &Size) -> String {
    size.gpu.as_ref().map_or_else(|| "-".to_owned(), |gpu| format!("{} x {gpu}", count(size)))
}

/// The prices of a size, the cheapest first.
pub(super) fn prices_of<'a>(facts: &'a Facts, size: &Size, region: Option<&str>) -> Vec<PriceRow<'a>> {
    let rows = facts.prices().of_size(&size.name);
    let mut rows: Vec<PriceRow<'_>> =
        rows.filter(|row| region.is_none_or(|region| row.region == region)).collect();
    rows.sort_by_key(|row| (row.price.is_none(), row.price, row.region));
    rows
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
