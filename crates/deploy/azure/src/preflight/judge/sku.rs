//! A size in a region, as the list of sizes describes it to the subscription.

use serde_json::Value;

use crate::preflight::query::Topic;
use crate::preflight::results::{Gap, QueryResults, number, string};
use crate::services::existing::bare_region;

/// A size in one region.
pub(crate) struct Sku<'a> {
    entry: &'a Value,
    region: String,
}

/// Why the subscription does not get a size.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Restriction<'a> {
    /// Nowhere in the region, for this reason.
    Region(&'a str),
    /// Unavailable in these zones.
    Zones(Vec<&'a str>),
    /// A kind that is not known.
    Other(&'a str),
}

impl<'a> Sku<'a> {
    /// The size in the region; none if the region does not have it.
    pub(crate) fn find(results: &'a QueryResults, size: &str, region: &str) -> Result<Option<Self>, Gap> {
        let of_region = Topic::Skus(Some(region.to_owned()));
        let topic = if results.contains(&of_region) { of_region } else { Topic::Skus(None) };
        let sizes = results.list(&topic)?;
        let region = bare_region(region);
        let is_wanted = |entry: &&Value| {
            string(entry, "/name").is_some_and(|name| name.eq_ignore_ascii_case(size))
                && lists(entry.get("locations"), &region)
        };
        let entry = sizes.iter().find(is_wanted);
        Ok(entry.map(|entry| Self { entry, region }))
    }

    pub(crate) fn family(&self) -> Option<&'a str> {
        string(self.entry, "/family")
    }

    pub(crate) fn vcpus(&self) -> Option<i64> {
        number(self.capability("vCPUs"))
    }

    /// Whether Spot is refused.
    pub(crate) fn is_without_spot(&self) -> bool {
        let capable = self.capability("LowPriorityCapable").and_then(Value::as_str);
        capable.is_some_and(|capable| capable.eq_ignore_ascii_case("false"))
    }

    /// The zones of the region that have the size.
    pub(crate) fn zones(&self) -> Vec<&'a str> {
        let places = self.entry.get("locationInfo").and_then(Value::as_array).into_iter().flatten();
        let here = places
            .filter(|place| string(place, "/location").is_some_and(|name| bare_region(name) == self.region));
        here.filter_map(|place| place.get("zones")?.as_array()).flatten().filter_map(Value::as_str).collect()
    }

    /// The restrictions that keep the subscription from the size in this region.
    pub(crate) fn restrictions(&self) -> Vec<Restriction<'a>> {
        let all = self.entry.get("restrictions").and_then(Value::as_array).into_iter().flatten();
        let here = all.filter(|one| {
            let places = one.pointer("/restrictionInfo/locations").or_else(|| one.get("values"));
            // Without a place it holds everywhere.
            places.is_none_or(|places| lists(Some(places), &self.region))
        });
        here.map(|one| {
            let reason = string(one, "/reasonCode").unwrap_or("no reason given");
            match string(one, "/type") {
                Some("Location") => Restriction::Region(reason),
                Some("Zone") => {
                    let zones =
                        one.pointer("/restrictionInfo/zones").and_then(Value::as_array).into_iter().flatten();
                    Restriction::Zones(zones.filter_map(Value::as_str).collect())
                }
                _ => Restriction::Other(reason),
            }
        })
        .collect()
    }

    fn capability(&self, name: &str) -> Option<&'a Value> {
        let all = self.entry.get("capabilities")?.as_array()?;
        all.iter().find(|one| string(one, "/name") == Some(name))?.get("value")
    }
}

fn lists(regions: Option<&Value>, wanted: &str) -> bool {
    let regions = regions.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    regions.into_iter().any(|region| bare_region(region) == wanted)
}
