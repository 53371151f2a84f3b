//! Preflight of Container Apps: profiles, environments and GPUs.

use cudock_base::text::percent;
use cudock_facts::services::AzureService;
use cudock_facts::tables::Profile;
use serde_json::Value;

use crate::preflight::codes;
use crate::preflight::judge::context::{CandidateContext, unanswered};
use crate::preflight::judge::need::Need;
use crate::preflight::judge::usage::QuotaUsage;
use crate::preflight::query::{Query, Topic};
use crate::preflight::report::{PreflightRow, PreflightVerdict, Question};
use crate::preflight::request::{PreflightRequest, group_and_name};
use crate::preflight::results::{Gap, string};

impl CandidateContext<'_> {
    pub(super) fn profile_offered(&self, profile: &str) -> PreflightRow {
        let (question, region) = (Question::Offered, &self.candidate.region);
        let profiles = match self.context.results.list(&Topic::AppProfiles(region.clone())) {
            Ok(profiles) => profiles,
            Err(Gap::NotFound) => {
                let message = format!("Container Apps is not available in {region}");
                return self.not_offered("service not in the region", message);
            }
            Err(gap) => return unanswered(question, &gap),
        };
        let is_named =
            |one: &Value| string(one, "/name").is_some_and(|name| name.eq_ignore_ascii_case(profile));
        if profiles.iter().any(is_named) {
            return PreflightRow::ok(question, region);
        }
        // The list has been seen without serverless GPU profiles in regions that have them.
        let known =
            self.context.facts.services().profile.iter().find(|row| row.name.eq_ignore_ascii_case(profile));
        if known.is_some_and(|row| row.plan == "consumption" && row.regions.iter().any(|one| one == region)) {
            return PreflightRow::new(question, PreflightVerdict::Warning, "documented, not listed").because(
                codes::NOT_IN_REGION,
                format!("{region} does not list the profile {profile}, although it is documented there"),
                format!(
                    "az containerapp env workload-profile list-supported --location {region} --output table"
                ),
            );
        }
        self.not_offered("not in the region", format!("{region} does not have the profile {profile}"))
    }

    pub(super) fn app_quotas(&self) -> Vec<PreflightRow> {
        let question = Question::ServiceQuota;
        let region = &self.candidate.region;
        let subscription = QuotaUsage::list(self.context.results, &Topic::AppUsages(region.clone()));
        let mut rows = Vec::new();
        let has_environment = self.context.request.existing.container_apps_environment.is_some();
        match &subscription {
            Ok(quotas) if !has_environment => {
                let count = quotas.iter().find(|quota| quota.name == "ManagedEnvironmentCount");
                let what = "ManagedEnvironmentCount";
                let need =
                    Need { question, code: codes::SERVICE_QUOTA, what, unit: "environment", amount: 1 };
                rows.extend(count.map(|quota| self.compare(&need, Some(quota))));
            }
            Ok(_) => {}
            Err(Gap::NotFound) => return vec![self.no_service(question)],
            Err(gap) => rows.push(unanswered(question, gap)),
        }
        let profile = self.candidate.size.as_deref().and_then(|name| self.gpu_profile(name));
        rows.extend(profile.map(|profile| self.gpu_quota(profile, &subscription)));
        rows
    }

    fn gpu_profile(&self, name: &str) -> Option<&Profile> {
        self.context.facts.services().profile.iter().find(|row| row.name.eq_ignore_ascii_case(name))
    }

    /// The quota of GPUs: serverless ones are limited by the environment, dedicated ones by the subscription.
    fn gpu_quota(&self, profile: &Profile, subscription: &Result<Vec<QuotaUsage<'_>>, Gap>) -> PreflightRow {
        let question = Question::FamilyQuota;
        let amount = i64::from(profile.gpu_count).saturating_mul(self.candidate.instances.into());
        let need = Need { question, code: codes::FAMILY_QUOTA, what: &profile.name, unit: "GPU", amount };
        let is_own = |quota: &&QuotaUsage<'_>| {
            self.context.facts.quotas().limits("container-apps", quota.name, &profile.name)
        };
        if profile.plan != "consumption" {
            return match subscription {
                Ok(quotas) => self.compare(&need, quotas.iter().find(is_own)),
                Err(gap) => unanswered(question, gap),
            };
        }
        if self.context.request.existing.container_apps_environment.is_none() {
            let row = PreflightRow::new(question, PreflightVerdict::Warning, "known after creation");
            let message = "the GPU quota of Container Apps can be read only after the environment exists";
            let fix = "name an environment that has quota: az containerapp env list --output table";
            return row.because(codes::QUOTA_UNKNOWN, message, fix);
        }
        match QuotaUsage::list(self.context.results, &Topic::EnvironmentUsages) {
            Ok(quotas) => self.compare(&need, quotas.iter().find(is_own)),
            Err(Gap::NotFound) => {
                let row = PreflightRow::new(question, PreflightVerdict::Blocked, "no such environment");
                let message = "the Container Apps environment does not exist";
                row.because(codes::RESOURCE_NOT_FOUND, message, "az containerapp env list --output table")
            }
            Err(gap) => unanswered(question, &gap),
        }
    }
}

pub(super) fn queries(request: &PreflightRequest) -> Vec<Query> {
    let mut all = Vec::new();
    for region in request.regions_of(AzureService::ContainerApps) {
        let query = |topic, what| request.regional_query(topic, "Microsoft.App", region, what);
        let profiles = "availableManagedEnvironmentsWorkloadProfileTypes?api-version=2025-07-01";
        all.push(query(Topic::AppProfiles(region.to_owned()), profiles));
        all.push(query(Topic::AppUsages(region.to_owned()), "usages?api-version=2025-07-01"));
    }
    let environment = request.existing.container_apps_environment.as_deref().and_then(group_and_name);
    all.extend(environment.map(|(group, name)| {
        let (group, name) = (percent::encode(group), percent::encode(name));
        let path = format!(
            "/resourceGroups/{group}/providers/Microsoft.App/managedEnvironments/{name}/usages?api-version=2025-07-01"
        );
        request.query(Topic::EnvironmentUsages, &path)
    }));
    all
}
