//! Virtual machines, container groups and Container Apps: operations, states, and what is billed when.

use std::collections::BTreeMap;

use cudock_azure_testkit::CloudSettings;
use cudock_http::Method;
use serde_json::{Value, json};

use crate::client::{Azure, prompt};

const MACHINE: &str = "/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/vm";
const CONTAINERS: &str = "/resourceGroups/g/providers/Microsoft.ContainerInstance/containerGroups/main";

fn machine(priority: &str) -> Value {
    json!({"location": "eastus", "properties": {
        "hardwareProfile": {"vmSize": "Standard_NC4as_T4_v3"}, "priority": priority, "evictionPolicy": "Delete",
        "storageProfile": {"osDisk": {"deleteOption": "Delete"}},
    }})
}

fn containers(restart: &str) -> Value {
    json!({"location": "eastus", "properties": {
        "restartPolicy": restart, "osType": "Linux",
        "containers": [{"name": "main", "properties": {"image": "i", "environmentVariables": [
            {"name": "SECRET", "secureValue": "swordfish"}]}}],
    }})
}

#[test]
fn a_machine_is_billed_from_its_creation_until_its_deletion_is_accepted() {
    let Some(azure) = Azure::start(prompt()) else { return };
    azure.group("g");
    let created = azure.put(MACHINE, &machine("Regular"));
    assert_eq!(
        (created.status, created.body["properties"]["provisioningState"].as_str()),
        (201, Some("Creating"))
    );
    assert!(created.header("azure-asyncoperation").unwrap().len() > 2300);
    let from = azure.stand_in.now();
    assert_eq!(azure.wait(&created).body["status"], "Succeeded");
    let read = azure.get(&format!("{MACHINE}?$expand=instanceView"));
    assert_eq!(read.body["properties"]["instanceView"]["statuses"][1]["code"], "PowerState/running");
    assert_eq!(
        cudock_base::Timestamp::parse(read.body["properties"]["timeCreated"].as_str().unwrap()),
        Some(from)
    );
    azure.pass(1000);
    let deleted = azure.delete(MACHINE);
    let until = azure.stand_in.now();
    assert_eq!(deleted.status, 202);
    assert!(deleted.header("location").is_some() && deleted.header("azure-asyncoperation").is_some());
    azure.wait(&deleted);
    assert_eq!(azure.get(MACHINE).status, 404);
    assert_eq!(azure.stand_in.billed_seconds() * 1000, until.millis().unwrap() - from.millis().unwrap());
    // The disk went with it; only the group is left.
    assert_eq!(azure.stand_in.leftovers().len(), 1);
}

#[test]
fn power_states_decide_what_is_billed() {
    let Some(azure) = Azure::start(prompt()) else { return };
    azure.group("g");
    azure.wait(&azure.put(MACHINE, &machine("Regular")));
    azure.wait(&azure.post(&format!("{MACHINE}/powerOff"), &json!({})));
    assert_eq!(azure.stand_in.billed().len(), 1, "a stopped machine is billed");
    azure.wait(&azure.post(&format!("{MACHINE}/deallocate"), &json!({})));
    assert!(azure.stand_in.billed().is_empty(), "a deallocated one is not");
    let read = azure.get(&format!("{MACHINE}?$expand=instanceView"));
    assert_eq!(read.body["properties"]["instanceView"]["statuses"][1]["code"], "PowerState/deallocated");
    assert_eq!(azure.post(&format!("{MACHINE}/simulateEviction"), &json!({})).code(), "OperationNotAllowed");
}

#[test]
fn spot_machines_are_evicted_with_their_disk() {
    let Some(azure) = Azure::start(CloudSettings { evict_after: Some(500), ..prompt() }) else { return };
    azure.group("g");
    azure.wait(&azure.put(MACHINE, &machine("Spot")));
    azure.pass(400);
    assert_eq!(azure.get(MACHINE).status, 200);
    azure.pass(200);
    let gone = azure.get(MACHINE);
    assert_eq!((gone.status, gone.code()), (404, "NotFound"));
    assert_eq!(azure.stand_in.leftovers().len(), 1);
    assert!(azure.stand_in.billed().is_empty());
}

#[test]
fn a_refusal_for_lack_of_quota_names_it() {
    for (quota, priority, expected) in [
        ("Standard NCASv3_T4 Family", "Regular", "Standard NCASv3_T4 Family Cores quota"),
        ("cores", "Regular", "Total Regional Cores quota"),
        ("lowPriorityCores", "Spot", "LowPriorityCores quota"),
    ] {
        let quota = BTreeMap::from([(quota.to_owned(), 3)]);
        let Some(azure) = Azure::start(CloudSettings { quota, ..prompt() }) else { return };
        azure.group("g");
        let refused = azure.put(MACHINE, &machine(priority));
        assert_eq!((refused.status, refused.code()), (409, "OperationNotAllowed"));
        let message = refused.body["error"]["message"].as_str().unwrap();
        assert!(message.contains(expected) && message.contains("Current Limit: 3"), "{message}");
        assert_eq!(azure.get(MACHINE).status, 404);
    }
}

#[test]
fn a_failed_creation_is_reported_by_the_operation_and_not_billed() {
    let failure = ("AllocationFailed".to_owned(), "no capacity".to_owned());
    let failing = BTreeMap::from([("microsoft.compute/virtualmachines".to_owned(), failure)]);
    let Some(azure) = Azure::start(CloudSettings { failing, ..prompt() }) else { return };
    azure.group("g");
    let ended = azure.wait(&azure.put(MACHINE, &machine("Regular")));
    assert_eq!((ended.status, ended.body["error"]["code"].as_str()), (200, Some("AllocationFailed")));
    assert!(azure.stand_in.billed().is_empty());
}

#[test]
fn container_groups_are_billed_while_their_containers_run() {
    let Some(azure) = Azure::start(prompt()) else { return };
    azure.group("g");
    let created = azure.put(CONTAINERS, &containers("Never"));
    assert_eq!(created.status, 201);
    assert!(azure.stand_in.billed().is_empty(), "not while the image is pulled");
    assert_eq!(azure.delete(CONTAINERS).code(), "ContainerGroupTransitioning");
    assert_eq!(azure.put(CONTAINERS, &containers("Never")).code(), "ContainerGroupTransitioning");
    let done = azure.wait(&created);
    let events = done.body["properties"]["events"].as_array().unwrap();
    assert_eq!(events.last().unwrap()["name"], "Started");
    azure.pass(200);
    let read = azure.get(CONTAINERS).body;
    let current = &read["properties"]["containers"][0]["properties"]["instanceView"]["currentState"];
    assert_eq!((current["state"].as_str(), current["exitCode"].as_i64()), (Some("Terminated"), Some(0)));
    assert!(!read.to_string().contains("swordfish"), "secrets are not returned");
    let logs = azure.get(&format!("{CONTAINERS}/containers/main/logs"));
    assert_eq!(logs.body["content"], "hello from the stand-in\n");
    let time = |name: &str| {
        cudock_base::Timestamp::parse(current[name].as_str().unwrap()).unwrap().millis().unwrap()
    };
    assert_eq!(azure.stand_in.billed_seconds() * 1000, time("finishTime") - time("startTime"));
    let deleted = azure.delete(CONTAINERS);
    assert_eq!((deleted.status, deleted.body["name"].as_str()), (200, Some("main")));
}

#[test]
fn every_start_of_a_container_apps_job_is_an_execution_that_is_billed() {
    let Some(azure) = Azure::start(prompt()) else { return };
    azure.group("g");
    let environment = "/resourceGroups/g/providers/Microsoft.App/managedEnvironments/main";
    let job = "/resourceGroups/g/providers/Microsoft.App/jobs/main";
    let body = json!({"location": "eastus", "properties": {
        "environmentId": azure.url(environment).split('?').next().unwrap().replace(&azure.stand_in.url(), ""),
        "configuration": {"replicaTimeout": 600}, "template": {"containers": []},
    }});
    assert_eq!(azure.put(job, &body).status, 400, "without an environment");
    let created = azure.put(environment, &json!({"location": "eastus", "properties": {}}));
    assert_eq!(azure.put(job, &body).status, 409, "with one that is not ready");
    azure.wait(&created);
    azure.wait(&azure.put(job, &body));
    let started = azure.post(&format!("{job}/start"), &json!({}));
    assert_eq!(started.status, 200);
    azure.post(&format!("{job}/start"), &json!({}));
    let running = azure.get(&format!("{job}/executions")).body;
    assert_eq!(running["value"].as_array().unwrap().len(), 2);
    assert_eq!(running["value"][0]["properties"]["status"], "Running");
    azure.pass(700);
    let ended = azure.get(&format!("{job}/executions")).body;
    for execution in ended["value"].as_array().unwrap() {
        assert!(["Succeeded", "Failed"].contains(&execution["properties"]["status"].as_str().unwrap()));
    }
    assert!(azure.stand_in.billed().is_empty());
    assert_eq!(azure.delete(environment).status, 409, "an environment with a job in it stays");
    azure.wait(&azure.delete(job));
    azure.wait(&azure.delete(environment));
    assert_eq!(azure.stand_in.leftovers().len(), 1);
}

#[test]
fn machine_learning_bills_jobs_while_they_run_and_endpoints_from_their_creation() {
    let Some(azure) = Azure::start(prompt()) else { return };
    let workspace = "/resourceGroups/shared/providers/Microsoft.MachineLearningServices/workspaces/workspace";
    let job = format!("{workspace}/jobs/j");
    let body = json!({"properties": {"jobType": "Command", "limits": {"timeout": "PT1H"}}});
    assert_eq!(azure.put(&job, &body).status, 201);
    assert!(azure.stand_in.billed().is_empty());
    azure.pass(100);
    assert_eq!(azure.get(&job).body["properties"]["status"], "Running");
    assert_eq!(azure.stand_in.billed().len(), 1);
    assert_eq!(azure.delete(&job).status, 409, "a job that runs cannot be deleted");
    assert_eq!(azure.post(&format!("{job}/cancel"), &json!({})).status, 202);
    assert_eq!(azure.get(&job).body["properties"]["status"], "Canceled");
    assert!(azure.stand_in.billed().is_empty());
    azure.wait(&azure.delete(&job));
    assert!(azure.stand_in.leftovers().is_empty());
    let endpoint = format!("{workspace}/onlineEndpoints/e");
    let created = azure.put(&endpoint, &json!({"location": "eastus", "properties": {"authMode": "Key"}}));
    assert!(created.header("azure-asyncoperation").is_some() && created.header("location").is_some());
    azure.wait(&created);
    azure.put(&format!("{endpoint}/deployments/d"), &json!({"location": "eastus", "properties": {}}));
    assert_eq!(azure.stand_in.billed().len(), 1);
    let deleted = azure.delete(&endpoint);
    assert!(azure.stand_in.billed().is_empty(), "its deployments go along");
    azure.wait(&deleted);
    assert!(azure.stand_in.leftovers().is_empty(), "{:?}", azure.stand_in.leftovers());
}

#[test]
fn a_cluster_bills_its_nodes_until_they_have_waited_long_enough() {
    let Some(azure) = Azure::start(prompt()) else { return };
    let workspace = "/resourceGroups/shared/providers/Microsoft.MachineLearningServices/workspaces/workspace";
    let cluster = format!("{workspace}/computes/c");
    let scale = json!({"minNodeCount": 0, "maxNodeCount": 1, "nodeIdleTimeBeforeScaleDown": "PT2M"});
    let created = azure.put(
        &cluster,
        &json!({"location": "eastus", "properties": {"computeType": "AmlCompute", "properties": {
            "vmSize": "Standard_NC4as_T4_v3", "scaleSettings": scale}}}),
    );
    azure.wait(&created);
    let id = created.body["id"].as_str().unwrap();
    let jobs = ["a", "b"].map(|name| format!("{workspace}/jobs/{name}"));
    for job in &jobs {
        let body = json!({"properties": {"jobType": "Command", "computeId": id}});
        assert_eq!(azure.put(job, &body).status, 201);
    }
    let status = |job: usize| azure.get(&jobs[job]).body["properties"]["status"].clone();
    let time = |job: usize, name: &str| {
        let body = azure.get(&jobs[job]).body;
        let text = body["properties"]["properties"][name].as_str().unwrap().to_owned();
        cudock_base::Timestamp::parse(&text).unwrap()
    };
    azure.pass(100);
    assert_eq!((status(0), status(1)), (json!("Running"), json!("Queued")), "there is one node");
    azure.pass(120);
    assert_eq!((status(0), status(1)), (json!("Completed"), json!("Running")));
    assert_eq!(time(1, "StartTimeUtc"), time(0, "EndTimeUtc"));
    azure.pass(120);
    assert_eq!(status(1), json!("Completed"));
    assert_eq!(azure.stand_in.billed().len(), 1, "the node waits for another job");
    azure.pass(130);
    assert!(azure.stand_in.billed().is_empty());
    let busy = time(1, "EndTimeUtc").since(time(0, "StartTimeUtc"));
    assert_eq!(azure.stand_in.billed_seconds(), busy.as_secs() + 120);
    let job = format!("{workspace}/jobs/c");
    assert_eq!(azure.put(&job, &json!({"properties": {"jobType": "Command", "computeId": id}})).status, 201);
    azure.pass(100);
    assert_eq!(azure.stand_in.billed().len(), 1);
    azure.delete(&cluster);
    assert!(azure.stand_in.billed().is_empty(), "nodes go along");
    assert_eq!(azure.get(&job).body["properties"]["status"], "Canceled");
}

#[test]
fn reads_lag_behind_writes_and_unknown_types_are_refused() {
    let Some(azure) = Azure::start(CloudSettings { consistency_lag: 30, graph_lag: 60, ..prompt() }) else {
        return;
    };
    azure.group("first");
    azure.group("second");
    let statuses = ["first", "second"].map(|name| azure.get(&format!("/resourceGroups/{name}")).status);
    assert!(statuses.contains(&404), "{statuses:?}");
    let graph = format!(
        "{}/providers/Microsoft.ResourceGraph/resources?api-version=2022-10-01",
        azure.stand_in.url()
    );
    let query = json!({"query": "resourcecontainers | where name =~ 'FIRST' | project id, name"});
    let found =
        |azure: &Azure| azure.send(&Method::POST, &graph, Some(&query)).unwrap().body["count"].clone();
    assert_eq!(found(&azure), 0);
    azure.pass(60);
    assert_eq!(found(&azure), 1);
    assert_eq!(azure.get("/resourceGroups/first").status, 200);
    azure.wait(&azure.delete("/resourceGroups/first"));
    assert_eq!(found(&azure), 1, "deleted, but still listed");
    azure.pass(60);
    assert_eq!(found(&azure), 0);
    let unknown = azure.put("/resourceGroups/second/providers/Microsoft.Quantum/workspaces/w", &json!({}));
    assert_eq!((unknown.status, unknown.code()), (404, "InvalidResourceType"));
    let query = json!({"query": "resources | summarize count()"});
    assert_eq!(azure.send(&Method::POST, &graph, Some(&query)).unwrap().status, 400);
}

#[test]
fn the_activity_log_tells_when_a_deletion_was_accepted() {
    let Some(azure) = Azure::start(prompt()) else { return };
    let before = azure.stand_in.now();
    azure.group("g");
    azure.wait(&azure.put(MACHINE, &machine("Regular")));
    let deleted = azure.delete("/resourceGroups/g");
    let accepted = azure.stand_in.now();
    azure.wait(&deleted);
    let filter = format!("eventTimestamp ge '{before}' and resourceGroupName eq 'G'");
    let filter = cudock_base::text::percent::encode(&filter);
    let log =
        azure.get(&format!("/providers/Microsoft.Insights/eventtypes/management/values?$filter={filter}"));
    let events = log.body["value"].as_array().unwrap();
    let find = |operation: &str, status: &str| {
        let found = events
            .iter()
            .find(|event| event["operationName"]["value"] == operation && event["status"]["value"] == status);
        cudock_base::Timestamp::parse(found.unwrap()["eventTimestamp"].as_str().unwrap()).unwrap()
    };
    let group = "Microsoft.Resources/subscriptions/resourceGroups/delete";
    assert_eq!(find(group, "Accepted"), accepted);
    assert!(find(group, "Succeeded") > accepted);
    let billed = accepted.millis().unwrap()
        - find("Microsoft.Compute/virtualMachines/write", "Started").millis().unwrap();
    assert_eq!(azure.stand_in.billed_seconds() * 1000, billed);
}

#[test]
fn locks_keep_groups_and_groups_that_go_take_nothing_new() {
    let Some(azure) = Azure::start(prompt()) else { return };
    azure.group("g");
    let lock = "/resourceGroups/g/providers/Microsoft.Authorization/locks/keep";
    azure.put(lock, &json!({"properties": {"level": "CanNotDelete"}}));
    assert_eq!(azure.delete("/resourceGroups/g").code(), "ScopeLocked");
    assert_eq!(azure.delete(lock).status, 200);
    let first = azure.delete("/resourceGroups/g");
    assert_eq!(azure.put(MACHINE, &machine("Regular")).code(), "ResourceGroupBeingDeleted");
    let second = azure.delete("/resourceGroups/g");
    assert_eq!((first.status, second.status), (202, 202), "the second joins the first");
    assert_eq!((azure.wait(&first).status, azure.wait(&second).status), (200, 200));
    assert_eq!(azure.delete("/resourceGroups/g").code(), "ResourceGroupNotFound");
}
