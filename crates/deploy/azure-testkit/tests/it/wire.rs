//! Recorded answers of the real services: the same requests get the same statuses, headers and fields here.
//!
//! Nothing may be in a body that the real one does not have. Not everything that a real one has must be here, but what
//! clients read must.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use cudock_azure_testkit::{CloudSettings, SUBSCRIPTION};
use cudock_http::Method;
use serde_json::{Value, json};

use crate::client::{Answered, Azure, prompt};

/// A recording: what exists before it, and the numbers of the requests that the stand-in does not support.
struct Recording {
    name: &'static str,
    before: Vec<(&'static str, Value)>,
    unsupported: &'static [usize],
}

fn recordings() -> Vec<Recording> {
    let group = "/resourceGroups/clitest.rg000001";
    let located = || json!({"location": "westus"});
    let machine = |priority: &str, policy: Option<&str>| {
        json!({"location": "eastus", "properties": {
            "hardwareProfile": {"vmSize": "Standard_DS1_v2"}, "priority": priority, "evictionPolicy": policy,
        }})
    };
    let workspace = || {
        vec![
            ("/resourceGroups/000000000000000", located()),
            (
                "/resourceGroups/000000000000000/providers/Microsoft.MachineLearningServices/workspaces/000000000000000",
                located(),
            ),
        ]
    };
    let evictions = "/resourceGroups/cli_test_vm_simulate_eviction000001";
    let recording = |name, before, unsupported| Recording { name, before, unsupported };
    vec![
        recording("aci-create-logs-delete", vec![(group, located())], &[]),
        recording("aml-compute", workspace(), &[]),
        // A token of an endpoint, and a state `Updating` of an operation.
        recording("aml-online-endpoint", workspace(), &[12]),
        recording("batch-account-quotas", vec![(group, located())], &[]),
        // A condition that was not recorded, and a PUT that removes what it does not have.
        recording("batch-jobs-and-tasks", Vec::new(), &[6, 8]),
        // Autoscale, start tasks, and reboots.
        recording(
            "batch-pools-and-nodes",
            Vec::new(),
            &[4, 5, 6, 11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 23, 24, 27, 28, 29, 30, 31],
        ),
        recording("compute-usages-gpu-rows", Vec::new(), &[]),
        recording("containerapps-dedicated-gpu", vec![(group, located())], &[]),
        recording(
            "containerapps-job-run-logs",
            vec![
                (group, located()),
                ("/resourceGroups/client.env_rg_northcentralusstage", located()),
                (
                    "/resourceGroups/client.env_rg_northcentralusstage/providers/Microsoft.App/managedEnvironments/env-northcentralusstage",
                    json!({"location": "northcentralusstage"}),
                ),
            ],
            &[],
        ),
        recording("deployment-quotaexceeded", vec![(group, located())], &[]),
        recording(
            "resourcegroup-force-delete",
            vec![("/resourceGroups/testrg", located()), ("/resourceGroups/testrg2", located())],
            &[],
        ),
        // The principal of the second request does not exist here.
        recording(
            "roleassignment-principalnotfound",
            vec![
                (group, located()),
                (
                    "/resourceGroups/clitest.rg000001/providers/Microsoft.Storage/storageAccounts/clistorage000003",
                    located(),
                ),
            ],
            &[1],
        ),
        recording(
            "vm-deploy-deallocate",
            vec![("/resourceGroups/cli_test_vm_priority_eviction_billing_000001", located())],
            &[],
        ),
        recording(
            "vm-simulate-eviction",
            vec![
                (evictions, located()),
                (
                    "/resourceGroups/cli_test_vm_simulate_eviction000001/providers/Microsoft.Compute/virtualMachines/vm-simualte-eviction1",
                    machine("Regular", None),
                ),
                (
                    "/resourceGroups/cli_test_vm_simulate_eviction000001/providers/Microsoft.Compute/virtualMachines/vm-simulate-eviction2",
                    machine("Spot", Some("Deallocate")),
                ),
                (
                    "/resourceGroups/cli_test_vm_simulate_eviction000001/providers/Microsoft.Compute/virtualMachines/vm-simulate-eviction3",
                    machine("Spot", Some("Delete")),
                ),
            ],
            &[],
        ),
    ]
}

/// Where clients find what they need to know. If a recorded body has it, so must the stand-in's.
const READ_BY_CLIENTS: [&str; 24] = [
    ".id",
    ".name",
    ".type",
    ".location",
    ".status",
    ".error.code",
    ".error.details[].code",
    ".code",
    ".message.value",
    ".state",
    ".executionInfo.poolId",
    ".executionInfo.endTime",
    ".executionInfo.result",
    ".allocationState",
    ".properties.provisioningState",
    ".properties.timeCreated",
    ".properties.runningStatus",
    ".properties.accountEndpoint",
    ".properties.dedicatedCoreQuotaPerVMFamily[].coreQuota",
    ".properties.instanceView.statuses[].code",
    ".properties.containers[].properties.instanceView.currentState.startTime",
    ".value[].properties.status",
    ".value[].properties.startTime",
    ".value[].properties.containers[].logStreamEndpoint",
];

/// What earlier requests had in a spelling or place that the real service changes.
const ECHOES: [&str; 3] = [
    ".properties.networkProfile.networkInterfaces[].properties",
    ".properties.storageProfile.osDisk.managedDisk.storageAccountType",
    ".properties.workloadProfiles[].Name",
];

/// The names of all fields with where they are; those of list items together.
fn fields(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                let path = format!("{path}.{name}");
                fields(value, &path, found);
                found.insert(path);
            }
        }
        Value::Array(items) => {
            for item in items {
                fields(item, &format!("{path}[]"), found);
            }
        }
        _ => {}
    }
}

fn fields_of(value: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    fields(value, "", &mut found);
    found
}

/// Sends the requests of a recording and returns how many were compared, and what differs.
fn replay(azure: &Azure, recording: &Recording, interactions: &[Value]) -> (usize, Vec<String>) {
    let batch = azure.token_for("https://batch.core.windows.net/.default");
    for (path, body) in &recording.before {
        azure.put(path, body);
        azure.pass(3600);
    }
    let mut latest: BTreeMap<&str, String> = BTreeMap::new();
    let mut execution: Option<String> = None;
    let (mut compared, mut differences) = (0, Vec::new());
    for (number, interaction) in interactions.iter().enumerate() {
        if recording.unsupported.contains(&number) {
            continue;
        }
        let (request, expected) = (&interaction["request"], &interaction["response"]);
        let url = request["url"].as_str().unwrap();
        let Some((host, path)) = url.strip_prefix("https://").and_then(|rest| rest.split_once('/')) else {
            continue;
        };
        let is_batch = host.ends_with(".batch.azure.com");
        if !is_batch && host != "management.azure.com" {
            continue;
        }
        let lower = path.to_ascii_lowercase();
        let is_poll = lower.contains("operation");
        let is_final = if expected["body"]["status"].is_string() {
            expected["body"]["status"] == "Succeeded"
        } else {
            expected["status"] != 202
        };
        let was_evicted = number > 0 && {
            let before = interactions[number - 1]["request"]["url"].as_str().unwrap_or_default();
            before.contains("simulateEviction")
        };
        if (is_final && is_poll) || was_evicted {
            azure.pass(400);
        }
        let own = |text: &str| {
            let text = text.replace("00000000-0000-0000-0000-000000000000", SUBSCRIPTION);
            match &execution {
                Some(execution) => text.replace("job1000002-ww3up2k", execution),
                None => text,
            }
        };
        let address =
            match latest.get(if lower.contains("result") { "location" } else { "azure-asyncoperation" }) {
                Some(address) if is_poll => address.clone(),
                _ if is_batch => format!("{}/{}", azure.stand_in.batch_url(), own(path)),
                _ => format!("{}/{}", azure.stand_in.url(), own(path)),
            };
        let body: Option<Value> = request
            .get("body")
            .filter(|body| body.is_object())
            .map(|body| serde_json::from_str(&own(&body.to_string())).unwrap());
        let method: Method = request["method"].as_str().unwrap().parse().unwrap();
        let sent = if is_batch {
            azure.send_with(&method, &address, body.as_ref(), &batch)
        } else {
            azure.send(&method, &address, body.as_ref())
        };
        let answered = sent.unwrap();
        for name in ["location", "azure-asyncoperation"] {
            if let Some(address) = answered.header(name) {
                latest.insert(name, address.to_owned());
            }
        }
        if lower.contains("/start?") {
            execution = answered.body["name"].as_str().map(str::to_owned);
        }
        compared += 1;
        let what = format!("{} {number}: {method} {}", recording.name, path.split('?').next().unwrap());
        differences.extend(
            compare(&answered, expected, body.as_ref()).into_iter().map(|text| format!("{what}: {text}")),
        );
    }
    (compared, differences)
}

fn compare(answered: &Answered, expected: &Value, request: Option<&Value>) -> Vec<String> {
    let mut differences = Vec::new();
    if expected["status"] != answered.status {
        differences.push(format!("{} and not {}: {}", answered.status, expected["status"], answered.body));
        return differences;
    }
    let expected_headers = expected["headers"].as_object().unwrap();
    let has_body = !expected["body"].is_null();
    for name in expected_headers.keys().filter(|name| has_body || *name != "content-type") {
        if answered.header(name).is_none() {
            differences.push(format!("no header {name}"));
        }
    }
    for name in ["location", "azure-asyncoperation"] {
        if answered.header(name).is_some() && !expected_headers.contains_key(name) {
            differences.push(format!("the real service sends no {name}"));
        }
    }
    let body = &expected["body"];
    if body["TRIMMED"] == true {
        return differences;
    }
    let (own, real) = (fields_of(&answered.body), fields_of(body));
    let sent = request.map(fields_of).unwrap_or_default();
    let is_echo = |field: &str| sent.contains(field) || ECHOES.contains(&field);
    for field in own.difference(&real).filter(|field| !is_echo(field)) {
        differences.push(format!("the real body has no {field}"));
    }
    for field in READ_BY_CLIENTS.iter().filter(|field| real.contains(**field) && !own.contains(**field)) {
        differences.push(format!("no field {field}"));
    }
    differences
}

#[test]
fn recorded_requests_get_the_recorded_statuses_headers_and_fields() {
    let Some(specs) = cudock_testkit::require_azure_specs() else { return };
    let (mut compared, mut differences) = (0, Vec::new());
    for recording in recordings() {
        let text = fs::read_to_string(specs.join("wire").join(format!("{}.json", recording.name))).unwrap();
        let recorded: Value = serde_json::from_str(&text).unwrap();
        let mut settings = CloudSettings { job_seconds: 1_000_000, ..prompt() };
        if recording.name == "deployment-quotaexceeded" {
            settings = CloudSettings { quota: BTreeMap::from([("cores".to_owned(), 1)]), ..settings };
        }
        let Some(azure) = Azure::start(settings) else { return };
        let (count, different) = replay(&azure, &recording, recorded["interactions"].as_array().unwrap());
        compared += count;
        differences.extend(different);
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
    assert!(compared >= 80, "only {compared} requests were compared");
}
