//! Quotas as services list them.

use serde_json::Value;

use crate::preflight::query::Topic;
use crate::preflight::results::{Gap, QueryResults, number, string};
use crate::services::existing::bare_region;

/// A quota and how much of it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QuotaUsage<'a> {
    pub(crate) name: &'a str,
    /// None if the service does not report it.
    pub(crate) used: Option<i64>,
    /// Below zero if there is none.
    pub(crate) limit: i64,
}

impl<'a> QuotaUsage<'a> {
    /// Reads `{name: {value}, currentValue, limit}`, as nearly all services write it.
    fn read(row: &'a Value) -> Option<Self> {
        let name = string(row, "/name/value")?;
        Some(Self { name, used: number(row.get("currentValue")), limit: number(row.get("limit"))? })
    }

    /// The quotas that a service returns as a list.
    pub(crate) fn list(results: &'a QueryResults, topic: &Topic) -> Result<Vec<Self>, Gap> {
        Ok(results.list(topic)?.iter().filter_map(Self::read).collect())
    }

    /// The quotas of virtual machines in a region, from its own list or from that of all regions.
    pub(crate) fn of_vms(results: &'a QueryResults, region: &str) -> Result<Vec<Self>, Gap> {
        let of_region = Topic::VmUsages(region.to_owned());
        if results.contains(&of_region) {
            return Self::list(results, &of_region);
        }
        let body = results.body(&Topic::VmQuotas)?;
        let rows = body.get("data").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let wanted = bare_region(region);
        let is_here = |row: &&Value| string(row, "/location").is_some_and(|name| bare_region(name) == wanted);
        let quotas: Vec<Self> = rows
            .iter()
            .filter(is_here)
            .filter_map(|row| {
                let name = string(row, "/n")?;
                Some(Self { name, used: number(row.get("used")), limit: number(row.get("max"))? })
            })
            .collect();
        // Every region has a total, so that a region without one was left out.
        if quotas.iter().any(|quota| quota.name.eq_ignore_ascii_case("cores")) {
            Ok(quotas)
        } else {
            Err(Gap::Failed(format!("Resource Graph has no quota of {region}")))
        }
    }

    /// The quotas of the subscription for Machine Learning, with the kind of each. Rows of workspaces and of computes repeat
    /// the same figures.
    pub(crate) fn of_ml(
        results: &'a QueryResults,
        region: &str,
        subscription: &str,
    ) -> Result<Vec<(&'a str, Self)>, Gap> {
        let prefix = format!("/subscriptions/{subscription}/usages").to_ascii_lowercase();
        let rows = results.list(&Topic::MlUsages(region.to_owned()))?.iter();
        let own = rows
            .filter(|row| string(row, "/id").is_some_and(|id| id.to_ascii_lowercase().starts_with(&prefix)));
        Ok(own
            .filter_map(|row| {
                let kind = string(row, "/type")?.split('/').nth(1)?;
                Some((kind, Self::read(row)?))
            })
            .collect())
    }
}
