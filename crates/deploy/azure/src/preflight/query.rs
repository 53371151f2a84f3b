//! The read-only calls that preflight needs.

use cudock_base::text::percent;
use cudock_facts::Facts;
use cudock_http::Method;
use serde_json::{Value, json};

use super::answers::Answers;
use super::request::{Candidate, PreflightRequest, group_and_name};
use crate::call::{Body, Call, Plane};
use crate::spec::Target;

/// From this many regions on, one large answer about all regions is asked for in place of one for each.
const MANY_REGIONS: usize = 5;

/// Rows of a page of Resource Graph, at most.
const GRAPH_PAGE: u32 = 1000;

/// A call, and what it is about.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    pub topic: Topic,
    pub call: Call,
}

/// What a query is about.
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
    /// The provider that limits how many requests it answers.
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
    let subscription = format!("/subscriptions/{}", percent::encode(&request.subscription));
    let get = |topic: Topic, path: String| Query { topic, call: get(format!("{subscription}{path}")) };
    let at = |provider: &str, region: &str, what: &str| {
        format!("/providers/{provider}/locations/{}/{what}", percent::encode(region))
    };

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

    let needs_skus =
        |one: &Candidate| one.has_vm_size() && (one.target == Target::Vm || family(one, facts).is_none());
    let skus = "/providers/Microsoft.Compute/skus?api-version=2021-07-01";
    match request.regions(needs_skus) {
        regions if regions.len() >= MANY_REGIONS => all.push(get(Topic::Skus(None), skus.to_owned())),
        regions => all.extend(regions.into_iter().map(|region| {
            let filter = percent::encode(&format!("location eq '{region}'"));
            get(Topic::Skus(Some(region.to_owned())), format!("{skus}&$filter={filter}"))
        })),
    }
    match request.regions(|one| one.target == Target::Vm) {
        regions if regions.len() >= MANY_REGIONS => {
            all.push(Query { topic: Topic::VmQuotas, call: quota_graph(request, facts, &regions) });
        }
        regions => all.extend(regions.into_iter().map(|region| {
            let path = at("Microsoft.Compute", region, "usages?api-version=2024-07-01");
            get(Topic::VmUsages(region.to_owned()), path)
        })),
    }

    if request.uses(Target::Batch) {
        all.push(get(
            Topic::BatchAccounts,
            "/providers/Microsoft.Batch/batchAccounts?api-version=2024-07-01".to_owned(),
        ));
    }
    let has_account = request.existing.batch_account.is_some();
    all.extend(request.regions(|one| one.target == Target::Batch).into_iter().map(|region| {
        let (topic, what) = if has_account {
            (Topic::BatchSizes(region.to_owned()), "virtualMachineSkus?api-version=2024-07-01")
        } else {
            (Topic::BatchQuotas(region.to_owned()), "quotas?api-version=2024-07-01")
        };
        get(topic, at("Microsoft.Batch", region, what))
    }));
    all.extend(request.regions(|one| one.target == Target::Ml).into_iter().map(|region| {
        let path = at("Microsoft.MachineLearningServices", region, "usages?api-version=2024-10-01");
        get(Topic::MlUsages(region.to_owned()), path)
    }));
    for region in request.regions(|one| one.target == Target::ContainerApps) {
        let profiles = "availableManagedEnvironmentsWorkloadProfileTypes?api-version=2025-07-01";
        all.push(get(Topic::AppProfiles(region.to_owned()), at("Microsoft.App", region, profiles)));
        let usages = at("Microsoft.App", region, "usages?api-version=2025-07-01");
        all.push(get(Topic::AppUsages(region.to_owned()), usages));
    }
    let environment = request.existing.container_apps_environment.as_deref().and_then(group_and_name);
    if let Some((group, name)) = environment.filter(|_| request.uses(Target::ContainerApps)) {
        let (group, name) = (percent::encode(group), percent::encode(name));
        let path = format!(
            "/resourceGroups/{group}/providers/Microsoft.App/managedEnvironments/{name}/usages?api-version=2025-07-01"
        );
        all.push(get(Topic::EnvironmentUsages, path));
    }
    all.extend(request.regions(|one| one.target == Target::Aci).into_iter().map(|region| {
        let path = at("Microsoft.ContainerInstance", region, "usages?api-version=2023-05-01");
        get(Topic::AciUsages(region.to_owned()), path)
    }));
    if let Some(identity) = request.pull_identity.as_deref().filter(|id| id.starts_with('/')) {
        let path: Vec<String> = identity.split('/').map(percent::encode).collect();
        let call = self::get(format!("{}?api-version=2023-01-31", path.join("/")));
        all.push(Query { topic: Topic::PullIdentity, call });
    }
    all
}

/// Queries that the first answers lead to.
pub(super) fn follow_ups(request: &PreflightRequest, answers: &Answers) -> Vec<Query> {
    let identity = answers.body(&Topic::PullIdentity).ok();
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
pub(super) fn family<'a>(candidate: &Candidate, facts: &'a Facts) -> Option<&'a str> {
    let size = facts.sizes().find(candidate.size.as_deref()?).one()?;
    size.quota_family.as_deref().filter(|_| size.vcpu.is_some())
}

fn get(path: String) -> Call {
    Call { method: Method::GET, plane: Plane::ResourceManager, path, body: None }
}

/// The usage of virtual machine cores in some regions, by one query of Resource Graph.
fn quota_graph(request: &PreflightRequest, facts: &Facts, regions: &[&str]) -> Call {
    let on_vm = || request.candidates.iter().filter(|one| one.target == Target::Vm);
    let mut names: Vec<&str> =
        on_vm().filter_map(|one| family(one, facts)).chain(["cores", "lowPriorityCores"]).collect();
    names.sort_unstable();
    names.dedup();
    // A size that the tables do not have may be of any family.
    let are_known = on_vm().all(|one| one.size.is_none() || family(one, facts).is_some());
    let of_families = if are_known { format!(" | where n in~ ({})", quoted(&names)) } else { String::new() };
    let query = format!(
        "QuotaResources | where type =~ 'microsoft.compute/locations/usages' | where location in~ ({}) \
         | mv-expand j = properties.value limit 400 | extend n = tostring(j.name.value){of_families} \
         | project location, n, used = j.currentValue, max = j['limit']",
        quoted(regions)
    );
    let body = json!({
        "subscriptions": [request.subscription],
        "query": query,
        "options": {"resultFormat": "objectArray", "$top": GRAPH_PAGE},
    });
    Call {
        method: Method::POST,
        plane: Plane::ResourceManager,
        path: "/providers/Microsoft.ResourceGraph/resources?api-version=2022-10-01".to_owned(),
        body: Some(Body::new(body)),
    }
}

/// Names as a list of a query. Characters that no name has are left out, so that none ends the text.
fn quoted(names: &[&str]) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '_' | '-');
    let names: Vec<String> =
        names.iter().map(|name| format!("'{}'", name.chars().filter(is_plain).collect::<String>())).collect();
    names.join(", ")
}

/// The call for the next page of an answer, if there is one.
pub(super) fn next_page(call: &Call, answer: &Value) -> Option<Call> {
    if let Some(token) = answer.get("$skipToken").and_then(Value::as_str) {
        let mut body = call.body.as_ref()?.redacted().clone();
        body.get_mut("options")?.as_object_mut()?.insert("$skipToken".to_owned(), token.into());
        return Some(Call { body: Some(Body::new(body)), ..call.clone() });
    }
    // Only the path is kept: the client sends the token to its own host and to no other.
    let link = answer.get("nextLink").and_then(Value::as_str)?;
    let after_scheme = link.split_once("://").map_or(link, |(_, rest)| rest);
    let path = after_scheme.get(after_scheme.find('/')?..)?;
    Some(Call { path: path.to_owned(), body: None, ..call.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_stays_on_the_same_host() {
        let call = get("/subscriptions/s/providers?api-version=2021-04-01".to_owned());
        for (answer, path) in [
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
            assert_eq!(next_page(&call, &answer).map(|call| call.path).as_deref(), path, "{answer}");
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

    #[test]
    fn names_cannot_end_the_text_of_a_query() {
        assert_eq!(
            quoted(&["Standard NCASv3_T4 Family", "x') | union y"]),
            "'Standard NCASv3_T4 Family', 'x  union y'"
        );
    }
}
