//! Judges results and facts. Pure: the same results give the same report.

mod account;
mod offer;
mod quota;
mod sku;
mod usage;

pub(crate) use quota::Need;
pub(crate) use sku::{Restriction, Sku};
pub(crate) use usage::QuotaUsage;

use cudock_facts::Facts;

use super::codes;
use super::report::{CandidateReport, PreflightReport, PreflightRow, PreflightVerdict, Question};
use super::request::{Candidate, PreflightRequest};
use super::results::{Gap, QueryResults};
use crate::services::bare_region;

/// Everything that a row is judged by.
pub(crate) struct JudgeContext<'a> {
    pub(crate) request: &'a PreflightRequest,
    pub(crate) results: &'a QueryResults,
    pub(crate) facts: &'a Facts,
}

/// A candidate with what all of them have in common.
pub(crate) struct CandidateContext<'a> {
    pub(crate) context: &'a JudgeContext<'a>,
    pub(crate) candidate: &'a Candidate,
}

/// Whether the deployment will succeed, for each candidate.
pub fn judge(request: &PreflightRequest, results: &QueryResults, facts: &Facts) -> PreflightReport {
    let context = JudgeContext { request, results, facts };
    let candidates = request.candidates.iter().map(|candidate| {
        let rows = CandidateContext { context: &context, candidate }.rows();
        CandidateReport {
            service: candidate.service,
            size: candidate.size.clone(),
            region: candidate.region.clone(),
            is_spot: candidate.is_spot,
            price_per_hour: candidate.price.map(|price| price.per_hour),
            verdict: rows.iter().map(|row| row.verdict).max().unwrap_or(PreflightVerdict::Unknown),
            rows,
        }
    });
    PreflightReport { account: context.account_rows(), candidates: candidates.collect() }
}

impl CandidateContext<'_> {
    fn rows(&self) -> Vec<PreflightRow> {
        let mut rows = vec![self.rights(), self.providers(), self.offered()];
        rows.extend(self.quotas());
        rows.extend(self.retirement());
        rows.extend([self.image_runs(), self.price()]);
        rows
    }
}

/// The row of a question without a response from Azure.
pub(crate) fn unanswered(question: Question, gap: &Gap) -> PreflightRow {
    let reason = gap.describe();
    let fix = match gap {
        Gap::NotSignedIn => "az login",
        Gap::Denied => "ask for the role Reader on the subscription, or check it in the portal",
        Gap::NotFound | Gap::Failed(_) => "run it again",
    };
    let message = format!("the question about {} got no answer: {reason}", question.name());
    PreflightRow::new(question, PreflightVerdict::Unknown, reason).because(codes::NO_RESPONSE, message, fix)
}
