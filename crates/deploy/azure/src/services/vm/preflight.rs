//! Preflight of virtual machines: offers and quotas of sizes.

use cudock_facts::Facts;
use cudock_facts::services::AzureService;
use cudock_http::Method;
use serde_json::json;

use crate::call::{Body, Call, Plane};
use crate::preflight::codes;
use crate::preflight::judge::context::{CandidateContext, unanswered};
use crate::preflight::judge::need::Need;
use crate::preflight::judge::sku::{Restriction, Sku};
use crate::preflight::judge::usage::QuotaUsage;
use crate::preflight::query::{MANY_REGIONS, family};
use crate::preflight::query::{Query, Topic};
use crate::preflight::report::{PreflightRow, PreflightVerdict, Question};
use crate::preflight::request::PreflightRequest;

impl CandidateContext<'_> {
    pub(super) fn size_offered(&self, size: &str) -> PreflightRow {
        let (question, region) = (Question::Offered, &self.candidate.region);
        let sku = match Sku::find(self.context.results, size, region) {
            Ok(Some(sku)) => sku,
            Ok(None) => {
                return self.not_offered("not in the region", format!("{region} does not have {size}"));
            }
            Err(gap) => return unanswered(question, &gap),
        };
        let blocked = |detail: String, code, message: String, fix: String| {
            PreflightRow::new(question, PreflightVerdict::Blocked, detail).because(code, message, fix)
        };
        if self.candidate.is_spot && sku.is_without_spot() {
            let message = format!("{size} is not offered as Spot");
            return blocked(
                "no Spot".to_owned(),
                codes::SPOT_NOT_OFFERED,
                message,
                "leave out --spot".to_owned(),
            );
        }
        let zones = sku.zones();
        let mut closed: Vec<&str> = Vec::new();
        for restriction in sku.restrictions() {
            match restriction {
                Restriction::Region(reason) => {
                    let fix = match reason {
                        "QuotaId" => {
                            "use a pay-as-you-go subscription: az account set --subscription NAME".to_owned()
                        }
                        _ => format!(
                            "open a support request for access to {size} in {region}: az support in-subscription tickets \
                             create, or choose another region: cudock plan"
                        ),
                    };
                    let message = format!("the subscription does not get {size} in {region} ({reason})");
                    return blocked(reason.to_owned(), codes::SIZE_RESTRICTED, message, fix);
                }
                Restriction::Zones(zones) => closed.extend(zones),
                Restriction::Other(reason) => {
                    return PreflightRow::new(question, PreflightVerdict::Warning, reason).because(
                        codes::SIZE_RESTRICTED,
                        format!("{size} has a restriction in {region} that is not known ({reason})"),
                        format!("az vm list-skus --location {region} --size {size} --all --output json"),
                    );
                }
            }
        }
        let open: Vec<&str> = zones.iter().copied().filter(|zone| !closed.contains(zone)).collect();
        let other_zone = || match open.first() {
            Some(zone) => format!("use zone {zone}"),
            None => "choose another region: cudock plan".to_owned(),
        };
        match &self.candidate.zone {
            Some(zone) if !open.contains(&zone.as_str()) => {
                let message = format!("the subscription does not get {size} in zone {zone} of {region}");
                blocked(format!("zone {zone} is closed"), codes::ZONE_RESTRICTED, message, other_zone())
            }
            None if open.is_empty() && !zones.is_empty() => {
                let message = format!("the subscription does not get {size} in any zone of {region}");
                blocked("all zones are closed".to_owned(), codes::ZONE_RESTRICTED, message, other_zone())
            }
            _ if open.is_empty() => PreflightRow::ok(question, region),
            _ => PreflightRow::ok(question, format!("{region}, zones {}", open.join(", "))),
        }
    }

    pub(super) fn vm_quotas(&self) -> Vec<PreflightRow> {
        let main = if self.candidate.is_spot { Question::SpotQuota } else { Question::FamilyQuota };
        let Some((family, vcpus)) = self.family_and_vcpus() else {
            return vec![PreflightRow::new(
                main,
                PreflightVerdict::Unknown,
                "the family of the size is unknown",
            )];
        };
        let quotas = match QuotaUsage::of_vms(self.context.results, &self.candidate.region) {
            Ok(quotas) => quotas,
            Err(gap) => return vec![unanswered(main, &gap)],
        };
        let named = |name: &str| quotas.iter().find(|quota| quota.name.eq_ignore_ascii_case(name));
        if self.candidate.is_spot {
            return vec![self.compare(&Need::of_spot("lowPriorityCores", vcpus), named("lowPriorityCores"))];
        }
        let of_family =
            quotas.iter().find(|quota| self.context.facts.quotas().limits("vm", quota.name, &family));
        vec![
            self.compare(&Need::of_size_family(&family, vcpus), of_family),
            self.compare(
                &Need {
                    question: Question::RegionalQuota,
                    code: codes::REGIONAL_QUOTA,
                    what: "cores",
                    unit: "vCPU",
                    amount: vcpus,
                },
                named("cores"),
            ),
        ]
    }
}

/// Rows of a page of Resource Graph, at most.
const GRAPH_PAGE: u32 = 1000;

pub(super) fn queries(request: &PreflightRequest, facts: &Facts) -> Vec<Query> {
    let regions = request.regions_of(AzureService::Vm);
    if regions.len() >= MANY_REGIONS {
        return vec![Query { topic: Topic::VmQuotas, call: quota_graph(request, facts, &regions) }];
    }
    let usages = regions.into_iter().map(|region| {
        let topic = Topic::VmUsages(region.to_owned());
        request.regional_query(topic, "Microsoft.Compute", region, "usages?api-version=2024-07-01")
    });
    usages.collect()
}

/// The usage of virtual machine cores in some regions, by one query of Resource Graph.
fn quota_graph(request: &PreflightRequest, facts: &Facts, regions: &[&str]) -> Call {
    let on_vm = || request.candidates.iter().filter(|one| one.service == AzureService::Vm);
    let mut names: Vec<&str> =
        on_vm().filter_map(|one| family(one, facts)).chain(["cores", "lowPriorityCores"]).collect();
    names.sort_unstable();
    names.dedup();
    // A size that the tables do not have may be of any family.
    let are_known = on_vm().all(|one| one.size.is_none() || family(one, facts).is_some());
    let of_families = if are_known { format!(" | where n in~ ({})", quoted(&names)) } else { String::new() };
    let query = format!(
        "QuotaResources | where type =~ 'microsoft.compute/locations/usages' | where location in~ ({}) \
         | mv-expand j = properties.value limit 400 | extend n = tostring(j.name.value){of_families} \
         | project location, n, used = j.currentValue, max = j['limit']",
        quoted(regions)
    );
    let body = json!({
        "subscriptions": [request.subscription],
        "query": query,
        "options": {"resultFormat": "objectArray", "$top": GRAPH_PAGE},
    });
    Call {
        method: Method::POST,
        plane: Plane::ResourceManager,
        path: "/providers/Microsoft.ResourceGraph/resources?api-version=2022-10-01".to_owned(),
        body: Some(Body::new(body)),
    }
}

/// Names as a list of a query. Characters that no name has are left out, so that none ends the text.
fn quoted(names: &[&str]) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '_' | '-');
    let names: Vec<String> =
        names.iter().map(|name| format!("'{}'", name.chars().filter(is_plain).collect::<String>())).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_end_the_text_of_a_query() {
        assert_eq!(
            quoted(&["Standard NCASv3_T4 Family", "x') | union y"]),
            "'Standard NCASv3_T4 Family', 'x  union y'"
        );
    }
}
