//! The read-only calls that preflight needs.

use cudock_base::text::percent;
use cudock_facts::Facts;
use cudock_http::Method;
use serde_json::Value;

use super::request::{Candidate, PreflightRequest};
use super::results::QueryResults;
use crate::call::{Body, Call, Plane};
use crate::services::backend::backend;

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

/// All queries about a request. They do not depend on each other.
pub fn queries(request: &PreflightRequest, facts: &Facts) -> Vec<Query> {
    let get = |topic: Topic, path: String| request.query(topic, &path);
    let mut all = vec![
        get(Topic::Subscription, "?api-version=2022-12-01".to_owned()),
        get(Topic::Providers, "/providers?api-version=2021-04-01".to_owned()),
        get(
            Topic::Permissions,
            "/providers/Microsoft.Authorization/permissions?api-version=2022-04-01".to_owned(),
        ),
        get(Topic::Locks, "/providers/Microsoft.Authorization/locks?api-version=2016-09-01".to_owned()),
    ];
    if request.regions(|_| true).len() > 1 {
        all.push(get(Topic::Locations, "/locations?api-version=2022-12-01".to_owned()));
    }

    let needs_skus = |one: &Candidate| {
        let reads = backend(one.service).requirements().reads_vm_sizes;
        one.has_vm_size() && (reads || family(one, facts).is_none())
    };
    let skus = "/providers/Microsoft.Compute/skus?api-version=2021-07-01";
    match request.regions(needs_skus) {
        regions if regions.len() >= MANY_REGIONS => all.push(get(Topic::Skus(None), skus.to_owned())),
        regions => all.extend(regions.into_iter().map(|region| {
            let filter = percent::encode(&format!("location eq '{region}'"));
            get(Topic::Skus(Some(region.to_owned())), format!("{skus}&$filter={filter}"))
        })),
    }
    all.extend(request.backends().flat_map(|backend| backend.queries(request, facts)));
    if let Some(identity) = request.pull_identity.as_deref().filter(|id| id.starts_with('/')) {
        let path: Vec<String> = identity.split('/').map(percent::encode).collect();
        let call = self::get(format!("{}?api-version=2023-01-31", path.join("/")));
        all.push(Query { topic: Topic::PullIdentity, call });
    }
    all
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

/// Queries that depend on the results of the first ones.
pub(super) fn follow_ups(request: &PreflightRequest, results: &QueryResults) -> Vec<Query> {
    let identity = results.body(&Topic::PullIdentity).ok();
    let principal = identity.and_then(|body| body.pointer("/properties/principalId")?.as_str());
    let roles = principal.map(|principal| {
        let subscription = percent::encode(&request.subscription);
        let filter = percent::encode(&format!("principalId eq '{principal}'"));
        let path = format!(
            "/subscriptions/{subscription}/providers/Microsoft.Authorization/roleAssignments?api-version=2022-04-01&$filter={filter}"
        );
        Query { topic: Topic::PullRoles, call: get(path) }
    });
    roles.into_iter().collect()
}

/// The quota family of a candidate's size, as the tables spell it.
pub(crate) fn family<'a>(candidate: &Candidate, facts: &'a Facts) -> Option<&'a str> {
    let size = facts.sizes().find(candidate.size.as_deref()?).one()?;
    size.quota_family.as_deref().filter(|_| size.vcpu.is_some())
}

fn get(path: String) -> Call {
    Call { method: Method::GET, plane: Plane::ResourceManager, path, body: None }
}

/// The call for the next page of a response, if there is one.
pub(super) fn next_page(call: &Call, response: &Value) -> Option<Call> {
    if let Some(token) = response.get("$skipToken").and_then(Value::as_str) {
        let mut body = call.body.as_ref()?.redacted().clone();
        body.get_mut("options")?.as_object_mut()?.insert("$skipToken".to_owned(), token.into());
        return Some(Call { body: Some(Body::new(body)), ..call.clone() });
    }
    // Only the path is kept: the client sends the token to its own host and to no other.
    let link = response.get("nextLink").and_then(Value::as_str)?;
    let after_scheme = link.split_once("://").map_or(link, |(_, rest)| rest);
    let path = after_scheme.get(after_scheme.find('/')?..)?;
    Some(Call { path: path.to_owned(), body: None, ..call.clone() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_next_page_stays_on_the_same_host() {
        let call = get("/subscriptions/s/providers?api-version=2021-04-01".to_owned());
        for (response, path) in [
            (
                json!({"nextLink": "https://evil.example/subscriptions/s/providers?p=2"}),
                Some("/subscriptions/s/providers?p=2"),
            ),
            (json!({"nextLink": "/subscriptions/s?p=2"}), Some("/subscriptions/s?p=2")),
            (json!({"nextLink": "https://host-without-path"}), None),
            (json!({"nextLink": null}), None),
            (json!({"nextLink": ""}), None),
            (json!({}), None),
            (json!([1]), None),
        ] {
            assert_eq!(next_page(&call, &response).map(|call| call.path).as_deref(), path, "{response}");
        }
    }

    #[test]
    fn a_query_of_resource_graph_continues_by_its_token() {
        let body = Body::new(json!({"query": "q", "options": {"$top": 1000}}));
        let call =
            Call { method: Method::POST, plane: Plane::ResourceManager, path: "/g".into(), body: Some(body) };
        let next = next_page(&call, &json!({"data": [], "$skipToken": "t"})).unwrap();
        assert_eq!(next.body.unwrap().redacted()["options"], json!({"$top": 1000, "$skipToken": "t"}));
    }
}
