//! Looks up prices of sizes and profiles by region.

use cudock_base::Usd;
use cudock_base::text::suggest;
use cudock_facts::Facts;
use cudock_facts::tables::{MeterKind, Profile};
use cudock_facts::version::Date;
use schemars::JsonSchema;
use serde::Serialize;

use super::Assessor;

/// The region as the tables spell it: `West Europe` is `westeurope`. `None` if the tables do not have it.
pub(super) fn known_region<'f>(facts: &'f Facts, name: Option<&str>) -> Option<&'f str> {
    let wanted = suggest::normalize(name?);
    let priced = facts.prices().regions();
    let retiring =
        facts.sizes().size.iter().flat_map(|size| size.retired_on_by_region.keys().map(String::as_str));
    let profiled = facts.services().profile.iter().flat_map(|row| row.regions.iter().map(String::as_str));
    priced.chain(retiring).chain(profiled).find(|known| suggest::normalize(known) == wanted)
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HourlyPrice {
    /// Pay as you go.
    pub usd: Usd,
    pub region: String,
    pub date: Option<Date>,
    pub spot: Option<Usd>,
    /// Whether a part of it is derived from other prices.
    pub assumed: bool,
}

/// The old and the new price in one region.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PriceComparison {
    /// A region where both have a price.
    pub region: String,
    pub old: Usd,
    pub new: Usd,
    pub percent: i64,
}

impl Assessor<'_> {
    /// The price of a size in the region, or where it is cheapest.
    pub(super) fn price_of(&self, size: &str) -> Option<HourlyPrice> {
        let known = self.facts.sizes().find(size).one();
        let rows = self.facts.prices().of_size(size).filter(|row| row.price.is_some());
        // A region with restricted access is not used for comparison, unless it is the one requested.
        let row = rows.min_by_key(|row| {
            let open = known.is_none_or(|size| self.facts.is_open(size, row.region));
            (Some(row.region) != self.region, !open, row.price, row.region)
        })?;
        let (region, date, spot) = (row.region.to_owned(), row.price_date, row.spot);
        Some(HourlyPrice { usd: row.price?, region, date, spot, assumed: false })
    }

    /// The price of a GPU profile of Container Apps: processors, memory and GPU together.
    pub(super) fn price_of_profile(&self, profile: &Profile) -> Option<HourlyPrice> {
        let all = || profile.regions.iter().filter_map(|region| profile_in(self.facts, profile, region));
        let here = self.region.filter(|region| profile.regions.iter().any(|known| known == region));
        here.and_then(|region| profile_in(self.facts, profile, region))
            .or_else(|| all().min_by(|a, b| (a.usd, &a.region).cmp(&(b.usd, &b.region))))
    }
}

/// Both prices in one region: the first of `first` that has both, or the one where the new size is cheapest.
pub(super) fn compare(facts: &Facts, old: &str, new: &str, first: &[&str]) -> Option<PriceComparison> {
    let in_region = |size: &str, region: &str| {
        facts.prices().of_size(size).find(|row| row.region == region).and_then(|row| row.price)
    };
    let both = |region: &str| Some((region.to_owned(), in_region(old, region)?, in_region(new, region)?));
    let (region, old, new) = first.iter().find_map(|region| both(region)).or_else(|| {
        let rows = facts.prices().of_size(new).filter(|row| in_region(old, row.region).is_some());
        both(rows.min_by_key(|row| (row.price.is_none(), row.price, row.region))?.region)
    })?;
    Some(PriceComparison { region, old, new, percent: percent(old, new)? })
}

/// The change between two prices, rounded to whole percent.
fn percent(old: Usd, new: Usd) -> Option<i64> {
    let (old, new) = (i128::try_from(old.nanos()).ok()?, i128::try_from(new.nanos()).ok()?);
    let change = (new - old).checked_mul(200)?;
    let rounded = (change + if change < 0 { -old } else { old }).checked_div(2 * old)?;
    i64::try_from(rounded).ok()
}

fn profile_in(facts: &Facts, profile: &Profile, region: &str) -> Option<HourlyPrice> {
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
    Some(HourlyPrice { usd, region: region.to_owned(), date, spot: None, assumed })
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
    fn a_region_is_found_by_any_spelling() {
        let facts = Facts::embedded();
        assert_eq!(known_region(&facts, Some("West Europe")), Some("westeurope"));
        assert_eq!(known_region(&facts, Some("USGov Virginia")), Some("usgovvirginia"));
        assert_eq!(known_region(&facts, Some("nowhere")), None);
    }
}
