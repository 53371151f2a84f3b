//! Judges results and facts. Pure: the same results give the same report.

mod account;
pub(crate) mod context;
pub(crate) mod need;
mod offer;
mod quota;
pub(crate) mod sku;
pub(crate) mod usage;

use cudock_facts::Facts;

use self::context::{CandidateContext, JudgeContext};
use super::report::{CandidateReport, PreflightReport, PreflightRow, PreflightVerdict};
use super::request::PreflightRequest;
use super::results::QueryResults;

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
