//! Rows about a placement: whether it is offered, until when, whether the image runs, and the price.

use cudock_base::Date;
use cudock_facts::tables::{Lifecycle, Size};
use serde_json::Value;

use super::sku::{Restriction, Sku};
use super::{CandidateContext, bare_region, unanswered};
use crate::preflight::answers::{Gap, string};
use crate::preflight::codes;
use crate::preflight::query::Topic;
use crate::preflight::report::{PreflightRow, PreflightVerdict, Question};
use crate::spec::Target;

/// A size that retires within this time is worth a warning.
const SOON_DAYS: i32 = 180;

impl CandidateContext<'_> {
    pub(super) fn offered(&self) -> PreflightRow {
        let region = &self.candidate.region;
        if self.is_known_region() == Some(false) {
            let message = format!("the subscription has no region `{region}`");
            return self.not_offered("no such region", message);
        }
        if self.is_served() == Some(false) {
            let message = format!("{} is not available in {region}", self.service_name());
            return self.not_offered("service not in the region", message);
        }
        match (self.candidate.target, self.candidate.size.as_deref()) {
            (Target::Vm, Some(size)) => self.size_offered(size),
            (Target::Batch, Some(size)) if self.context.request.existing.batch_account.is_some() => {
                self.batch_size_offered(size)
            }
            (Target::ContainerApps, Some(profile)) => self.profile_offered(profile),
            _ => match self.is_served() {
                Some(_) => PreflightRow::ok(Question::Offered, region),
                None => unanswered(
                    Question::Offered,
                    &Gap::Failed("regions of the service are unknown".to_owned()),
                ),
            },
        }
    }

    fn is_known_region(&self) -> Option<bool> {
        let regions = self.context.answers.list(&Topic::Locations).ok()?;
        let wanted = bare_region(&self.candidate.region);
        Some(regions.iter().filter_map(|one| string(one, "/name")).any(|name| bare_region(name) == wanted))
    }

    fn service_name(&self) -> String {
        let service = self.service();
        let row = self.context.facts.services().service.iter().find(|row| row.id == service);
        row.map_or_else(|| service.to_owned(), |row| row.name.clone())
    }

    fn not_offered(&self, detail: &str, message: String) -> PreflightRow {
        let fix = match &self.candidate.size {
            Some(size) if self.candidate.target == Target::Vm => {
                format!("az vm list-skus --size {size} --all --output table")
            }
            _ => "choose another region: cudock plan".to_owned(),
        };
        PreflightRow::new(Question::Offered, PreflightVerdict::Blocked, detail).because(
            codes::NOT_IN_REGION,
            message,
            fix,
        )
    }

    fn size_offered(&self, size: &str) -> PreflightRow {
        let (question, region) = (Question::Offered, &self.candidate.region);
        let sku = match Sku::find(self.context.answers, size, region) {
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

    fn batch_size_offered(&self, size: &str) -> PreflightRow {
        let (question, region) = (Question::Offered, &self.candidate.region);
        let sizes = match self.context.answers.list(&Topic::BatchSizes(region.clone())) {
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

    fn profile_offered(&self, profile: &str) -> PreflightRow {
        let (question, region) = (Question::Offered, &self.candidate.region);
        let profiles = match self.context.answers.list(&Topic::AppProfiles(region.clone())) {
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

    /// When the size ends; no row for work without one.
    pub(super) fn retirement(&self) -> Option<PreflightRow> {
        let question = Question::Retirement;
        let name = self.candidate.size.as_deref().filter(|_| self.candidate.has_vm_size())?;
        let Some(size) = self.context.facts.sizes().find(name).one() else {
            return Some(PreflightRow::new(question, PreflightVerdict::Unknown, "not in the table of sizes"));
        };
        let end = end_of(size, &self.candidate.region);
        let blocked = |detail: String| {
            let fix = match &size.replacement {
                Some(replacement) => format!("use {replacement}"),
                None => "choose another size: cudock plan".to_owned(),
            };
            PreflightRow::new(question, PreflightVerdict::Blocked, detail.clone()).because(
                codes::SIZE_RETIRES,
                format!("{} is {detail}", size.name),
                fix,
            )
        };
        let request = self.context.request;
        Some(match end {
            Some(end) if end <= request.today => blocked(format!("retired since {end}")),
            Some(end) if end <= request.expires => {
                blocked(format!("retired on {end}, before the deployment ends"))
            }
            Some(end) if end.days_since(request.today) <= SOON_DAYS => {
                PreflightRow::new(question, PreflightVerdict::Warning, format!("on {end}")).because(
                    codes::SIZE_RETIRES,
                    format!("{} retires on {end}", size.name),
                    size.replacement.as_ref().map_or_else(
                        || "plan for another size: cudock plan".to_owned(),
                        |replacement| format!("plan for {replacement}"),
                    ),
                )
            }
            Some(end) => PreflightRow::ok(question, format!("on {end}")),
            None if size.lifecycle == Lifecycle::Retired => blocked("retired".to_owned()),
            None => PreflightRow::ok(question, "none announced"),
        })
    }

    pub(super) fn image_runs(&self) -> PreflightRow {
        match &self.candidate.image {
            Some(check) => PreflightRow {
                question: Question::ImageRuns,
                verdict: check.verdict,
                detail: check.detail.clone(),
                finding: check.finding.clone(),
            },
            None => PreflightRow::new(Question::ImageRuns, PreflightVerdict::Unknown, "not checked"),
        }
    }

    pub(super) fn price(&self) -> PreflightRow {
        let question = Question::Price;
        match self.candidate.price {
            Some(price) => {
                let as_of = price.as_of.map(|day| format!(", as of {day}")).unwrap_or_default();
                PreflightRow::ok(question, format!("${} per hour{as_of}", price.per_hour.rounded()))
            }
            None => PreflightRow::new(question, PreflightVerdict::Warning, "unknown").because(
                codes::PRICE_UNKNOWN,
                "the price is unknown, so neither the cost nor a budget can be computed",
                "cudock prices refresh",
            ),
        }
    }
}

/// When a size ends in a region.
fn end_of(size: &Size, region: &str) -> Option<Date> {
    size.retired_on_by_region.get(region).copied().or(size.retired_on).or(size.retires_on)
}
