//! Few calls, and all of them at once.

use cudock_facts::services::AzureService;
use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use cudock_azure::preflight::{
    CONCURRENT, PreflightVerdict, Question, Topic, ask, ask_azure, gather, judge, queries,
};
use cudock_azure::{Call, ExistingResources};
use cudock_facts::Facts;
use serde_json::{Value, json};

use super::support::{T4, candidate, request_for, verdict};
use crate::support::{azure, client, refusal, reply};

/// How long each call of the acceptance criterion takes, and all of them together may.
const CALL_MILLIS: usize = 200;
const LIMIT_MILLIS: usize = 3000;

fn regions(count: usize) -> Vec<String> {
    (0..count).map(|index| format!("region{index:02}")).collect()
}

const ALL_TARGETS: [(AzureService, &str); 4] = [
    (AzureService::Vm, T4),
    (AzureService::Batch, T4),
    (AzureService::Ml, T4),
    (AzureService::ContainerApps, "Consumption-GPU-NC8as-T4"),
];

#[test]
fn the_number_of_calls_is_that_of_the_plan() {
    let facts = Facts::embedded();
    let count = |targets: &[(AzureService, &str)], count: usize| {
        let all = regions(count);
        let candidates = all
            .iter()
            .flat_map(|region| targets.iter().map(|(service, size)| candidate(*service, size, region)));
        queries(&request_for(candidates.collect()), &facts).len()
    };
    // Subscription, providers, permissions, locks, sizes, usages; with several regions, also the regions.
    assert_eq!(count(&ALL_TARGETS[..1], 1), 6);
    assert_eq!(count(&ALL_TARGETS[..1], 2), 4 + 1 + 2 * 2);
    assert_eq!(count(&ALL_TARGETS[..1], 52), 7, "one query gives the quota of all regions");
    // Per region: Batch 1, Machine Learning 1, Container Apps 2; and the list of Batch accounts.
    assert_eq!(count(&ALL_TARGETS, 52), 7 + 1 + 52 * 4);
    assert_eq!(count(&[], 0), 4);
}

#[test]
fn paths_and_bodies_are_those_of_the_services() {
    let mut request = request_for(vec![
        candidate(AzureService::Vm, T4, "westeurope"),
        candidate(AzureService::Batch, T4, "westeurope"),
        candidate(AzureService::Ml, T4, "westeurope"),
        candidate(AzureService::ContainerApps, "Consumption-GPU-NC8as-T4", "westeurope"),
        candidate(AzureService::Aci, "", "westeurope"),
    ]);
    request.existing = ExistingResources {
        batch_account: Some("team/shared".into()),
        container_apps_environment: Some("team/env".into()),
        ..ExistingResources::default()
    };
    request.pull_identity = Some("/subscriptions/s/resourceGroups/team/providers/Microsoft.ManagedIdentity/userAssignedIdentities/puller".into());
    let all = queries(&request, &Facts::embedded());
    let paths: BTreeSet<&str> = all.iter().map(|query| query.call.path.as_str()).collect();
    let s = "/subscriptions/00000000-0000-0000-0000-000000000000";
    for path in [
        format!("{s}?api-version=2022-12-01"),
        format!("{s}/providers?api-version=2021-04-01"),
        format!("{s}/providers/Microsoft.Authorization/permissions?api-version=2022-04-01"),
        format!("{s}/providers/Microsoft.Authorization/locks?api-version=2016-09-01"),
        format!("{s}/providers/Microsoft.Compute/skus?api-version=2021-07-01&$filter=location%20eq%20%27westeurope%27"),
        format!("{s}/providers/Microsoft.Compute/locations/westeurope/usages?api-version=2024-07-01"),
        format!("{s}/providers/Microsoft.Batch/batchAccounts?api-version=2024-07-01"),
        format!("{s}/providers/Microsoft.Batch/locations/westeurope/virtualMachineSkus?api-version=2024-07-01"),
        format!("{s}/providers/Microsoft.MachineLearningServices/locations/westeurope/usages?api-version=2024-10-01"),
        format!("{s}/providers/Microsoft.App/locations/westeurope/availableManagedEnvironmentsWorkloadProfileTypes?api-version=2025-07-01"),
        format!("{s}/providers/Microsoft.App/locations/westeurope/usages?api-version=2025-07-01"),
        format!("{s}/resourceGroups/team/providers/Microsoft.App/managedEnvironments/env/usages?api-version=2025-07-01"),
        format!("{s}/providers/Microsoft.ContainerInstance/locations/westeurope/usages?api-version=2023-05-01"),
        "/subscriptions/s/resourceGroups/team/providers/Microsoft.ManagedIdentity/userAssignedIdentities/puller?api-version=2023-01-31".to_owned(),
    ] {
        assert!(paths.contains(path.as_str()), "{path}\n{paths:#?}");
    }
    assert_eq!(paths.len(), 14);
    assert!(all.iter().all(|query| query.call.method.as_str() == "GET" && query.call.body.is_none()));
}

#[test]
fn one_query_of_resource_graph_asks_for_the_families_in_question() {
    let request =
        request_for(regions(6).iter().map(|region| candidate(AzureService::Vm, T4, region)).collect());
    let all = queries(&request, &Facts::embedded());
    let graph = all.iter().find(|query| query.topic == Topic::VmQuotas).unwrap();
    let body = graph.call.body.as_ref().unwrap().redacted();
    assert_eq!(body["subscriptions"], json!([request.subscription]));
    let query = body["query"].as_str().unwrap();
    assert!(
        query.contains("where n in~ ('Standard NCASv3_T4 Family', 'cores', 'lowPriorityCores')"),
        "{query}"
    );
    assert!(query.contains("location in~ ('region00', 'region01',"), "{query}");
    assert!(!all.iter().any(|query| matches!(query.topic, Topic::VmUsages(_))));

    let mut unknown = request.clone();
    unknown.candidates[0].size = Some("Standard_D4s_v5".into());
    let all = queries(&unknown, &Facts::embedded());
    let graph = all.iter().find(|query| query.topic == Topic::VmQuotas).unwrap();
    let query = graph.call.body.as_ref().unwrap().redacted()["query"].as_str().unwrap();
    assert!(!query.contains("where n in~"), "a size without a row may be of any family: {query}");
}

/// A service that answers calls in rounds: a round ends when as many calls are in flight as can be. A runner that sends
/// fewer at once than it could would wait for ever, and fails.
struct Rounds {
    state: Mutex<(usize, usize, usize)>,
    changed: Condvar,
    total: usize,
}

impl Rounds {
    fn new(total: usize) -> Self {
        Self { state: Mutex::default(), changed: Condvar::new(), total }
    }

    /// The number of rounds.
    fn finished(&self) -> usize {
        self.state.lock().unwrap().2
    }

    fn answer(&self) {
        let mut state = self.state.lock().unwrap();
        let (answered, waiting, round) = &mut *state;
        *waiting += 1;
        if *waiting == CONCURRENT.min(self.total - *answered) {
            *answered += *waiting;
            *waiting = 0;
            *round += 1;
            self.changed.notify_all();
            return;
        }
        let own = *round;
        let (_state, timeout) = self
            .changed
            .wait_timeout_while(state, Duration::from_secs(60), |(_, _, round)| *round == own)
            .unwrap();
        assert!(!timeout.timed_out(), "fewer calls are in flight than could be");
    }
}

#[test]
fn all_services_of_all_regions_take_few_rounds() {
    let all = regions(52);
    let candidates =
        all.iter().flat_map(|region| ALL_TARGETS.map(|(service, size)| candidate(service, size, region)));
    let all = queries(&request_for(candidates.collect()), &Facts::embedded());
    let rounds = Rounds::new(all.len());
    let results = ask(&all, |_: &Call| -> Result<(u16, Option<Value>), String> {
        rounds.answer();
        Ok((200, Some(json!({"value": []}))))
    });
    assert_eq!(results.all().count(), all.len());
    assert_eq!(rounds.finished(), all.len().div_ceil(CONCURRENT));
    assert!(rounds.finished() * CALL_MILLIS <= LIMIT_MILLIS, "{} rounds", rounds.finished());
}

#[test]
fn the_roles_of_an_identity_are_queried_once_it_is_known() {
    let mut request = request_for(vec![candidate(AzureService::Vm, T4, "westeurope")]);
    request.pull_identity = Some("/subscriptions/s/x/puller".into());
    let sent: Mutex<Vec<String>> = Mutex::default();
    gather(&request, &Facts::embedded(), |call: &Call| -> Result<(u16, Option<Value>), String> {
        sent.lock().unwrap().push(call.path.clone());
        Ok((200, Some(json!({"value": [], "properties": {"principalId": "p-1"}}))))
    });
    let sent = sent.into_inner().unwrap();
    let roles = sent.last().unwrap();
    assert!(
        roles.contains("/roleAssignments?api-version=2022-04-01&$filter=principalId%20eq%20%27p-1%27"),
        "{roles}"
    );
}

#[test]
fn a_client_passes_on_what_services_refuse() {
    let server = azure(|request| match request.path.as_str() {
        path if path.contains("/locks") => refusal(403, "AuthorizationFailed"),
        path if path.contains("/usages") => refusal(400, "NoRegisteredProviderFound"),
        _ => reply(200, &json!({"value": []})),
    });
    let request = request_for(vec![candidate(AzureService::Ml, T4, "westeurope")]);
    let facts = Facts::embedded();
    let results = ask_azure(&client(&server), &request, &facts);
    let found = judge(&request, &results, &facts);
    assert_eq!(verdict(&found, Question::Locks), (PreflightVerdict::Unknown, Some("CD0867")));
    assert_eq!(verdict(&found, Question::FamilyQuota), (PreflightVerdict::Blocked, Some("CD0856")));

    let server = azure(|_| refusal(401, "ExpiredAuthenticationToken"));
    let results = ask_azure(&client(&server), &request, &facts);
    let found = judge(&request, &results, &facts);
    assert_eq!(verdict(&found, Question::SignIn), (PreflightVerdict::Blocked, Some("CD0850")));
}
