//! Rows about quotas. Each service has its own, with its own names.

use super::context::CandidateContext;
use super::need::Need;
use super::sku::Sku;
use super::usage::QuotaUsage;
use crate::preflight::codes;
use crate::preflight::report::{PreflightRow, PreflightVerdict, Question};
use crate::services::backend::Requirements;
use crate::services::backend::lookup::backend;

impl CandidateContext<'_> {
    pub(super) fn quotas(&self) -> Vec<PreflightRow> {
        let existing = &self.context.request.existing;
        let backend = backend(self.candidate.service);
        let has_nodes = backend.existing_kind().is_some_and(|kind| kind.nodes(existing).is_some());
        // A resource that does not exist has no quota. Nodes that exist, or that their owner has
        // set aside, need no more.
        if existing.details.missing.is_some() || has_nodes { Vec::new() } else { backend.quotas(self) }
    }

    /// The family and the vCPUs of all instances: from the list of sizes, else from the tables.
    pub(crate) fn family_and_vcpus(&self) -> Option<(String, i64)> {
        let size = self.candidate.size.as_deref()?;
        let sku = Sku::find(self.context.results, size, &self.candidate.region).ok().flatten();
        let row = self.context.facts.sizes().find(size).one();
        let family = sku.as_ref().and_then(Sku::family).or(row.and_then(|row| row.quota_family.as_deref()))?;
        let vcpus = sku.as_ref().and_then(Sku::vcpus).or(row.and_then(|row| row.vcpu).map(i64::from))?;
        Some((family.to_owned(), vcpus.checked_mul(self.candidate.instances.into())?))
    }

    pub(crate) fn no_service(&self, question: Question) -> PreflightRow {
        let region = &self.candidate.region;
        PreflightRow::new(question, PreflightVerdict::Blocked, "service not in the region").because(
            codes::NOT_IN_REGION,
            format!("the service is not available in {region}"),
            "choose another region: cudock plan",
        )
    }

    /// Compares a need with a quota. A quota that is not listed is zero, as for GPU families that were never requested.
    pub(crate) fn compare(&self, need: &Need<'_>, quota: Option<&QuotaUsage<'_>>) -> PreflightRow {
        let Need { question, code, what, unit, amount } = *need;
        let (limit, used) = quota.map_or((0, Some(0)), |quota| (quota.limit, quota.used));
        if limit < 0 {
            return PreflightRow::ok(question, "no limit");
        }
        let units = if amount == 1 { unit.to_owned() } else { format!("{unit}s") };
        let free = limit.saturating_sub(used.unwrap_or(0)).max(0);
        let known = match used {
            Some(_) => format!("{free} of {limit} free"),
            None => format!("limit {limit}, use unknown"),
        };
        let detail = format!("needs {amount} {units}, {known}");
        if amount <= free {
            return PreflightRow::ok(question, detail);
        }
        let region = &self.candidate.region;
        let needed = used.unwrap_or(0).saturating_add(amount);
        PreflightRow::new(question, PreflightVerdict::Blocked, &detail).because(
            code,
            format!("not enough quota `{what}` in {region}: {detail}"),
            self.raise(quota.map_or(what, |quota| quota.name), needed),
        )
    }

    /// The command that requests more of a quota.
    fn raise(&self, name: &str, limit: i64) -> String {
        let (subscription, region) = (&self.context.request.subscription, &self.candidate.region);
        let Requirements { provider, raises_quotas, .. } = backend(self.candidate.service).requirements();
        if !raises_quotas {
            return format!(
                "request {limit} of {name} in {region} in the portal under Quotas, or choose another placement: --try 3"
            );
        }
        format!(
            "az quota update --resource-name '{name}' --scope /subscriptions/{subscription}/providers/{provider}/locations/{region} \
             --limit-object value={limit} limit-object-type=LimitValue --resource-type {}",
            if self.candidate.is_spot { "lowPriority" } else { "dedicated" }
        )
    }
}
