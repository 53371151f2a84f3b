//! Prices where they are asked for.

use cudock_base::{Usd, suggest};
use cudock_facts::Facts;
use cudock_facts::tables::{MeterKind, PriceRow, Profile};
use cudock_facts::version::Date;
use serde::Serialize;

/// Where prices are asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'f> {
    /// The region as the tables spell it; none if the text names none, or one of which nothing is known.
    pub(super) region: Option<&'f str>,
}

impl<'f> Place<'f> {
    /// A region by the name a text has for it: `West Europe` is `westeurope`.
    pub(super) fn of(facts: &'f Facts, wanted: Option<&str>) -> Self {
        let Some(wanted) = wanted.map(suggest::normalize) else { return Self { region: None } };
        let priced = facts.prices().regions();
        let ending =
            facts.sizes().size.iter().flat_map(|size| size.retired_on_by_region.keys().map(String::as_str));
        let profiled = facts.services().profile.iter().flat_map(|row| row.regions.iter().map(String::as_str));
        let region = priced.chain(ending).chain(profiled).find(|known| suggest::normalize(known) == wanted);
        Self { region }
    }
}

/// A price an hour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Priced {
    /// Pay as you go.
    pub usd: Usd,
    /// Where.
    pub region: String,
    /// When it was so.
    pub date: Option<Date>,
    /// As Spot, there.
    pub spot: Option<Usd>,
    /// Whether a part of it is worked out from other prices.
    pub assumed: bool,
}

/// Old and new in one region.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Against {
    /// Where both have a price.
    pub region: String,
    /// The old one's.
    pub old: Usd,
    /// The new one's.
    pub new: Usd,
    /// How much more it costs, in percent; less is negative.
    pub percent: i64,
}

/// The price of a size in the region that is meant, or where it is cheapest.
pub(super) fn of_size(facts: &Facts, size: &str, place: &Place<'_>) -> Option<Priced> {
    let known = facts.sizes().find(size).one();
    let rows = facts.prices().of_size(size).filter(|row| row.price.is_some());
    // A price in a region that not everybody can order in is no price to compare with, unless it is the one meant.
    let row = rows.min_by_key(|row| {
        let open = known.is_none_or(|size| facts.is_open(size, row.region));
        (Some(row.region) != place.region, !open, row.price, row.region)
    })?;
    priced(&row)
}

fn priced(row: &PriceRow<'_>) -> Option<Priced> {
    Some(Priced {
        usd: row.price?,
        region: row.region.to_owned(),
        date: row.price_date,
        spot: row.spot,
        assumed: false,
    })
}

/// Both prices in one region: the one that is meant, else one of the two prices', else the one where the new size is
/// cheapest.
pub(super) fn against(facts: &Facts, old: &str, new: &str, first: &[&str]) -> Option<Against> {
    let in_region = |size: &str, region: &str| {
        facts.prices().of_size(size).find(|row| row.region == region).and_then(|row| row.price)
    };
    let both = |region: &str| Some((region.to_owned(), in_region(old, region)?, in_region(new, region)?));
    let (region, old, new) = first.iter().find_map(|region| both(region)).or_else(|| {
        let rows = facts.prices().of_size(new).filter(|row| in_region(old, row.region).is_some());
        both(rows.min_by_key(|row| (row.price.is_none(), row.price, row.region))?.region)
    })?;
    Some(Against { region, old, new, percent: percent(old, new)? })
}

/// By how much a price is above another, rounded to whole percent.
fn percent(old: Usd, new: Usd) -> Option<i64> {
    let (old, new) = (i128::try_from(old.nanos()).ok()?, i128::try_from(new.nanos()).ok()?);
    let change = (new - old).checked_mul(200)?;
    let rounded = (change + if change < 0 { -old } else { old }).checked_div(2 * old)?;
    i64::try_from(rounded).ok()
}

/// The price of a GPU profile of Container Apps: processors, memory and GPU together.
pub(super) fn of_profile(facts: &Facts, profile: &Profile, place: &Place<'_>) -> Option<Priced> {
    let all = || profile.regions.iter().filter_map(|region| profile_in(facts, profile, region));
    let here = place.region.filter(|region| profile.regions.iter().any(|known| known == region));
    here.and_then(|region| profile_in(facts, profile, region))
        .or_else(|| all().min_by(|a, b| (a.usd, &a.region).cmp(&(b.usd, &b.region))))
}

fn profile_in(facts: &Facts, profile: &Profile, region: &str) -> Option<Priced> {
    let dedicated = profile.plan == "dedicated";
    let (service, seconds, meters) = if dedicated {
        let meters = [MeterKind::ProfileVcpuHour, MeterKind::ProfileGibHour, MeterKind::ProfileGpuHour];
        ("container-apps-dedicated", 1, meters)
    } else {
        ("container-apps", 3600, [MeterKind::VcpuSecond, MeterKind::GibSecond, MeterKind::GpuSecond])
    };
    let counts =
        [(profile.vcpu, None), (profile.memory_gib, None), (profile.gpu_count, Some(profile.gpu.as_str()))];
    let (mut hour, mut date, mut assumed) = (Usd::ZERO, None, false);
    for (meter, (count, gpu)) in meters.into_iter().zip(counts) {
        let price = facts.meters().price(service, meter, gpu, region)?;
        hour += price.usd.times(u64::from(count) * seconds);
        date = date.map_or(Some(price.as_of), |date: Date| Some(date.min(price.as_of)));
        assumed |= price.assumed;
    }
    // Price lists have six decimals at most.
    let usd = Usd::from_nanos(hour.nanos() / 1000 * 1000);
    Some(Priced { usd, region: region.to_owned(), date, spot: None, assumed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_is_rounded_to_the_nearest() {
        let table =
            [(1_000_000, 1_255_000, 26), (1_000_000, 745_000, -26), (3, 4, 33), (3, 2, -33), (5, 5, 0)];
        for (old, new, expected) in table {
            assert_eq!(percent(Usd::from_micros(old), Usd::from_micros(new)), Some(expected), "{old} {new}");
        }
        assert_eq!(percent(Usd::from_micros(0), Usd::from_micros(1)), None);
    }

    #[test]
    fn a_region_is_known_by_any_spelling() {
        let facts = Facts::embedded();
        assert_eq!(Place::of(&facts, Some("West Europe")).region, Some("westeurope"));
        assert_eq!(Place::of(&facts, Some("USGov Virginia")).region, Some("usgovvirginia"));
        assert_eq!(Place::of(&facts, Some("nowhere")).region, None);
    }
}
