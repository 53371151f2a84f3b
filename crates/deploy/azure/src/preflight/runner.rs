//! Sends queries, several at once.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::Mutex;

use cudock_base::{lock, parallel};
use cudock_facts::Facts;
use serde_json::{Value, json};

use super::queries::{follow_ups, next_page, queries};
use super::query::{Query, Topic};
use super::request::PreflightRequest;
use super::results::{QueryResult, QueryResults};
use crate::call::Call;
use crate::client::AzureClient;
use crate::error::AzureError;

/// Requests in flight at most. All services of 52 regions are 216 queries: 11 rounds, 2.2 s at 200 ms each. Azure allows
/// 250 reads at once and 25 more each second.
pub const CONCURRENT: usize = 20;

/// Maximum number of pages read of a response.
const MAX_PAGES: usize = 40;

/// Queries Azure about everything in a request, as [`gather`] does.
pub fn ask_azure(client: &AzureClient, request: &PreflightRequest, facts: &Facts) -> QueryResults {
    gather(request, facts, |call| match client.send(call) {
        Ok(response) => Ok((response.status, Some(response.body))),
        // A refusal by a service is a result, too.
        Err(AzureError::Service(error)) => {
            let body = json!({"error": {"code": error.code, "message": error.message}});
            Ok((error.status, Some(body)))
        }
        Err(AzureError::SignIn(error)) => {
            Ok((401, Some(json!({"error": {"code": "SignIn", "message": error.to_string()}}))))
        }
        Err(error) => Err(error),
    })
}

/// Gathers everything about a request: first the queries known in advance, then those that depend
/// on their results. Nothing is cached: these results decide what is spent.
pub fn gather<E: Display>(
    request: &PreflightRequest,
    facts: &Facts,
    send: impl Fn(&Call) -> Result<(u16, Option<Value>), E> + Sync,
) -> QueryResults {
    let mut results = ask(&queries(request, facts), &send);
    results.extend(ask(&follow_ups(request, &results), &send));
    results
}

/// Sends queries over [`CONCURRENT`] threads at most. A provider that responds with 429, after the
/// client's own retries, gets no more queries: each further request would prolong the wait.
pub fn ask<E: Display>(
    queries: &[Query],
    send: impl Fn(&Call) -> Result<(u16, Option<Value>), E> + Sync,
) -> QueryResults {
    let throttled: Mutex<BTreeSet<&str>> = Mutex::default();
    let received = parallel(queries, CONCURRENT, |query| {
        let provider = query.topic.provider();
        if lock(&throttled).contains(provider) {
            return QueryResult::Failed(format!("{provider} is throttled"));
        }
        let result = all_pages(query, &send);
        if matches!(result, QueryResult::Response { status: 429, .. }) {
            lock(&throttled).insert(provider);
        }
        result
    });
    let mut results = QueryResults::default();
    for (query, result) in queries.iter().zip(received) {
        results.insert(query.topic.clone(), result);
    }
    results
}

/// The response with its further pages. One that is cut short counts as a failure: a missing entry
/// would look like "no".
fn all_pages<E: Display>(
    query: &Query,
    send: &(impl Fn(&Call) -> Result<(u16, Option<Value>), E> + Sync),
) -> QueryResult {
    let mut call = query.call.clone();
    let mut whole: Option<Value> = None;
    for _ in 0..MAX_PAGES {
        let (status, body) = match send(&call) {
            Ok((status, body)) => (status, body.unwrap_or(Value::Null)),
            Err(error) => return QueryResult::Failed(error.to_string()),
        };
        if !(200..=299).contains(&status) {
            return QueryResult::Response { status, body };
        }
        let next = next_page(&call, &body);
        let page = relevant(&query.topic, body);
        match &mut whole {
            None => whole = Some(page),
            Some(whole) => append(whole, page),
        }
        match next {
            Some(next) => call = next,
            None => return QueryResult::Response { status, body: whole.unwrap_or_default() },
        }
    }
    QueryResult::Failed(format!("the response has more than {MAX_PAGES} pages"))
}

/// Adds the elements of a further page.
fn append(whole: &mut Value, mut page: Value) {
    for list in ["value", "data"] {
        let more = page.get_mut(list).and_then(Value::as_array_mut);
        if let (Some(all), Some(more)) = (whole.get_mut(list).and_then(Value::as_array_mut), more) {
            all.append(more);
        }
    }
}

/// The part of a page that is judged. The list of sizes in all regions is tens of megabytes, most of which is not.
fn relevant(topic: &Topic, page: Value) -> Value {
    const KEPT: [&str; 5] = ["name", "family", "locations", "locationInfo", "restrictions"];
    const CAPABILITIES: [&str; 2] = ["vCPUs", "LowPriorityCapable"];
    if !matches!(topic, Topic::Skus(_)) {
        return page;
    }
    let Some(sizes) = page.get("value").and_then(Value::as_array) else { return page };
    let is_size = |one: &&Value| {
        let kind = one.get("resourceType").and_then(Value::as_str);
        kind.is_none_or(|kind| kind.eq_ignore_ascii_case("virtualMachines"))
    };
    let kept = sizes.iter().filter(is_size).map(|one| {
        let mut size: serde_json::Map<String, Value> =
            KEPT.iter().filter_map(|key| Some(((*key).to_owned(), one.get(*key)?.clone()))).collect();
        let capabilities = one.get("capabilities").and_then(Value::as_array).into_iter().flatten();
        let is_kept = |capability: &&Value| {
            capability.get("name").and_then(Value::as_str).is_some_and(|name| CAPABILITIES.contains(&name))
        };
        size.insert("capabilities".to_owned(), capabilities.filter(is_kept).cloned().collect());
        Value::Object(size)
    });
    json!({ "value": kept.collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use cudock_http::Method;

    use super::*;
    use crate::call::Plane;

    fn query(topic: Topic, path: &str) -> Query {
        let call =
            Call { method: Method::GET, plane: Plane::ResourceManager, path: path.to_owned(), body: None };
        Query { topic, call }
    }

    #[test]
    fn pages_are_joined_and_sizes_are_reduced() {
        let results = ask(&[query(Topic::Skus(None), "/first")], |call: &Call| -> Result<_, String> {
            let size = |name: &str| {
                json!({"name": name, "resourceType": "virtualMachines", "tier": "Standard",
                "capabilities": [{"name": "vCPUs", "value": "4"}, {"name": "ACUs", "value": "1"}]})
            };
            Ok((
                200,
                Some(match call.path.as_str() {
                    "/first" => {
                        json!({"value": [size("a"), {"name": "d", "resourceType": "disks"}], "nextLink": "https://h/second"})
                    }
                    _ => json!({"value": [size("b")], "unknown": true}),
                }),
            ))
        });
        let size = |name: &str| json!({"name": name, "capabilities": [{"name": "vCPUs", "value": "4"}]});
        assert_eq!(results.body(&Topic::Skus(None)), Ok(&json!({"value": [size("a"), size("b")]})));
    }

    #[test]
    fn an_answer_that_is_cut_short_is_no_answer() {
        for broken in [Err("connection reset".to_owned()), Ok((500, None))] {
            let results = ask(&[query(Topic::Providers, "/first")], |call: &Call| match call.path.as_str() {
                "/first" => Ok((200, Some(json!({"value": [1], "nextLink": "https://h/second"})))),
                _ => broken.clone(),
            });
            assert!(results.body(&Topic::Providers).is_err(), "{broken:?}");
        }
        let endless = |_: &Call| -> Result<_, String> {
            Ok((200, Some(json!({"value": [], "nextLink": "https://h/x"}))))
        };
        assert!(ask(&[query(Topic::Providers, "/x")], endless).body(&Topic::Providers).is_err());
    }

    #[test]
    fn a_provider_that_is_throttled_is_not_queried_again() {
        let regions: Vec<Query> =
            (0..100).map(|index| query(Topic::VmUsages(format!("r{index:03}")), "/usages")).collect();
        let sent = AtomicU32::new(0);
        let results = ask(&regions, |_: &Call| -> Result<_, String> {
            sent.fetch_add(1, Ordering::Relaxed);
            Ok((429, None))
        });
        let sent = sent.into_inner();
        assert!(usize::try_from(sent).unwrap() <= CONCURRENT, "{sent}");
        assert_eq!(results.all().count(), 100);
    }
}
