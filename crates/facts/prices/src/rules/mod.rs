//! Decides which rows of the list are hourly prices of a size.
//!
//! The list has every meter that ever existed for a size: Windows, dedicated hosts, reservations, past and future prices.
//! The filter of the request excludes most of them; these rules do not rely on it.

use std::collections::BTreeMap;

use cudock_base::{Timestamp, Usd};
use cudock_facts::version::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::page::{PriceListRow, text};

/// The name of the service that sizes belong to.
pub(crate) const VIRTUAL_MACHINES: &str = "Virtual Machines";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SkipReason {
    /// A size that was not requested, mostly one without a GPU.
    OtherSize,
    /// Not a virtual machine, or an unknown meter.
    Other,
    /// A reservation, or a price for development and tests.
    NotConsumption,
    Windows,
    /// A whole host.
    Dedicated,
    /// A role of Cloud Services.
    CloudServices,
    /// The low-priority machines of Batch.
    LowPriority,
    /// A meter of another region.
    NotPrimary,
    /// The price of a larger volume.
    Tier,
    /// Not by the hour.
    Unit,
    Zero,
    Ended,
    NotYet,
}

/// The sizes to look for, by their names in lower case.
#[derive(Debug, Clone)]
pub(crate) struct Sizes {
    by_name: BTreeMap<String, String>,
    /// Whether these are all sizes of the tables, so that unknown ones are reported.
    pub(crate) all: bool,
}

impl Sizes {
    pub(crate) fn new(names: impl IntoIterator<Item = String>, all: bool) -> Self {
        Self { by_name: names.into_iter().map(|name| (name.to_ascii_lowercase(), name)).collect(), all }
    }

    /// The name as the tables write it.
    pub(crate) fn find(&self, name: &str) -> Option<&str> {
        self.by_name.get(&name.to_ascii_lowercase()).map(String::as_str)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.values().map(String::as_str)
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RowVerdict<'a> {
    Price(Price<'a>),
    /// The price of an unknown size that looks like a GPU size.
    Unknown(&'a str),
    Skipped(SkipReason),
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Price<'a> {
    pub(crate) size: &'a str,
    pub(crate) spot: bool,
    pub(crate) usd: Usd,
    /// Whether it had more than six decimals.
    pub(crate) rounded: bool,
    pub(crate) start: Option<Timestamp>,
}

/// Judges one row of a region's list. An error makes the whole response invalid.
pub(crate) fn judge<'a>(
    row: &'a PriceListRow<'_>,
    region: &str,
    sizes: &'a Sizes,
    today: Date,
) -> Result<RowVerdict<'a>, String> {
    is_of_region(row, region)?;
    let name = text(row.arm_sku_name.as_ref()).trim();
    let known = sizes.find(name);
    if known.is_none() && !(sizes.all && looks_like_gpu(name)) {
        return Ok(RowVerdict::Skipped(SkipReason::OtherSize));
    }
    let (spot, start) = match is_spot(row).and_then(|spot| Ok((spot, in_force(row, today)?))) {
        Err(reason) => return Ok(RowVerdict::Skipped(reason)),
        Ok(hourly) => hourly,
    };
    let (usd, rounded) = amount(row, 6)?;
    if usd == Usd::ZERO {
        return Ok(RowVerdict::Skipped(SkipReason::Zero));
    }
    Ok(match known {
        Some(size) => RowVerdict::Price(Price { size, spot, usd, rounded, start }),
        None => RowVerdict::Unknown(name),
    })
}

/// A row of another region or currency means that the service ignored the filter, so the response is invalid.
pub(crate) fn is_of_region(row: &PriceListRow<'_>, region: &str) -> Result<(), String> {
    let other = text(row.arm_region_name.as_ref());
    if !other.eq_ignore_ascii_case(region) {
        let other = if other.is_empty() { "no region" } else { other };
        return Err(format!("rows of {} in the list of {region}", quoted(other)));
    }
    match row.currency_code.as_deref() {
        None | Some("USD") => Ok(()),
        Some(other) => Err(format!("prices are in {}, not in USD", quoted(other))),
    }
}

/// When a row came into force, if it is in force.
pub(crate) fn in_force(row: &PriceListRow<'_>, today: Date) -> Result<Option<Timestamp>, SkipReason> {
    let timestamp = |field: &Option<String>| field.as_deref().and_then(|text| Timestamp::parse(text.trim()));
    if timestamp(&row.effective_end_date).is_some_and(|end| end <= Timestamp::start_of(today)) {
        return Err(SkipReason::Ended);
    }
    let start = timestamp(&row.effective_start_date);
    if start.is_some_and(|start| start.day() > today) {
        return Err(SkipReason::NotYet);
    }
    Ok(start)
}

/// Checks that a row is a pay-as-you-go price of a meter of this region.
pub(crate) fn is_consumption(row: &PriceListRow<'_>) -> Result<(), SkipReason> {
    if text(row.kind.as_ref()) != "Consumption" || !text(row.reservation_term.as_ref()).is_empty() {
        return Err(SkipReason::NotConsumption);
    }
    if row.is_primary_meter_region != Some(true) {
        return Err(SkipReason::NotPrimary);
    }
    Ok(())
}

/// The price of a row, rounded to a number of decimals, and whether rounding changed it.
pub(crate) fn amount(row: &PriceListRow<'_>, decimals: u32) -> Result<(Usd, bool), String> {
    let value = row.retail_price.ok_or_else(|| format!("a row of {} has no retailPrice", named(row)))?.get();
    Usd::parse_rounded(value, decimals)
        .map_err(|error| format!("the retailPrice {} of {} {error}", quoted(value), named(row)))
}

fn named(row: &PriceListRow<'_>) -> String {
    let fields = [&row.arm_sku_name, &row.meter_name, &row.product_name];
    let name = fields.into_iter().map(|field| text(field.as_ref())).find(|name| !name.is_empty());
    name.map_or_else(|| "a row without a name".to_owned(), quoted)
}

/// A text of the service, shortened and without control characters.
pub(crate) fn quoted(value: &str) -> String {
    format!("`{}`", cudock_base::text::truncate(value, 60))
}

/// Whether a row is Spot, or why it is not an hourly price of a Linux machine.
fn is_spot(row: &PriceListRow<'_>) -> Result<bool, SkipReason> {
    if text(row.service_name.as_ref()) != VIRTUAL_MACHINES {
        return Err(SkipReason::Other);
    }
    is_consumption(row)?;
    let product = text(row.product_name.as_ref()).to_ascii_lowercase();
    for (word, reason) in [
        ("windows", SkipReason::Windows),
        ("dedicated", SkipReason::Dedicated),
        ("cloudservices", SkipReason::CloudServices),
        ("cloud services", SkipReason::CloudServices),
    ] {
        if product.contains(word) {
            return Err(reason);
        }
    }
    let names = [&row.meter_name, &row.sku_name].map(|name| text(name.as_ref()).trim().to_ascii_lowercase());
    if names.iter().any(|name| name.contains("low priority")) {
        return Err(SkipReason::LowPriority);
    }
    if text(row.unit_of_measure.as_ref()).trim() != "1 Hour" {
        return Err(SkipReason::Unit);
    }
    if tier(row) != Some(0) {
        return Err(SkipReason::Tier);
    }
    Ok(names.iter().any(|name| name.ends_with(" spot")))
}

/// The tier from which a price holds; none if it is not a whole number.
pub(crate) fn tier(row: &PriceListRow<'_>) -> Option<u64> {
    let Some(units) = row.tier_minimum_units else { return Some(0) };
    let units: f64 = units.get().parse().ok()?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
    (units.fract() == 0.0 && (0.0..1e15).contains(&units)).then_some(units as u64)
}

/// Names of GPU sizes begin with an N.
fn looks_like_gpu(name: &str) -> bool {
    let fits = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    fits && name.len() <= 60 && name.get(..10).is_some_and(|head| head.eq_ignore_ascii_case("Standard_N"))
}

#[cfg(test)]
mod tests;
