//! Rows about a placement: whether it is offered, until when, whether the image runs, and the price.

use cudock_base::Date;
use cudock_facts::tables::{Lifecycle, Size};

use super::context::{CandidateContext, unanswered};
use crate::preflight::codes;
use crate::preflight::query::Topic;
use crate::preflight::report::{PreflightRow, PreflightVerdict, Question};
use crate::preflight::results::{Gap, string};
use crate::services::backend::lookup::backend;
use crate::services::existing::bare_region;

/// Time before its retirement from which on a size gets a warning.
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
        let listed = self.candidate.size.as_deref();
        if let Some(row) = listed.and_then(|size| backend(self.candidate.service).offered(self, size)) {
            return row;
        }
        match self.is_served() {
            Some(_) => PreflightRow::ok(Question::Offered, region),
            None => {
                unanswered(Question::Offered, &Gap::Failed("regions of the service are unknown".to_owned()))
            }
        }
    }

    fn is_known_region(&self) -> Option<bool> {
        let regions = self.context.results.list(&Topic::Locations).ok()?;
        let wanted = bare_region(&self.candidate.region);
        Some(regions.iter().filter_map(|one| string(one, "/name")).any(|name| bare_region(name) == wanted))
    }

    fn service_name(&self) -> String {
        let service = self.service();
        let row = self.context.facts.services().service.iter().find(|row| row.id == service);
        row.map_or_else(|| service.to_owned(), |row| row.name.clone())
    }

    pub(crate) fn not_offered(&self, detail: &str, message: String) -> PreflightRow {
        let listed = self.candidate.size.as_deref();
        let fix = listed.and_then(|size| backend(self.candidate.service).size_list(size));
        let fix = fix.unwrap_or_else(|| "choose another region: cudock plan".to_owned());
        PreflightRow::new(Question::Offered, PreflightVerdict::Blocked, detail).because(
            codes::NOT_IN_REGION,
            message,
            fix,
        )
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
