//! A request, and an Azure in which everything is fine until a test changes a result.

use cudock_azure::ExistingResources;
use cudock_azure::preflight::{
    Candidate, PreflightReport, PreflightRequest, PreflightRow, PreflightVerdict, PriceQuote, QueryResult,
    QueryResults, Question, Topic, judge, queries,
};
use cudock_base::{Date, Usd};
use cudock_facts::Facts;
use cudock_facts::services::AzureService;
use serde_json::{Value, json};

pub(crate) const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000000";
pub(crate) const T4: &str = "Standard_NC4as_T4_v3";
pub(crate) const A100: &str = "Standard_NC24ads_A100_v4";

pub(crate) fn day(text: &str) -> Date {
    text.parse().unwrap()
}

pub(crate) fn candidate(service: AzureService, size: &str, region: &str) -> Candidate {
    Candidate {
        service,
        size: Some(size.to_owned()),
        region: region.to_owned(),
        zone: None,
        instances: 1,
        cpus: 4.0,
        is_spot: false,
        serves: false,
        price: Some(PriceQuote { per_hour: Usd::from_cents(53), as_of: Some(day("2026-08-22")) }),
        image: None,
    }
}

pub(crate) fn request_for(candidates: Vec<Candidate>) -> PreflightRequest {
    PreflightRequest {
        subscription: SUBSCRIPTION.to_owned(),
        signed_in_as: "az as user@example.com".to_owned(),
        today: day("2026-11-16"),
        expires: day("2026-11-17"),
        existing: ExistingResources::default(),
        pull_identity: None,
        pull: None,
        candidates,
    }
}

pub(crate) fn ok(body: Value) -> QueryResult {
    QueryResult::Response { status: 200, body }
}

pub(crate) fn error(status: u16, code: &str) -> QueryResult {
    QueryResult::Response { status, body: json!({"error": {"code": code, "message": "as the service says"}}) }
}

pub(crate) fn usage(name: &str, used: i64, limit: i64) -> Value {
    json!({"unit": "Count", "currentValue": used, "limit": limit, "name": {"value": name, "localizedValue": name}})
}

pub(crate) fn sku(name: &str, family: &str, vcpus: &str, region: &str, restrictions: &Value) -> Value {
    json!({
        "resourceType": "virtualMachines", "name": name, "family": family, "locations": [region],
        "locationInfo": [{"location": region, "zones": ["1", "3"], "zoneDetails": []}],
        "capabilities": [{"name": "vCPUs", "value": vcpus}, {"name": "LowPriorityCapable", "value": "True"}],
        "restrictions": restrictions, "fieldOfTomorrow": {"x": 1},
    })
}

pub(crate) fn vm_usages() -> Value {
    json!({"value": [
        usage("cores", 14, 100), usage("virtualMachines", 10, 25000), usage("lowPriorityCores", 0, 100),
        usage("Standard NCASv3_T4 Family", 0, 16), usage("StandardNCADSA100v4Family", 0, 48),
    ]})
}

/// The result of a query if everything is fine.
fn fine(request: &PreflightRequest, topic: &Topic) -> Value {
    let mut regions: Vec<&str> = request.candidates.iter().map(|one| one.region.as_str()).collect();
    regions.sort_unstable();
    regions.dedup();
    match topic {
        Topic::Subscription => {
            json!({"state": "Enabled", "displayName": "research", "subscriptionPolicies": {"spendingLimit": "Off"}})
        }
        Topic::Locations => {
            json!({"value": regions.iter().map(|name| json!({"name": name})).collect::<Vec<_>>()})
        }
        Topic::Providers => {
            let provider = |(namespace, kind): (&str, &str)| {
                json!({"namespace": namespace, "registrationState": "Registered",
                    "resourceTypes": [{"resourceType": kind, "locations": regions}]})
            };
            let all = [
                ("Microsoft.Compute", "virtualMachines"),
                ("microsoft.network", "networkInterfaces"),
                ("Microsoft.Batch", "batchAccounts"),
                ("Microsoft.MachineLearningServices", "workspaces"),
                ("Microsoft.App", "managedEnvironments"),
                ("Microsoft.OperationalInsights", "workspaces"),
                ("Microsoft.ContainerInstance", "containerGroups"),
                ("Microsoft.Logic", "workflows"),
            ];
            json!({"value": all.map(provider)})
        }
        Topic::Permissions => json!({"value": [{"actions": ["*"], "notActions": []}]}),
        Topic::Skus(_) => {
            let both = |region: &&str| {
                [
                    sku(T4, "Standard NCASv3_T4 Family", "4", region, &json!([])),
                    sku(A100, "StandardNCADSA100v4Family", "24", region, &json!([])),
                ]
            };
            json!({"value": regions.iter().flat_map(both).collect::<Vec<_>>()})
        }
        Topic::VmUsages(_) => vm_usages(),
        Topic::VmQuotas => {
            let rows = regions.iter().flat_map(|region| {
                vm_usages()["value"].as_array().unwrap().clone().into_iter().map(move |row| {
                    json!({"location": region, "n": row["name"]["value"], "used": row["currentValue"], "max": row["limit"]})
                })
            });
            json!({"totalRecords": 1, "data": rows.collect::<Vec<_>>()})
        }
        Topic::BatchQuotas(_) => json!({"accountQuota": 3}),
        Topic::AciUsages(_) => json!({"value": [usage("ContainerGroups", 1, 100)]}),
        Topic::AppUsages(_) => json!({"value": [usage("ManagedEnvironmentCount", 1, 50)]}),
        _ => json!({"value": []}),
    }
}

/// All results of an Azure in which everything is fine.
pub(crate) fn fine_results(request: &PreflightRequest) -> QueryResults {
    let mut results = QueryResults::default();
    for query in queries(request, &Facts::embedded()) {
        let body = fine(request, &query.topic);
        results.insert(query.topic, ok(body));
    }
    results
}

/// The report, with some results changed.
pub(crate) fn report(request: &PreflightRequest, changes: Vec<(Topic, QueryResult)>) -> PreflightReport {
    let mut results = fine_results(request);
    for (topic, result) in changes {
        results.insert(topic, result);
    }
    judge(request, &results, &Facts::embedded())
}

/// The rows about a question, of the account or of the first candidate.
pub(crate) fn rows(report: &PreflightReport, question: Question) -> Vec<PreflightRow> {
    let first = report.candidates.first().map(|one| one.rows.as_slice()).unwrap_or_default();
    report.account.iter().chain(first).filter(|row| row.question == question).cloned().collect()
}

/// The verdict and the code of the only row about a question.
pub(crate) fn verdict(
    report: &PreflightReport,
    question: Question,
) -> (PreflightVerdict, Option<&'static str>) {
    let rows = rows(report, question);
    assert_eq!(rows.len(), 1, "{question:?}: {rows:?}");
    (rows[0].verdict, rows[0].finding.as_ref().map(|finding| finding.code))
}

/// What the first row about a question advises.
pub(crate) fn fix(report: &PreflightReport, question: Question) -> String {
    rows(report, question)[0].finding.as_ref().unwrap().fix.clone()
}
