//! Preflight of Machine Learning: quotas of clusters and endpoints.

use crate::preflight::codes;
use crate::preflight::judge::context::{CandidateContext, unanswered};
use crate::preflight::judge::need::Need;
use crate::preflight::judge::usage::QuotaUsage;
use crate::preflight::query::{Query, Topic};
use crate::preflight::report::{PreflightRow, PreflightVerdict, Question};
use crate::preflight::request::PreflightRequest;
use crate::preflight::results::Gap;
use cudock_facts::services::AzureService;

impl CandidateContext<'_> {
    pub(super) fn ml_quotas(&self) -> Vec<PreflightRow> {
        let main = if self.candidate.is_spot { Question::SpotQuota } else { Question::FamilyQuota };
        let Some((family, vcpus)) = self.family_and_vcpus() else {
            return vec![PreflightRow::new(
                main,
                PreflightVerdict::Unknown,
                "the family of the size is unknown",
            )];
        };
        let (region, subscription) = (&self.candidate.region, &self.context.request.subscription);
        let quotas = match QuotaUsage::of_ml(self.context.results, region, subscription) {
            Ok(quotas) => quotas,
            Err(Gap::NotFound) => return vec![self.no_service(main)],
            Err(gap) => return vec![unanswered(main, &gap)],
        };
        // Endpoints keep a fifth of their size free, to upgrade without a pause.
        let amount = if self.candidate.serves { vcpus.saturating_add((vcpus + 4) / 5) } else { vcpus };
        let of_kind = |kind: &str| {
            quotas.iter().find(|(known, _)| known.eq_ignore_ascii_case(kind)).map(|(_, quota)| quota)
        };
        if self.candidate.is_spot {
            return vec![
                self.compare(
                    &Need::of_spot("low-priority cluster vCPUs", amount),
                    of_kind("lowPriorityCores"),
                ),
            ];
        }
        let of_family = quotas.iter().find(|(kind, quota)| {
            let name = quota.name.strip_suffix("Cluster Dedicated vCPUs");
            kind.eq_ignore_ascii_case("vmFamily")
                && name.is_some_and(|name| self.context.facts.quotas().limits("ml", name, &family))
        });
        let total = Need {
            question: Question::RegionalQuota,
            code: codes::REGIONAL_QUOTA,
            what: "Total Cluster Dedicated Regional vCPUs",
            unit: "vCPU",
            amount,
        };
        let family_row =
            self.compare(&Need::of_size_family(&family, amount), of_family.map(|(_, quota)| quota));
        let total_row = of_kind("dedicatedCores").map(|quota| self.compare(&total, Some(quota)));
        [Some(family_row), total_row].into_iter().flatten().collect()
    }
}

pub(super) fn queries(request: &PreflightRequest) -> Vec<Query> {
    let usages = request.regions_of(AzureService::Ml).into_iter().map(|region| {
        let topic = Topic::MlUsages(region.to_owned());
        let provider = "Microsoft.MachineLearningServices";
        request.regional_query(topic, provider, region, "usages?api-version=2024-10-01")
    });
    usages.collect()
}
