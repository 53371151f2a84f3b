//! Preflight of Container Instances: quotas of groups and cores.

use crate::preflight::codes;
use crate::preflight::judge::context::{CandidateContext, unanswered};
use crate::preflight::judge::need::Need;
use crate::preflight::judge::usage::QuotaUsage;
use crate::preflight::query::{Query, Topic};
use crate::preflight::report::{PreflightRow, Question};
use crate::preflight::request::PreflightRequest;
use crate::preflight::results::Gap;
use cudock_facts::services::AzureService;

impl CandidateContext<'_> {
    pub(super) fn aci_quotas(&self) -> Vec<PreflightRow> {
        let question = Question::ServiceQuota;
        let quotas =
            match QuotaUsage::list(self.context.results, &Topic::AciUsages(self.candidate.region.clone())) {
                Ok(quotas) => quotas,
                Err(Gap::NotFound) => return vec![self.no_service(question)],
                Err(gap) => return vec![unanswered(question, &gap)],
            };
        let instances = i64::from(self.candidate.instances);
        #[allow(clippy::cast_possible_truncation, reason = "a float saturates")]
        let cores = (self.candidate.cpus.ceil() as i64).saturating_mul(instances);
        let needs = [("ContainerGroups", "group", instances), ("StandardCores", "core", cores)];
        let rows = needs.into_iter().filter_map(|(what, unit, amount)| {
            let quota = quotas.iter().find(|quota| quota.name == what)?;
            let need = Need { question, code: codes::SERVICE_QUOTA, what, unit, amount };
            Some(self.compare(&need, Some(quota)))
        });
        rows.collect()
    }
}

pub(super) fn queries(request: &PreflightRequest) -> Vec<Query> {
    let usages = request.regions_of(AzureService::Aci).into_iter().map(|region| {
        let topic = Topic::AciUsages(region.to_owned());
        request.regional_query(topic, "Microsoft.ContainerInstance", region, "usages?api-version=2023-05-01")
    });
    usages.collect()
}
