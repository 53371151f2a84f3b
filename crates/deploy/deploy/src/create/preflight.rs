//! Finds the placements that would fail, before the first paid resource.

use std::thread;

use cudock_azure::AzureClient;
use cudock_azure::preflight::{
    Candidate, PreflightReport, PreflightRequest, PreflightVerdict, ask_azure, judge,
};
use cudock_base::{Date, Environment};
use cudock_facts::Facts;

use crate::create::image::ask_registry;
use crate::create::run::PlannedDeployment;

/// The result of checking placements before one of them is tried.
#[derive(Debug)]
pub struct Preflight {
    pub report: PreflightReport,
    /// Placements that nothing blocks, the best first.
    pub placements: Vec<PlannedDeployment>,
}

/// Checks some placements with Azure and the image's registry at once, and omits those that would
/// fail.
pub fn preflight(
    client: &AzureClient,
    facts: &Facts,
    environment: &Environment,
    placements: Vec<PlannedDeployment>,
    today: Date,
) -> Preflight {
    let Some(first) = placements.first() else {
        let report = PreflightReport { account: Vec::new(), candidates: Vec::new() };
        return Preflight { report, placements };
    };
    let mut request = PreflightRequest::of(&first.spec, client.sign_in_method(), today);
    request.candidates = placements.iter().map(|planned| Candidate::of(&planned.spec)).collect();
    let (results, image) = thread::scope(|scope| {
        let image = scope.spawn(|| ask_registry(client, facts, environment, &placements, today));
        (ask_azure(client, &request, facts), image.join().ok().flatten())
    });
    if let Some(image) = image {
        request.pull = Some(image.pull);
        for (candidate, check) in request.candidates.iter_mut().zip(image.checks) {
            candidate.image = Some(check);
        }
    }
    let report = judge(&request, &results, facts);
    let is_account_fine = report.account.iter().all(|row| row.verdict != PreflightVerdict::Blocked);
    let is_open =
        report.candidates.iter().map(|one| is_account_fine && one.verdict != PreflightVerdict::Blocked);
    let placements =
        placements.into_iter().zip(is_open).filter(|(_, is_open)| *is_open).map(|(planned, _)| planned);
    let placements = placements.collect();
    Preflight { report, placements }
}
