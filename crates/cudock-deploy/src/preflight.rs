//! Asks before the first paid resource which placements would fail.

use cudock_azure::AzureClient;
use cudock_azure::preflight::{
    Candidate, PreflightReport, PreflightRequest, PreflightVerdict, ask_azure, judge,
};
use cudock_base::Date;
use cudock_facts::Facts;

use crate::run::PlannedDeployment;

/// What is known about placements before one of them is tried.
#[derive(Debug)]
pub struct Preflight {
    pub report: PreflightReport,
    /// Those that nothing blocks, the best first.
    pub placements: Vec<PlannedDeployment>,
}

/// Asks everything about some placements at once, and leaves out those that would fail.
pub fn preflight(
    client: &AzureClient,
    facts: &Facts,
    placements: Vec<PlannedDeployment>,
    today: Date,
) -> Preflight {
    let Some(first) = placements.first() else {
        let report = PreflightReport { account: Vec::new(), candidates: Vec::new() };
        return Preflight { report, placements };
    };
    let mut request = PreflightRequest::of(&first.spec, client.sign_in_method(), today);
    request.candidates = placements.iter().map(|planned| Candidate::of(&planned.spec)).collect();
    let report = judge(&request, &ask_azure(client, &request, facts), facts);
    let is_account_fine = report.account.iter().all(|row| row.verdict != PreflightVerdict::Blocked);
    let is_open =
        report.candidates.iter().map(|one| is_account_fine && one.verdict != PreflightVerdict::Blocked);
    let placements =
        placements.into_iter().zip(is_open).filter(|(_, is_open)| *is_open).map(|(planned, _)| planned);
    let placements = placements.collect();
    Preflight { report, placements }
}
