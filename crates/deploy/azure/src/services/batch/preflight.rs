//! Preflight of Batch: sizes and accounts.

use cudock_base::Date;
use cudock_facts::services::AzureService;
use serde_json::Value;

use crate::preflight::codes;
use crate::preflight::judge::context::{CandidateContext, unanswered};
use crate::preflight::judge::need::Need;
use crate::preflight::judge::usage::QuotaUsage;
use crate::preflight::query::{Query, Topic};
use crate::preflight::report::{PreflightRow, PreflightVerdict, Question};
use crate::preflight::request::{PreflightRequest, group_and_name};
use crate::preflight::results::{Gap, number, string};
use crate::services::existing::bare_region;

impl CandidateContext<'_> {
    pub(super) fn batch_size_offered(&self, size: &str) -> PreflightRow {
        let (question, region) = (Question::Offered, &self.candidate.region);
        let sizes = match self.context.results.list(&Topic::BatchSizes(region.clone())) {
            Ok(sizes) => sizes,
            Err(Gap::NotFound) => {
                return self
                    .not_offered("service not in the region", format!("Batch is not available in {region}"));
            }
            Err(gap) => return unanswered(question, &gap),
        };
        let entry =
            sizes.iter().find(|one| string(one, "/name").is_some_and(|name| name.eq_ignore_ascii_case(size)));
        let Some(entry) = entry else {
            return self.not_offered("not in the region", format!("Batch does not have {size} in {region}"));
        };
        let end: Option<Date> =
            string(entry, "/batchSupportEndOfLife").and_then(|end| end.get(..10)?.parse().ok());
        match end {
            Some(end) if end <= self.context.request.expires => {
                PreflightRow::new(question, PreflightVerdict::Blocked, format!("until {end}")).because(
                    codes::SIZE_RETIRES,
                    format!("Batch supports {size} until {end}"),
                    "choose another size: cudock plan",
                )
            }
            Some(end) => PreflightRow::ok(question, format!("{region}, until {end}")),
            None => PreflightRow::ok(question, region),
        }
    }

    pub(super) fn batch_quotas(&self) -> Vec<PreflightRow> {
        let question = Question::ServiceQuota;
        let accounts = match self.context.results.list(&Topic::BatchAccounts) {
            Ok(accounts) => accounts,
            Err(gap) => return vec![unanswered(question, &gap)],
        };
        match self.context.request.existing.batch_account.as_deref() {
            Some(wanted) => self.quotas_of_batch_account(wanted, accounts),
            None => self.quotas_of_new_batch_account(accounts),
        }
    }

    fn quotas_of_new_batch_account(&self, accounts: &[Value]) -> Vec<PreflightRow> {
        let region = &self.candidate.region;
        let (question, wanted) = (Question::ServiceQuota, bare_region(region));
        let row = match self.context.results.body(&Topic::BatchQuotas(region.clone())) {
            Ok(body) => {
                let is_here =
                    |one: &&Value| string(one, "/location").is_some_and(|name| bare_region(name) == wanted);
                let quota = number(body.get("accountQuota")).map(|limit| QuotaUsage {
                    name: "accountQuota",
                    used: i64::try_from(accounts.iter().filter(is_here).count()).ok(),
                    limit,
                });
                let need = Need {
                    question,
                    code: codes::SERVICE_QUOTA,
                    what: "Batch accounts",
                    unit: "account",
                    amount: 1,
                };
                self.compare(&need, quota.as_ref())
            }
            Err(Gap::NotFound) => self.no_service(question),
            Err(gap) => unanswered(question, &gap),
        };
        let message = "the core quota of a Batch account can be read only after it exists; new accounts have none for current \
                       GPU families";
        let unknown =
            PreflightRow::new(Question::FamilyQuota, PreflightVerdict::Warning, "known after creation");
        let fix = "name an account that has quota: az batch account list --output table";
        vec![row, unknown.because(codes::QUOTA_UNKNOWN, message, fix)]
    }

    fn quotas_of_batch_account(&self, wanted: &str, accounts: &[Value]) -> Vec<PreflightRow> {
        let question = Question::ServiceQuota;
        let is_wanted = |one: &&Value| {
            let suffix = group_and_name(wanted).map(|(group, name)| {
                format!("/resourceGroups/{group}/providers/Microsoft.Batch/batchAccounts/{name}")
                    .to_ascii_lowercase()
            });
            let id = string(one, "/id").map(str::to_ascii_lowercase);
            suffix.zip(id).is_some_and(|(suffix, id)| id.ends_with(&suffix))
        };
        let Some(account) = accounts.iter().find(is_wanted) else {
            let row = PreflightRow::new(question, PreflightVerdict::Blocked, "no such account");
            let message = format!("the subscription has no Batch account `{wanted}`");
            return vec![row.because(
                codes::RESOURCE_NOT_FOUND,
                message,
                "az batch account list --output table",
            )];
        };
        if string(account, "/properties/poolAllocationMode") == Some("UserSubscription") {
            let detail = "the account uses the quota of virtual machines";
            return vec![PreflightRow::new(question, PreflightVerdict::Unknown, detail)];
        }
        let Some((family, vcpus)) = self.family_and_vcpus() else {
            return vec![PreflightRow::new(
                question,
                PreflightVerdict::Unknown,
                "the family of the size is unknown",
            )];
        };
        // The service does not report the usage: pools of others count, too.
        let quota = |name: &'static str, pointer: &str| {
            Some(QuotaUsage { name, used: None, limit: number(account.pointer(pointer))? })
        };
        if self.candidate.is_spot {
            let quota = quota("lowPriorityCoreQuota", "/properties/lowPriorityCoreQuota");
            return vec![self.compare(&Need::of_spot("lowPriorityCoreQuota", vcpus), quota.as_ref())];
        }
        let total = Need {
            question,
            code: codes::SERVICE_QUOTA,
            what: "dedicatedCoreQuota",
            unit: "vCPU",
            amount: vcpus,
        };
        let mut rows = vec![
            self.compare(&total, quota("dedicatedCoreQuota", "/properties/dedicatedCoreQuota").as_ref()),
        ];
        let is_enforced = account.pointer("/properties/dedicatedCoreQuotaPerVMFamilyEnforced");
        if is_enforced.and_then(Value::as_bool) != Some(false) {
            let families =
                account.pointer("/properties/dedicatedCoreQuotaPerVMFamily").and_then(Value::as_array);
            let own = families.into_iter().flatten().find_map(|row| {
                let name = string(row, "/name")
                    .filter(|name| self.context.facts.quotas().limits("batch", name, &family))?;
                Some(QuotaUsage { name, used: None, limit: number(row.get("coreQuota"))? })
            });
            rows.push(self.compare(&Need::of_size_family(&family, vcpus), own.as_ref()));
        }
        rows
    }
}

pub(super) fn queries(request: &PreflightRequest) -> Vec<Query> {
    let accounts = "/providers/Microsoft.Batch/batchAccounts?api-version=2024-07-01";
    let mut all = vec![request.query(Topic::BatchAccounts, accounts)];
    let has_account = request.existing.batch_account.is_some();
    all.extend(request.regions_of(AzureService::Batch).into_iter().map(|region| {
        let (topic, what) = if has_account {
            (Topic::BatchSizes(region.to_owned()), "virtualMachineSkus?api-version=2024-07-01")
        } else {
            (Topic::BatchQuotas(region.to_owned()), "quotas?api-version=2024-07-01")
        };
        request.regional_query(topic, "Microsoft.Batch", region, what)
    }));
    all
}
