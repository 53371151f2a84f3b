//! Meters of services other than virtual machines, matched by their exact name and unit.

pub(crate) mod file;

use std::collections::BTreeMap;

use cudock_base::{Timestamp, Usd};
use cudock_facts::tables::MeterKind;
use cudock_facts::version::Date;
use serde::{Deserialize, Serialize};

use crate::api::page::{PriceListRow, text};
use crate::rules::{amount, in_force, is_consumption, is_of_region, tier};

/// A price of a meter in a region.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeterPrice {
    /// The service, as `azure_meters.toml` names it.
    pub service: String,
    pub meter: MeterKind,
    pub gpu: Option<String>,
    /// The count in a month from which it holds.
    pub above: u64,
    pub free: Option<u64>,
    /// The price of one in billionths of a dollar.
    pub nanos: u64,
}

/// A meter of the list, and its name in the tables.
struct KnownMeter {
    service: &'static str,
    meter: MeterKind,
    gpu: Option<&'static str>,
    /// Service and product in the list.
    listed: [&'static str; 2],
    name: &'static str,
    units: &'static [&'static str],
}

const APPS: &str = "Azure Container Apps";
const KUBERNETES: &str = "Azure Kubernetes Service";
const BANDWIDTH: &str = "Bandwidth";

pub(crate) const SERVICES: [&str; 3] = [APPS, KUBERNETES, BANDWIDTH];

const fn known(
    service: &'static str,
    meter: MeterKind,
    gpu: Option<&'static str>,
    listed: [&'static str; 2],
    name: &'static str,
    units: &'static [&'static str],
) -> KnownMeter {
    KnownMeter { service, meter, gpu, listed, name, units }
}

const SERVERLESS: &str = "container-apps";
const DEDICATED: &str = "container-apps-dedicated";
const IN_APPS: [&str; 2] = [APPS, APPS];
const OUTBOUND: [&str; 2] = [BANDWIDTH, "Rtn Preference: MGN"];
const HOUR: &[&str] = &["1 Hour"];
const SECOND: &[&str] = &["1 Second"];
const GIB_HOUR: &[&str] = &["1 Hour", "1 GiB Hour"];

/// Names and units as other public clients of the list use them. Clients disagree on the name of data transfer between
/// regions, so it is left out.
const KNOWN: [KnownMeter; 11] = [
    known(SERVERLESS, MeterKind::VcpuSecond, None, IN_APPS, "Standard vCPU Active Usage", SECOND),
    known(SERVERLESS, MeterKind::GibSecond, None, IN_APPS, "Standard Memory Active Usage", &["1 GiB Second"]),
    known(SERVERLESS, MeterKind::RequestsMillion, None, IN_APPS, "Standard Requests", &["1M"]),
    known(SERVERLESS, MeterKind::GpuSecond, Some("T4"), IN_APPS, "Standard NC T4 v3 GPU Usage", SECOND),
    known(
        SERVERLESS,
        MeterKind::GpuSecond,
        Some("A100-80"),
        IN_APPS,
        "Standard NC A100 v4 GPU Usage",
        SECOND,
    ),
    known(DEDICATED, MeterKind::ProfileVcpuHour, None, IN_APPS, "Dedicated vCPU Usage", HOUR),
    known(DEDICATED, MeterKind::ProfileGibHour, None, IN_APPS, "Dedicated Memory Usage", GIB_HOUR),
    known(DEDICATED, MeterKind::ProfileGpuHour, Some("A100-80"), IN_APPS, "Dedicated GPU Usage", HOUR),
    known(DEDICATED, MeterKind::ManagementHour, None, IN_APPS, "Dedicated Plan Management", HOUR),
    known("aks", MeterKind::ClusterHour, None, [KUBERNETES, KUBERNETES], "Standard Uptime SLA", HOUR),
    known("network", MeterKind::EgressGb, None, OUTBOUND, "Standard Data Transfer Out", &["1 GB"]),
];

/// The name of a meter in the tables.
type Name = (&'static str, MeterKind, Option<&'static str>);

/// Collects the meters of a region.
#[derive(Debug, Default)]
pub(crate) struct MeterCollector {
    best: BTreeMap<(Name, u64), (Option<Timestamp>, Usd)>,
    left_out: u64,
}

impl MeterCollector {
    /// Adds a row if it is a known meter. An error makes the whole response invalid.
    pub(crate) fn add(&mut self, row: &PriceListRow<'_>, region: &str, today: Date) -> Result<(), String> {
        is_of_region(row, region)?;
        let name = |field: &Option<String>| text(field.as_ref()).trim().to_owned();
        let (service, product) = (name(&row.service_name), name(&row.product_name));
        let (meter, unit) = (name(&row.meter_name), name(&row.unit_of_measure));
        let is_listed = |known: &&KnownMeter| {
            known.listed == [service.as_str(), product.as_str()]
                && known.name == meter
                && known.units.contains(&unit.as_str())
        };
        let known = KNOWN.iter().find(is_listed);
        let start = is_consumption(row).and_then(|()| in_force(row, today));
        let (Some(known), Ok(start)) = (known, start) else {
            self.left_out += 1;
            return Ok(());
        };
        let tier =
            tier(row).ok_or_else(|| format!("the tierMinimumUnits of `{meter}` is not a whole number"))?;
        let new = (start, amount(row, 9)?.0);
        let best = self.best.entry(((known.service, known.meter, known.gpu), tier)).or_insert(new);
        *best = (*best).max(new);
        Ok(())
    }

    /// The prices; a first tier with a price of zero is a free grant.
    pub(crate) fn finish(self) -> (Vec<MeterPrice>, u64) {
        let mut meters: BTreeMap<Name, Vec<(u64, Usd)>> = BTreeMap::new();
        for ((name, tier), (_, usd)) in self.best {
            meters.entry(name).or_default().push((tier, usd));
        }
        let mut prices = Vec::new();
        for ((service, meter, gpu), tiers) in meters {
            let free = match tiers.as_slice() {
                [(0, Usd::ZERO), (next, _), ..] => Some(*next),
                _ => None,
            };
            let paid = tiers.into_iter().filter(|(_, usd)| *usd > Usd::ZERO);
            for (index, (tier, usd)) in paid.enumerate() {
                prices.push(MeterPrice {
                    service: service.to_owned(),
                    meter,
                    gpu: gpu.map(str::to_owned),
                    above: if index == 0 && free.is_some() { 0 } else { tier },
                    free: free.filter(|_| index == 0),
                    nanos: u64::try_from(usd.nanos()).unwrap_or(u64::MAX),
                });
            }
        }
        (prices, self.left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::page::Page;

    fn row(product: &str, meter: &str, unit: &str, tier: &str, price: &str, start: &str) -> String {
        let service = if product.starts_with("Azure") { product } else { BANDWIDTH };
        format!(
            r#"{{"currencyCode":"USD","tierMinimumUnits":{tier},"retailPrice":{price},"armRegionName":"canadacentral","effectiveStartDate":"{start}","meterName":"{meter}","productName":"{product}","serviceName":"{service}","unitOfMeasure":"{unit}","type":"Consumption","isPrimaryMeterRegion":true,"armSkuName":""}}"#
        )
    }

    fn collected(rows: &[String]) -> (Vec<MeterPrice>, u64) {
        let text = format!("{{\"Items\":[{}]}}", rows.join(","));
        let page = Page::parse(text.as_bytes()).unwrap();
        let mut collector = MeterCollector::default();
        for row in page.rows() {
            collector.add(row, "canadacentral", "2026-11-15".parse().unwrap()).unwrap();
        }
        collector.finish()
    }

    const DAY: &str = "2025-01-01T00:00:00Z";

    #[test]
    fn meters_are_matched_by_their_whole_name_product_and_unit() {
        let (prices, left_out) = collected(&[
            row(APPS, "Standard vCPU Active Usage", "1 Second", "0.0", "3.4E-05", DAY),
            row(APPS, "Standard vCPU Idle Usage", "1 Second", "0.0", "4E-06", DAY),
            row(APPS, "Standard NC T4 v3 GPU Usage", "1 Second", "0.0", "8.8e-05", DAY),
            row(APPS, "Standard NC T4 v3 GPU Usage", "1 Hour", "0.0", "0.3168", DAY),
            row(APPS, "Dedicated Plan Management", "1 Hour", "0.0", "0.1", DAY),
            row(KUBERNETES, "Standard Uptime SLA", "1 Hour", "0.0", "0.1", DAY),
            row(KUBERNETES, "Standard Long Term Support", "1 Hour", "0.0", "0.6", DAY),
            row(
                "Bandwidth - Routing Preference: Internet",
                "Standard Data Transfer Out",
                "1 GB",
                "0.0",
                "0.08",
                DAY,
            ),
        ]);
        let named: Vec<(&str, MeterKind, Option<&str>, u64)> = prices
            .iter()
            .map(|price| (price.service.as_str(), price.meter, price.gpu.as_deref(), price.nanos))
            .collect();
        assert_eq!(
            named,
            [
                ("aks", MeterKind::ClusterHour, None, 100_000_000),
                ("container-apps", MeterKind::VcpuSecond, None, 34_000),
                ("container-apps", MeterKind::GpuSecond, Some("T4"), 88_000),
                ("container-apps-dedicated", MeterKind::ManagementHour, None, 100_000_000),
            ]
        );
        assert_eq!(left_out, 4);
    }

    #[test]
    fn a_first_tier_of_zero_is_a_free_grant() {
        let out = |tier: &str, price: &str| {
            row("Rtn Preference: MGN", "Standard Data Transfer Out", "1 GB", tier, price, DAY)
        };
        let (prices, _) = collected(&[out("10240.0", "0.083"), out("0.0", "0.0"), out("100.0", "0.087")]);
        let tiers: Vec<(u64, Option<u64>, u64)> =
            prices.iter().map(|price| (price.above, price.free, price.nanos)).collect();
        assert_eq!(tiers, [(0, Some(100), 87_000_000), (10_240, None, 83_000_000)]);
    }

    #[test]
    fn of_two_prices_of_a_meter_the_one_that_started_last_counts() {
        let sla =
            |price: &str, start: &str| row(KUBERNETES, "Standard Uptime SLA", "1 Hour", "0", price, start);
        for rows in
            [[sla("0.1", DAY), sla("0.09", "2026-01-01")], [sla("0.09", "2026-01-01"), sla("0.1", DAY)]]
        {
            assert_eq!(collected(&rows).0[0].nanos, 90_000_000);
        }
        assert!(collected(&[sla("0.1", "2027-01-01")]).0.is_empty(), "not yet in force");
        assert!(collected(&[sla("0", DAY)]).0.is_empty(), "zero is not a price");
    }
}
