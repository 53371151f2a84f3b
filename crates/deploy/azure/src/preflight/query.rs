//! A read-only call, and what it is about.

use cudock_base::text::percent;
use cudock_facts::Facts;
use cudock_http::Method;

use super::request::{Candidate, PreflightRequest};
use crate::call::{Call, Plane};

/// Number of regions from which on one large query about all regions replaces one for each.
pub(crate) const MANY_REGIONS: usize = 5;

/// A call, and what it is about.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    pub topic: Topic,
    pub call: Call,
}

/// The topic of a query.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topic {
    Subscription,
    Locations,
    Providers,
    Permissions,
    Locks,
    /// Sizes with their restrictions, of one region or of all.
    Skus(Option<String>),
    VmUsages(String),
    /// The quota of virtual machines in all regions.
    VmQuotas,
    BatchAccounts,
    BatchQuotas(String),
    BatchSizes(String),
    MlUsages(String),
    AppProfiles(String),
    AppUsages(String),
    EnvironmentUsages,
    AciUsages(String),
    /// The identity that pulls the image.
    PullIdentity,
    /// The roles of that identity.
    PullRoles,
}

impl Topic {
    /// The provider that limits the rate of requests.
    pub(super) const fn provider(&self) -> &'static str {
        match self {
            Self::Skus(_) | Self::VmUsages(_) => "Microsoft.Compute",
            Self::VmQuotas => "Microsoft.ResourceGraph",
            Self::BatchAccounts | Self::BatchQuotas(_) | Self::BatchSizes(_) => "Microsoft.Batch",
            Self::MlUsages(_) => "Microsoft.MachineLearningServices",
            Self::AppProfiles(_) | Self::AppUsages(_) | Self::EnvironmentUsages => "Microsoft.App",
            Self::AciUsages(_) => "Microsoft.ContainerInstance",
            Self::Permissions | Self::Locks | Self::PullRoles => "Microsoft.Authorization",
            Self::PullIdentity => "Microsoft.ManagedIdentity",
            Self::Subscription | Self::Locations | Self::Providers => "Microsoft.Resources",
        }
    }
}

impl PreflightRequest {
    /// A query about the subscription.
    pub(crate) fn query(&self, topic: Topic, path: &str) -> Query {
        let subscription = percent::encode(&self.subscription);
        Query { topic, call: get(format!("/subscriptions/{subscription}{path}")) }
    }

    /// A query about a region.
    pub(crate) fn regional_query(&self, topic: Topic, provider: &str, region: &str, what: &str) -> Query {
        self.query(topic, &format!("/providers/{provider}/locations/{}/{what}", percent::encode(region)))
    }
}

/// The quota family of a candidate's size, as the tables spell it.
pub(crate) fn family<'a>(candidate: &Candidate, facts: &'a Facts) -> Option<&'a str> {
    let size = facts.sizes().find(candidate.size.as_deref()?).one()?;
    size.quota_family.as_deref().filter(|_| size.vcpu.is_some())
}

pub(super) fn get(path: String) -> Call {
    Call { method: Method::GET, plane: Plane::ResourceManager, path, body: None }
}
