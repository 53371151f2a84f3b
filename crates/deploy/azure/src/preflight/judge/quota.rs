//! Rows about quotas. Each service has its own, with its own names.

use cudock_facts::tables::Profile;
use serde_json::Value;

use super::sku::Sku;
use super::usage::QuotaUsage;
use super::{CandidateContext, bare_region, unanswered};
use crate::preflight::answers::{Gap, number, string};
use crate::preflight::codes;
use crate::preflight::query::Topic;
use crate::preflight::report::{PreflightRow, PreflightVerdict, Question};
use crate::preflight::request::group_and_name;
use crate::spec::Target;

/// What a row compares.
struct Need<'n> {
    question: Question,
    code: &'static str,
    /// The quota in words.
    what: &'n str,
    unit: &'n str,
    amount: i64,
}

impl CandidateContext<'_> {
    pub(super) fn quotas(&self) -> Vec<PreflightRow> {
        let existing = &self.context.request.existing;
        match self.candidate.target {
            // What does not exist has no quota.
            _ if existing.details.missing.is_some() => Vec::new(),
            // Nodes that exist, or that their owner has set aside, need no more quota.
            Target::Batch if existing.pool.is_some() => Vec::new(),
            Target::Ml if existing.cluster.is_some() => Vec::new(),
            Target::Vm => self.vm_quotas(),
            Target::Batch => self.batch_quotas(),
            Target::Ml => self.ml_quotas(),
            Target::ContainerApps => self.app_quotas(),
            Target::Aci => self.aci_quotas(),
        }
    }

    /// The family and the vCPUs of all instances: from the list of sizes, else from the tables.
    fn family_and_vcpus(&self) -> Option<(String, i64)> {
        let size = self.candidate.size.as_deref()?;
        let sku = Sku::find(self.context.answers, size, &self.candidate.region).ok().flatten();
        let row = self.context.facts.sizes().find(size).one();
        let family = sku.as_ref().and_then(Sku::family).or(row.and_then(|row| row.quota_family.as_deref()))?;
        let vcpus = sku.as_ref().and_then(Sku::vcpus).or(row.and_then(|row| row.vcpu).map(i64::from))?;
        Some((family.to_owned(), vcpus.checked_mul(self.candidate.instances.into())?))
    }

    fn vm_quotas(&self) -> Vec<PreflightRow> {
        let main = if self.candidate.is_spot { Question::SpotQuota } else { Question::FamilyQuota };
        let Some((family, vcpus)) = self.family_and_vcpus() else {
            return vec![PreflightRow::new(
                main,
                PreflightVerdict::Unknown,
                "the family of the size is unknown",
            )];
        };
        let quotas = match QuotaUsage::of_vms(self.context.answers, &self.candidate.region) {
            Ok(quotas) => quotas,
            Err(gap) => return vec![unanswered(main, &gap)],
        };
        let named = |name: &str| quotas.iter().find(|quota| quota.name.eq_ignore_ascii_case(name));
        if self.candidate.is_spot {
            return vec![self.compare(&spot("lowPriorityCores", vcpus), named("lowPriorityCores"))];
        }
        let of_family =
            quotas.iter().find(|quota| self.context.facts.quotas().limits("vm", quota.name, &family));
        vec![
            self.compare(&of_size_family(&family, vcpus), of_family),
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

    fn batch_quotas(&self) -> Vec<PreflightRow> {
        let question = Question::ServiceQuota;
        let accounts = match self.context.answers.list(&Topic::BatchAccounts) {
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
        let row = match self.context.answers.body(&Topic::BatchQuotas(region.clone())) {
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
        // The service does not say how much is used: pools of others count, too.
        let quota = |name: &'static str, pointer: &str| {
            Some(QuotaUsage { name, used: None, limit: number(account.pointer(pointer))? })
        };
        if self.candidate.is_spot {
            let quota = quota("lowPriorityCoreQuota", "/properties/lowPriorityCoreQuota");
            return vec![self.compare(&spot("lowPriorityCoreQuota", vcpus), quota.as_ref())];
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
            rows.push(self.compare(&of_size_family(&family, vcpus), own.as_ref()));
        }
        rows
    }

    fn ml_quotas(&self) -> Vec<PreflightRow> {
        let main = if self.candidate.is_spot { Question::SpotQuota } else { Question::FamilyQuota };
        let Some((family, vcpus)) = self.family_and_vcpus() else {
            return vec![PreflightRow::new(
                main,
                PreflightVerdict::Unknown,
                "the family of the size is unknown",
            )];
        };
        let (region, subscription) = (&self.candidate.region, &self.context.request.subscription);
        let quotas = match QuotaUsage::of_ml(self.context.answers, region, subscription) {
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
                self.compare(&spot("low-priority cluster vCPUs", amount), of_kind("lowPriorityCores")),
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
        let family_row = self.compare(&of_size_family(&family, amount), of_family.map(|(_, quota)| quota));
        let total_row = of_kind("dedicatedCores").map(|quota| self.compare(&total, Some(quota)));
        [Some(family_row), total_row].into_iter().flatten().collect()
    }

    fn app_quotas(&self) -> Vec<PreflightRow> {
        let question = Question::ServiceQuota;
        let region = &self.candidate.region;
        let subscription = QuotaUsage::list(self.context.answers, &Topic::AppUsages(region.clone()));
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
        match QuotaUsage::list(self.context.answers, &Topic::EnvironmentUsages) {
            Ok(quotas) => self.compare(&need, quotas.iter().find(is_own)),
            Err(Gap::NotFound) => {
                let row = PreflightRow::new(question, PreflightVerdict::Blocked, "no such environment");
                let message = "the Container Apps environment does not exist";
                row.because(codes::RESOURCE_NOT_FOUND, message, "az containerapp env list --output table")
            }
            Err(gap) => unanswered(question, &gap),
        }
    }

    fn aci_quotas(&self) -> Vec<PreflightRow> {
        let question = Question::ServiceQuota;
        let quotas =
            match QuotaUsage::list(self.context.answers, &Topic::AciUsages(self.candidate.region.clone())) {
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

    fn no_service(&self, question: Question) -> PreflightRow {
        let region = &self.candidate.region;
        PreflightRow::new(question, PreflightVerdict::Blocked, "service not in the region").because(
            codes::NOT_IN_REGION,
            format!("the service is not available in {region}"),
            "choose another region: cudock plan",
        )
    }

    /// Compares a need with a quota. A quota that is not listed is zero, as for GPU families that were never requested.
    fn compare(&self, need: &Need<'_>, quota: Option<&QuotaUsage<'_>>) -> PreflightRow {
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
        let provider = match self.candidate.target {
            Target::Vm => "Microsoft.Compute",
            Target::Ml => "Microsoft.MachineLearningServices",
            // These quotas are raised by support only.
            Target::Batch | Target::ContainerApps | Target::Aci => {
                return format!(
                    "request {limit} of {name} in {region} in the portal under Quotas, or choose another placement: --try 3"
                );
            }
        };
        format!(
            "az quota update --resource-name '{name}' --scope /subscriptions/{subscription}/providers/{provider}/locations/{region} \
             --limit-object value={limit} limit-object-type=LimitValue --resource-type {}",
            if self.candidate.is_spot { "lowPriority" } else { "dedicated" }
        )
    }
}

fn of_size_family(family: &str, amount: i64) -> Need<'_> {
    Need { question: Question::FamilyQuota, code: codes::FAMILY_QUOTA, what: family, unit: "vCPU", amount }
}

fn spot(what: &str, amount: i64) -> Need<'_> {
    Need { question: Question::SpotQuota, code: codes::SPOT_QUOTA, what, unit: "vCPU", amount }
}
