//! The read-only calls that preflight needs.

use cudock_base::text::percent;
use cudock_facts::Facts;
use serde_json::Value;

use super::query::{MANY_REGIONS, Query, Topic, family, get};
use super::request::{Candidate, PreflightRequest};
use super::results::QueryResults;
use crate::call::{Body, Call};
use crate::services::backend::Backend;
use crate::services::backend::lookup::backend;

/// All queries about a request. They do not depend on each other.
pub fn queries(request: &PreflightRequest, facts: &Facts) -> Vec<Query> {
    let about = |topic: Topic, path: String| request.query(topic, &path);
    let mut all = vec![
        about(Topic::Subscription, "?api-version=2022-12-01".to_owned()),
        about(Topic::Providers, "/providers?api-version=2021-04-01".to_owned()),
        about(
            Topic::Permissions,
            "/providers/Microsoft.Authorization/permissions?api-version=2022-04-01".to_owned(),
        ),
        about(Topic::Locks, "/providers/Microsoft.Authorization/locks?api-version=2016-09-01".to_owned()),
    ];
    if request.regions(|_| true).len() > 1 {
        all.push(about(Topic::Locations, "/locations?api-version=2022-12-01".to_owned()));
    }

    let needs_skus = |one: &Candidate| {
        let reads = backend(one.service).requirements().reads_vm_sizes;
        one.has_vm_size() && (reads || family(one, facts).is_none())
    };
    let skus = "/providers/Microsoft.Compute/skus?api-version=2021-07-01";
    match request.regions(needs_skus) {
        regions if regions.len() >= MANY_REGIONS => all.push(about(Topic::Skus(None), skus.to_owned())),
        regions => all.extend(regions.into_iter().map(|region| {
            let filter = percent::encode(&format!("location eq '{region}'"));
            about(Topic::Skus(Some(region.to_owned())), format!("{skus}&$filter={filter}"))
        })),
    }
    all.extend(request.backends().flat_map(|backend| backend.queries(request, facts)));
    if let Some(identity) = request.pull_identity.as_deref().filter(|id| id.starts_with('/')) {
        let path: Vec<String> = identity.split('/').map(percent::encode).collect();
        let call = get(format!("{}?api-version=2023-01-31", path.join("/")));
        all.push(Query { topic: Topic::PullIdentity, call });
    }
    all
}

impl Candidate {
    /// Whether it runs on a size of virtual machines.
    pub(super) fn has_vm_size(&self) -> bool {
        self.size.is_some() && backend(self.service).requirements().has_vm_sizes
    }
}

impl PreflightRequest {
    pub(super) fn backends(&self) -> impl Iterator<Item = &'static dyn Backend> {
        self.services().map(backend)
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
    use cudock_http::Method;
    use serde_json::json;

    use super::*;
    use crate::call::Plane;

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
