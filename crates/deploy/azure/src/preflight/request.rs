//! The planned deployment, as far as preflight needs it.

use cudock_base::{Date, Usd};
use cudock_facts::finding::Finding;
use cudock_facts::services::AzureService;

use super::registry::PullResult;
use super::report::PreflightVerdict;
use crate::spec::{DeploymentSpec, ExistingResources, RegistryAccess, WorkKind};

#[derive(Debug, Clone, PartialEq)]
pub struct PreflightRequest {
    pub subscription: String,
    /// The sign-in in words: `az as user@example.com`.
    pub signed_in_as: String,
    pub today: Date,
    /// When everything is deleted. A size must not retire before.
    pub expires: Date,
    pub existing: ExistingResources,
    /// The identity that pulls the image, by its resource id.
    pub pull_identity: Option<String>,
    /// Whether the image can be pulled; none if that was not checked.
    pub pull: Option<PullResult>,
    /// The placements of a plan, the best first.
    pub candidates: Vec<Candidate>,
}

/// A placement that may be tried.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    pub service: AzureService,
    /// The size or workload profile; none for CPU work on services that need none.
    pub size: Option<String>,
    pub region: String,
    pub zone: Option<String>,
    pub instances: u32,
    /// Processors of an instance.
    pub cpus: f64,
    pub is_spot: bool,
    /// Whether it serves requests: endpoints of Machine Learning reserve quota for upgrades.
    pub serves: bool,
    pub price: Option<PriceQuote>,
    pub image: Option<ImageCheck>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriceQuote {
    /// Price per hour of all instances.
    pub per_hour: Usd,
    pub as_of: Option<Date>,
}

/// The verdict of `check` on the image on a size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageCheck {
    pub verdict: PreflightVerdict,
    pub detail: String,
    pub finding: Option<Finding>,
}

impl Candidate {
    /// The placement that a specification names.
    pub fn of(spec: &DeploymentSpec) -> Self {
        Self {
            service: spec.service,
            size: spec.size.clone(),
            region: spec.region.clone(),
            zone: None,
            instances: spec.instances,
            cpus: spec.cpus,
            is_spot: spec.is_spot,
            serves: matches!(spec.work, WorkKind::Serve { .. }),
            price: Some(PriceQuote { per_hour: spec.price_per_hour, as_of: None }),
            image: None,
        }
    }
}

impl PreflightRequest {
    /// The request for one specification.
    pub fn of(spec: &DeploymentSpec, signed_in_as: impl Into<String>, today: Date) -> Self {
        let pull_identity = match &spec.registry {
            Some(RegistryAccess::Identity { identity, .. }) => Some(identity.clone()),
            _ => None,
        };
        Self {
            subscription: spec.subscription.clone(),
            signed_in_as: signed_in_as.into(),
            today,
            expires: spec.expires.day(),
            existing: spec.existing.clone(),
            pull_identity,
            pull: None,
            candidates: vec![Candidate::of(spec)],
        }
    }

    /// The services of the candidates, each once.
    pub(crate) fn services(&self) -> impl Iterator<Item = AzureService> {
        let is_used = |service: &AzureService| self.candidates.iter().any(|one| one.service == *service);
        AzureService::ALL.into_iter().filter(is_used)
    }

    /// The regions of the candidates on a service, without repetition.
    pub(crate) fn regions_of(&self, service: AzureService) -> Vec<&str> {
        self.regions(|one| one.service == service)
    }

    /// The regions of the candidates that a condition holds for, without repetition.
    pub(super) fn regions(&self, of: impl Fn(&Candidate) -> bool) -> Vec<&str> {
        let mut regions: Vec<&str> =
            self.candidates.iter().filter(|candidate| of(candidate)).map(|one| one.region.as_str()).collect();
        regions.sort_unstable();
        regions.dedup();
        regions
    }
}

/// The parts of `GROUP/NAME`.
pub(crate) fn group_and_name(resource: &str) -> Option<(&str, &str)> {
    resource.split_once('/').filter(|(group, name)| !group.is_empty() && !name.is_empty())
}
