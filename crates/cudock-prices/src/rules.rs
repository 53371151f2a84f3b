//! Which rows of the list are the price of a size by the hour.
//!
//! The list has everything that was ever metered under one name: Windows, dedicated hosts, reservations, prices of
//! last year and of next month. The filter that is sent leaves most of it out; these rules leave out the rest, and do
//! not rely on the filter.

use std::collections::BTreeMap;

use cudock_base::Timestamp;
use cudock_facts::version::Date;
use serde::{Deserialize, Serialize};

use crate::decimal::{Exact, exact};
use crate::page::{Row, text};

/// The service's name for what sizes are sold as.
pub(crate) const VIRTUAL_MACHINES: &str = "Virtual Machines";

/// The longest price that the table can hold.
const MOST_MICROS: u64 = 999_999_999_999_999;

/// Why a row is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeftOut {
    /// A size that was not asked for, mostly one without a GPU.
    OtherSize,
    /// Something else than a virtual machine, or a meter that the tables do not have.
    Other,
    /// A reservation, or a price for development and tests.
    NotConsumption,
    /// With Windows.
    Windows,
    /// A whole host.
    Dedicated,
    /// A role of Cloud Services.
    CloudServices,
    /// The kind of Spot that Batch had.
    LowPriority,
    /// A meter that stands for another region's.
    NotPrimary,
    /// The price of a larger volume.
    Tier,
    /// Not by the hour.
    Unit,
    /// Zero, which is no price.
    Zero,
    /// A price that has ended.
    Ended,
    /// A price that has not begun.
    NotYet,
}

/// The sizes to look for, by their names in lower case.
#[derive(Debug, Clone)]
pub(crate) struct Sizes {
    by_name: BTreeMap<String, String>,
    /// Whether they are all that the tables know: then one that they do not know is told.
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

/// What a row comes to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict<'a> {
    /// The price of a size.
    Price(Price<'a>),
    /// The price of a size that looks like one with a GPU and is in no table.
    Unknown(&'a str),
    /// Nothing.
    LeftOut(LeftOut),
}

/// A price of a size.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Price<'a> {
    pub(crate) size: &'a str,
    pub(crate) spot: bool,
    /// In millionths of a dollar.
    pub(crate) usd: Exact,
    pub(crate) start: Option<Timestamp>,
}

/// Judges one row of a region's list. An error is one of the whole answer.
pub(crate) fn judge<'a>(
    row: &'a Row<'_>,
    region: &str,
    sizes: &'a Sizes,
    today: Date,
) -> Result<Verdict<'a>, String> {
    is_of_region(row, region)?;
    let name = text(row.arm_sku_name.as_ref()).trim();
    let known = sizes.find(name);
    if known.is_none() && !(sizes.all && looks_like_gpu(name)) {
        return Ok(Verdict::LeftOut(LeftOut::OtherSize));
    }
    let spot = match not_linux_by_the_hour(row) {
        Err(reason) => return Ok(Verdict::LeftOut(reason)),
        Ok(spot) => spot,
    };
    let start = match in_force(row, today) {
        Err(reason) => return Ok(Verdict::LeftOut(reason)),
        Ok(start) => start,
    };
    let usd = amount(row, 6)?;
    if usd.units == 0 {
        return Ok(Verdict::LeftOut(LeftOut::Zero));
    }
    if usd.units > MOST_MICROS {
        return Err(format!("{} is larger than any price", raw(row)));
    }
    Ok(match known {
        Some(size) => Verdict::Price(Price { size, spot, usd, start }),
        None => Verdict::Unknown(name),
    })
}

/// A row of another region or currency means that the question was not understood; nothing of the answer counts then.
pub(crate) fn is_of_region(row: &Row<'_>, region: &str) -> Result<(), String> {
    let found = text(row.arm_region_name.as_ref());
    if !found.eq_ignore_ascii_case(region) {
        let found = if found.is_empty() { "no region" } else { found };
        return Err(format!("rows of {} in the list of {region}", quoted(found)));
    }
    match row.currency_code.as_deref() {
        None | Some("USD") => Ok(()),
        Some(other) => Err(format!("prices are in {}, not in USD", quoted(other))),
    }
}

/// When a row came into force, if it is in force.
pub(crate) fn in_force(row: &Row<'_>, today: Date) -> Result<Option<Timestamp>, LeftOut> {
    let timestamp = |field: &Option<String>| field.as_deref().and_then(|text| Timestamp::parse(text.trim()));
    if timestamp(&row.effective_end_date).is_some_and(|end| end <= Timestamp::start_of(today)) {
        return Err(LeftOut::Ended);
    }
    let start = timestamp(&row.effective_start_date);
    if start.is_some_and(|start| start.day() > today) {
        return Err(LeftOut::NotYet);
    }
    Ok(start)
}

/// Whether it is a price that is paid for use, and of this region's own meter.
pub(crate) fn is_consumption(row: &Row<'_>) -> Result<(), LeftOut> {
    if text(row.kind.as_ref()) != "Consumption" || !text(row.reservation_term.as_ref()).is_empty() {
        return Err(LeftOut::NotConsumption);
    }
    if row.is_primary_meter_region != Some(true) {
        return Err(LeftOut::NotPrimary);
    }
    Ok(())
}

/// The row's price in units of `10^-decimals` dollars.
pub(crate) fn amount(row: &Row<'_>, decimals: u8) -> Result<Exact, String> {
    let value = row.retail_price.ok_or_else(|| format!("a row of {} has no retailPrice", named(row)))?;
    exact(value, decimals).map_err(|wrong| format!("{} {}", raw(row), wrong.words()))
}

/// The row's price as it is written, with what it is of.
fn raw(row: &Row<'_>) -> String {
    format!("the retailPrice {} of {}", quoted(row.retail_price.map_or("", |value| value.get())), named(row))
}

fn named(row: &Row<'_>) -> String {
    let fields = [&row.arm_sku_name, &row.meter_name, &row.product_name];
    let name = fields.into_iter().map(|field| text(field.as_ref())).find(|name| !name.is_empty());
    name.map_or_else(|| "something without a name".to_owned(), quoted)
}

/// A text of the service, safe to show.
pub(crate) fn quoted(value: &str) -> String {
    format!("`{}`", cudock_base::text::truncate(value, 60))
}

/// Whether it is Spot; or why it is not the price of a Linux machine by the hour.
fn not_linux_by_the_hour(row: &Row<'_>) -> Result<bool, LeftOut> {
    if text(row.service_name.as_ref()) != VIRTUAL_MACHINES {
        return Err(LeftOut::Other);
    }
    is_consumption(row)?;
    let product = text(row.product_name.as_ref()).to_ascii_lowercase();
    for (word, reason) in [
        ("windows", LeftOut::Windows),
        ("dedicated", LeftOut::Dedicated),
        ("cloudservices", LeftOut::CloudServices),
        ("cloud services", LeftOut::CloudServices),
    ] {
        if product.contains(word) {
            return Err(reason);
        }
    }
    let names = [&row.meter_name, &row.sku_name].map(|name| text(name.as_ref()).trim().to_ascii_lowercase());
    if names.iter().any(|name| name.contains("low priority")) {
        return Err(LeftOut::LowPriority);
    }
    if text(row.unit_of_measure.as_ref()).trim() != "1 Hour" {
        return Err(LeftOut::Unit);
    }
    if row
        .tier_minimum_units
        .is_some_and(|units| !exact(units, 0).is_ok_and(|units| units.units == 0 && !units.rounded))
    {
        return Err(LeftOut::Tier);
    }
    Ok(names.iter().any(|name| name.ends_with(" spot")))
}

/// Azure's families with accelerators begin with an N.
fn looks_like_gpu(name: &str) -> bool {
    let fits = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    fits && name.len() <= 60 && name.get(..10).is_some_and(|head| head.eq_ignore_ascii_case("Standard_N"))
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
