//! Preflight questions about the image: whether Azure will be allowed to pull it, and whether it
//! runs on the sizes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cudock_azure::preflight::{
    ImageCheck, PreflightVerdict, PullCredentials, PullQuestion, PullResult, codes, is_azure_registry,
};
use cudock_azure::{AzureClient, DeploymentSpec, RegistryAccess};
use cudock_base::text::error_chain;
use cudock_base::text::format;
use cudock_base::{Arch, Date, Environment};
use cudock_compat::{ImageSet, Judgement, Target, Verdict};
use cudock_facts::Facts;
use cudock_facts::finding::{Finding, Severity};
use cudock_http::{NoProgress, RetryPolicy};
use cudock_image::registry::{Client, Credentials, Error, Options, Reference, user_store};
use cudock_image::{Access, ImageSource, Platform, Pull};

use crate::create::run::PlannedDeployment;

/// Maximum number of bytes to fetch to judge an image. `cudock check` fetches larger ones, and then
/// they are here.
const MOST_FETCHED: u64 = 1 << 30;

/// Time limit for the registry. Azure's part of preflight takes three seconds; a registry that does
/// not respond should not delay it for much longer.
const TIMEOUT: Duration = Duration::from_secs(10);
const RETRIES: RetryPolicy = RetryPolicy {
    max_retries: 1,
    initial_delay: Duration::from_millis(200),
    max_delay: Duration::from_secs(1),
};

/// The registry's responses.
#[derive(Debug)]
pub(crate) struct ImageResults {
    pub(crate) pull: PullResult,
    /// The verdicts on the image, one for each placement.
    pub(crate) checks: Vec<ImageCheck>,
}

/// Queries the registry about the image of some placements, which all have the same.
pub(crate) fn ask_registry(
    client: &AzureClient,
    facts: &Facts,
    environment: &Environment,
    placements: &[PlannedDeployment],
    today: Date,
) -> Option<ImageResults> {
    let spec = &placements.first()?.spec;
    let pull = pull_right(client, spec, environment);
    let checks = check_image(facts, placements, &pull, today);
    Some(ImageResults { pull, checks })
}

/// Requests the manifest with the credentials of the deployment. Mirrors and sign-ins of this
/// machine are not used: Azure does not have them.
fn pull_right(client: &AzureClient, spec: &DeploymentSpec, environment: &Environment) -> PullResult {
    let reference: Reference = match spec.image.parse() {
        Ok(reference) => reference,
        Err(error) => return PullResult::Unreachable(error_chain(&error)),
    };
    let (credentials, who) = match &spec.registry {
        Some(RegistryAccess::Password { username, password, .. }) => {
            (Credentials::of_password(username, password.clone()), PullCredentials::Password)
        }
        Some(RegistryAccess::Identity { server, .. }) if is_azure_registry(server) => {
            let tag = || reference.tag_or_latest().to_owned();
            return client.pull_right(&PullQuestion {
                registry: format!("https://{server}"),
                repository: reference.repository.clone(),
                reference: reference.digest.as_ref().map_or_else(tag, ToString::to_string),
            });
        }
        // Other registries know no identities of Azure, and must not get the account's token.
        None | Some(RegistryAccess::Identity { .. }) => (Credentials::default(), PullCredentials::Anonymous),
    };
    let exists = || {
        let store = user_store(environment)?;
        let certificates = cudock_http::trusted_certificates(environment);
        let options =
            Options { credentials, certificates, retries: RETRIES, timeout: TIMEOUT, ..Options::new(store) };
        Client::new(options)?.exists(&reference)
    };
    match exists() {
        Ok(true) => PullResult::Allowed,
        Ok(false) => PullResult::NotFound,
        Err(Error::Unauthorized { .. } | Error::Forbidden { .. }) => PullResult::Denied(who),
        Err(error) => PullResult::Unreachable(error_chain(&error)),
    }
}

/// The verdict of `cudock check` for each placement. An image that needs no GPU is not inspected.
fn check_image(
    facts: &Facts,
    placements: &[PlannedDeployment],
    pull: &PullResult,
    today: Date,
) -> Vec<ImageCheck> {
    let Some(image) = placements.iter().find(|planned| planned.spec.gpus > 0).map(|one| &one.spec.image)
    else {
        let without =
            ImageCheck { verdict: PreflightVerdict::Ok, detail: "needs no GPU".to_owned(), finding: None };
        return vec![without; placements.len()];
    };
    let environment = BTreeMap::new();
    let mut images = match pull {
        // Even if Azure may not pull it, this machine may be signed in to the registry.
        PullResult::Allowed | PullResult::Denied(_) => open(image, &environment),
        PullResult::NotFound | PullResult::Unreachable(_) => Err("the image cannot be read".to_owned()),
    };
    let mut check = |planned: &PlannedDeployment| match &mut images {
        Ok(images) => judge_on(images, facts, &planned.spec, today).unwrap_or_else(|error| unknown(&error)),
        Err(reason) => unknown(reason),
    };
    placements.iter().map(&mut check).collect()
}

/// The image that Azure will pull, not one of the same name on this machine.
fn open<'a>(image: &'a str, environment: &'a BTreeMap<String, String>) -> Result<ImageSet<'a>, String> {
    let access = Access {
        platform: Some(Platform::linux(Arch::X86_64.oci_name())),
        offline: false,
        pull: Some(Pull::Always),
        progress: Arc::new(NoProgress),
    };
    let source = ImageSource::reference(image).map_err(|error| error_chain(&error))?;
    ImageSet::open(&source, &access, image, environment, &|_| {}).map_err(|error| error_chain(&error))
}

fn judge_on(
    images: &mut ImageSet<'_>,
    facts: &Facts,
    spec: &DeploymentSpec,
    today: Date,
) -> Result<ImageCheck, String> {
    let size = spec.size.as_deref().unwrap_or_default();
    let target = match facts.services().profile.iter().find(|profile| profile.name.eq_ignore_ascii_case(size))
    {
        Some(profile) => Target::of_profile(facts, profile),
        None => Target::of_size(facts, &format!("{}/{size}", spec.service.id()), None, today),
    };
    let target = target.map_err(|error| error_chain(&error))?;
    let missing = images.first().map_or(0, |(image, _)| image.bytes_to_fetch());
    let judged =
        images.judge(vec![target], facts, missing > MOST_FETCHED).map_err(|error| error_chain(&error))?;
    match judged.into_iter().next() {
        Some((_, Some(judgement))) => Ok(of_judgement(judgement)),
        _ => Err(format!("{} of layers are not on this machine", format::bytes(missing))),
    }
}

fn of_judgement(judgement: Judgement) -> ImageCheck {
    let verdict = match judgement.verdict {
        Verdict::Works | Verdict::Jit => PreflightVerdict::Ok,
        Verdict::Unknown => PreflightVerdict::Unknown,
        Verdict::Cpu => PreflightVerdict::Warning,
        Verdict::Fails => PreflightVerdict::Blocked,
    };
    let finding = judgement.findings.into_iter().next().filter(|_| verdict > PreflightVerdict::Unknown);
    ImageCheck { verdict, detail: judgement.reason, finding }
}

fn unknown(reason: &str) -> ImageCheck {
    let message = format!("cannot check whether the image runs there: {reason}");
    let finding = Finding::new(codes::NO_RESPONSE, Severity::Note, message, "cudock check IMAGE --size SIZE");
    ImageCheck { verdict: PreflightVerdict::Unknown, detail: reason.to_owned(), finding: Some(finding) }
}
