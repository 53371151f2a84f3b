//! The state of a deployment, read from recordings of the real services and from what newer versions may say.

use cudock_facts::Facts;
use cudock_facts::services::AzureService;
use std::path::Path;
use std::time::Duration;

use cudock_azure::{DeploymentIdentity, DeploymentState, LogPart, Phase, WorkShape, deployment};
use cudock_base::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::specs;

fn identity(service: AzureService, work: WorkShape) -> DeploymentIdentity {
    DeploymentIdentity {
        subscription: "11111111-2222-3333-4444-555555555555".to_owned(),
        run_id: "0123456789ab".to_owned(),
        service,
        region: "westeurope".to_owned(),
        work,
        is_spot: true,
        workspace: Some("research/vision".to_owned()),
        batch_account: None,
        pool: None,
        endpoint: None,
        node_idle: None,
    }
}

const SERVE: WorkShape = WorkShape::Serve { port: 8000, is_public: true };
const JOB: WorkShape = WorkShape::Job { tasks: 1 };

/// The answer of an interaction in a recording; none for 404.
fn recorded(specifications: &Path, file: &str, index: usize) -> Option<Value> {
    let path = specifications.join("wire").join(file);
    let recording: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let response = &recording["interactions"][index]["response"];
    (response["status"] != 404).then(|| response["body"].clone())
}

fn time(text: &str) -> Option<Timestamp> {
    let time = Timestamp::parse(text);
    assert!(time.is_some(), "{text}");
    time
}

/// The group exists in all of them.
fn group() -> Value {
    json!({"properties": {"provisioningState": "Succeeded"}})
}

#[test]
fn recorded_machines_run_are_deallocated_and_are_evicted() {
    let Some(specs) = specs::specifications() else { return };
    let deployed = recorded(&specs, "vm-deploy-deallocate.json", 3);
    let identity = identity(AzureService::Vm, SERVE);
    let answers = |vm: Option<Value>, command: Option<Value>| {
        let address = Some(json!({"properties": {"ipAddress": "20.1.2.3"}}));
        [Some(group()), deployed.clone(), vm, command, address]
    };
    let view = |state: &str, code: i32| {
        Some(json!({"properties": {"instanceView": {"executionState": state, "exitCode": code}}}))
    };
    let running = recorded(&specs, "vm-deploy-deallocate.json", 4);
    let from = time("2025-03-31T08:34:55.325Z");

    let status = identity.status(&answers(running.clone(), None));
    assert_eq!(
        (status.state, status.phase, status.billed_from),
        (DeploymentState::Starting, Phase::Create, from)
    );
    assert_eq!(status.detail.as_deref(), Some("running"));

    let status = identity.status(&answers(running.clone(), view("Succeeded", 0)));
    assert_eq!((status.state, status.phase), (DeploymentState::Running, Phase::Ready));
    assert_eq!(status.url.as_deref(), Some("http://20.1.2.3:8000"));

    let job = DeploymentIdentity { work: JOB, ..identity.clone() };
    let status = job.status(&answers(running.clone(), view("Failed", 3)));
    assert_eq!((status.state, status.exit_code), (DeploymentState::Failed, Some(3)));
    let status = job.status(&answers(running, view("Running", 0)));
    assert_eq!((status.state, status.phase), (DeploymentState::Running, Phase::Work));

    // A Spot machine with the policy Delete is gone when it is evicted.
    let evicted = recorded(&specs, "vm-simulate-eviction.json", 7);
    assert_eq!(evicted, None);
    assert_eq!(identity.status(&answers(evicted, None)).state, DeploymentState::Evicted);
    // With the policy Deallocate it stays.
    let deallocated = recorded(&specs, "vm-simulate-eviction.json", 4);
    assert_eq!(identity.status(&answers(deallocated, None)).state, DeploymentState::Evicted);

    let before = identity.status(&[Some(group()), None, None, None, None]);
    assert_eq!((before.state, before.phase), (DeploymentState::Starting, Phase::Create));
}

#[test]
fn a_recorded_quota_error_is_the_detail_of_a_failed_deployment() {
    let Some(specs) = specs::specifications() else { return };
    let refused = recorded(&specs, "deployment-quotaexceeded.json", 0).unwrap();
    let failed = json!({"properties": {"provisioningState": "Failed", "error": refused["error"]}});
    let status = identity(AzureService::Vm, SERVE).status(&[Some(group()), Some(failed), None, None, None]);
    assert_eq!(status.state, DeploymentState::Failed);
    assert!(status.detail.as_deref().unwrap().starts_with("QuotaExceeded: "), "{status:?}");
}

#[test]
fn a_recorded_container_group_runs_and_has_a_log() {
    let Some(specs) = specs::specifications() else { return };
    let running = recorded(&specs, "aci-create-logs-delete.json", 4);
    let identity = identity(AzureService::Aci, SERVE);
    let status = identity.status(&[Some(group()), running]);
    assert_eq!((status.state, status.phase), (DeploymentState::Running, Phase::Ready));
    assert_eq!(status.url.as_deref(), Some("http://clicontainer000002.westus.azurecontainer.io:8000"));
    assert_eq!(status.billed_from, time("2025-05-16T04:22:26.819Z"));

    let created = recorded(&specs, "aci-create-logs-delete.json", 1);
    assert_eq!(identity.status(&[Some(group()), created]).state, DeploymentState::Starting);

    let log = recorded(&specs, "aci-create-logs-delete.json", 7);
    assert_eq!(identity.log_parts(&[log]), [LogPart::Text("hello\n".to_owned())]);
}

#[test]
fn a_container_group_that_ended_has_its_exit_code_and_times() {
    let ended = json!({"properties": {"provisioningState": "Succeeded", "instanceView": {"state": "Failed"}, "containers": [
        {"properties": {"instanceView": {"currentState": {"state": "Terminated", "exitCode": 0,
            "startTime": "2026-11-17T01:00:00Z", "finishTime": "2026-11-17T01:05:00Z"}}}},
        {"properties": {"instanceView": {"currentState": {"state": "Terminated", "exitCode": 9, "detailStatus": "Error",
            "startTime": "2026-11-17T01:00:02Z", "finishTime": "2026-11-17T01:06:00Z"}}}}]}});
    let status =
        identity(AzureService::Aci, WorkShape::Job { tasks: 2 }).status(&[Some(group()), Some(ended)]);
    assert_eq!((status.state, status.exit_code), (DeploymentState::Failed, Some(9)));
    assert_eq!(status.detail.as_deref(), Some("Error"));
    assert_eq!(
        (status.billed_from, status.billed_until),
        (time("2026-11-17T01:00:00Z"), time("2026-11-17T01:06:00Z"))
    );
}

#[test]
fn a_recorded_app_is_ready_and_before_that_in_progress() {
    let Some(specs) = specs::specifications() else { return };
    let ready = recorded(&specs, "containerapps-dedicated-gpu.json", 8);
    let identity = identity(AzureService::ContainerApps, SERVE);
    let calls = identity.follow_up_calls(&[Some(group()), ready.clone()]);
    assert_eq!(calls.len(), 1);
    assert!(calls[0].path.contains("/revisions/app1000003--evawfyk/replicas?"), "{}", calls[0].path);
    let status = identity.status(&[Some(group()), ready]);
    assert_eq!((status.state, status.phase), (DeploymentState::Running, Phase::Ready));
    assert_eq!(status.billed_from, time("2025-11-06T06:18:02.626Z"));

    let created = recorded(&specs, "containerapps-dedicated-gpu.json", 5);
    assert_eq!(identity.status(&[Some(group()), created]).state, DeploymentState::Starting);
}

#[test]
fn a_recorded_job_pulls_its_image_then_runs_and_streams_its_log() {
    let Some(specs) = specs::specifications() else { return };
    let started = recorded(&specs, "containerapps-job-run-logs.json", 5);
    let identity = identity(AzureService::ContainerApps, JOB);
    let calls = identity.follow_up_calls(&[Some(group()), started.clone()]);
    assert!(calls[0].path.contains("/executions/job1000002-ww3up2k/replicas?"), "{}", calls[0].path);

    let pulling = recorded(&specs, "containerapps-job-run-logs.json", 6);
    let status = identity.status(&[Some(group()), started.clone(), pulling]);
    assert_eq!((status.state, status.phase), (DeploymentState::Starting, Phase::Pull));
    assert_eq!(status.detail.as_deref(), Some("Container is waiting with reason: PullingImage on legion."));
    assert_eq!(status.billed_from, time("2025-11-04T10:49:51Z"));

    let working = recorded(&specs, "containerapps-job-run-logs.json", 10);
    let status = identity.status(&[Some(group()), started.clone(), working.clone()]);
    assert_eq!((status.state, status.phase), (DeploymentState::Running, Phase::Work));
    // Without the replicas, the execution's own word counts.
    assert_eq!(identity.status(&[Some(group()), started.clone()]).state, DeploymentState::Running);

    let token = recorded(&specs, "containerapps-job-run-logs.json", 7);
    let parts = identity.log_parts(&[started, token, working]);
    let [LogPart::Stream { address, .. }] = parts.as_slice() else { panic!("{parts:?}") };
    assert!(address.ends_with("/containers/quickstart/logstream"), "{address}");
}

#[test]
fn all_executions_of_a_job_have_to_end() {
    let execution = |status: &str, code: i32| {
        json!({"name": "e", "properties": {"status": status, "startTime": "2026-11-17T01:00:00Z",
            "endTime": "2026-11-17T01:01:00Z",
            "detailedStatus": {"replicas": [{"containers": [{"code": code}]}]}}})
    };
    let identity = identity(AzureService::ContainerApps, WorkShape::Job { tasks: 2 });
    let status = |list: Vec<Value>| identity.status(&[Some(group()), Some(json!({"value": list}))]);
    assert_eq!(status(vec![execution("Succeeded", 0)]).state, DeploymentState::Starting);
    let both = status(vec![execution("Succeeded", 0), execution("Failed", 2)]);
    assert_eq!((both.state, both.exit_code), (DeploymentState::Failed, Some(2)));
    assert_eq!(both.billed_until, time("2026-11-17T01:01:00Z"));
    let good = status(vec![execution("Succeeded", 0), execution("Succeeded", 0)]);
    assert_eq!((good.state, good.exit_code), (DeploymentState::Succeeded, Some(0)));
}

#[test]
fn recorded_batch_jobs_tasks_and_nodes_are_read() {
    let Some(specs) = specs::specifications() else { return };
    let active = recorded(&specs, "batch-jobs-and-tasks.json", 2);
    let identity = identity(AzureService::Batch, JOB);
    let calls = identity.follow_up_calls(&[Some(group()), active.clone(), None]);
    let paths: Vec<&str> = calls.iter().map(|call| call.path.split('?').next().unwrap()).collect();
    assert_eq!(paths, ["/pools/xplatJobForTaskTests", "/pools/xplatJobForTaskTests/nodes"]);

    let waiting = recorded(&specs, "batch-jobs-and-tasks.json", 12);
    let nodes = recorded(&specs, "batch-pools-and-nodes.json", 27);
    let pool = recorded(&specs, "batch-pools-and-nodes.json", 26);
    let status = identity.status(&[Some(group()), active.clone(), waiting, pool, nodes]);
    assert_eq!((status.state, status.phase), (DeploymentState::Starting, Phase::Create));
    assert_eq!(status.billed_from, time("2025-01-16T18:47:04.709Z"));

    // A task that was ended by request counts as failed.
    let ended = recorded(&specs, "batch-jobs-and-tasks.json", 16).unwrap();
    let status = identity.status(&[Some(group()), active, Some(json!({"value": [ended]}))]);
    assert_eq!((status.state, status.exit_code), (DeploymentState::Failed, None));
    assert_eq!(status.detail.as_deref(), Some("Task Was Ended by User Request"));
}

#[test]
fn a_batch_job_ends_by_its_tasks_its_limit_or_its_pool() {
    let identity = identity(AzureService::Batch, JOB);
    let done = |code: i32, result: &str| json!({"value": [{"state": "completed", "executionInfo": {"exitCode": code, "result": result}}]});
    let completed = |reason: &str| {
        json!({"state": "completed", "executionInfo": {"terminateReason": reason,
        "endTime": "2026-11-17T01:09:00Z"}})
    };
    let active = json!({"state": "active"});
    let status =
        identity.status(&[Some(group()), Some(completed("AllTasksCompleted")), Some(done(0, "success"))]);
    assert_eq!((status.state, status.exit_code), (DeploymentState::Succeeded, Some(0)));
    assert_eq!(status.billed_until, time("2026-11-17T01:09:00Z"));
    let status = identity.status(&[Some(group()), Some(active.clone()), Some(done(7, "failure"))]);
    assert_eq!((status.state, status.exit_code), (DeploymentState::Failed, Some(7)));

    let running =
        json!({"value": [{"state": "running", "executionInfo": {"startTime": "2026-11-17T01:00:00Z"}}]});
    let status =
        identity.status(&[Some(group()), Some(completed("MaxWallClockTimeExpiry")), Some(running.clone())]);
    assert_eq!(status.state, DeploymentState::Failed);
    assert_eq!(status.detail.as_deref(), Some("MaxWallClockTimeExpiry"));
    let status = identity.status(&[Some(group()), Some(active.clone()), Some(running)]);
    assert_eq!((status.state, status.phase), (DeploymentState::Running, Phase::Work));

    let waiting = Some(json!({"value": [{"state": "active"}]}));
    let no_nodes = json!({"resizeErrors": [{"code": "AccountCoreQuotaReached", "message": "no cores left"}]});
    let status =
        identity.status(&[Some(group()), Some(active.clone()), waiting.clone(), Some(no_nodes), None]);
    assert_eq!((status.state, status.detail.as_deref()), (DeploymentState::Failed, Some("no cores left")));
    for (node, state) in [("preempted", DeploymentState::Evicted), ("unusable", DeploymentState::Failed)] {
        let nodes = json!({"value": [{"state": node}]});
        let answers = [Some(group()), Some(active.clone()), waiting.clone(), Some(json!({})), Some(nodes)];
        assert_eq!(identity.status(&answers).state, state);
    }
}

#[test]
fn a_recorded_endpoint_is_ready_once_it_has_traffic() {
    let Some(specs) = specs::specifications() else { return };
    let endpoint = recorded(&specs, "aml-online-endpoint.json", 3).unwrap();
    let identity = identity(AzureService::Ml, SERVE);
    let deployed = recorded(&specs, "aml-online-endpoint.json", 9);
    let status = identity.status(&[Some(group()), Some(endpoint.clone()), deployed.clone()]);
    assert_eq!((status.state, status.phase), (DeploymentState::Starting, Phase::Ready));
    assert_eq!(status.billed_from, time("2022-05-11T23:45:14.670Z"));

    let mut routed = endpoint.clone();
    routed["properties"]["traffic"] = json!({"main": 100});
    let status = identity.status(&[Some(group()), Some(routed), deployed]);
    assert_eq!((status.state, status.phase), (DeploymentState::Running, Phase::Ready));
    let url = "https://test-onl-endpt-000009-13.westus.inference.ml.azure.com/score";
    assert_eq!(status.url.as_deref(), Some(url));

    let creating = recorded(&specs, "aml-online-endpoint.json", 6);
    let status = identity.status(&[Some(group()), Some(endpoint.clone()), creating]);
    assert_eq!((status.state, status.phase), (DeploymentState::Starting, Phase::Start));
    let status =
        identity.status(&[Some(group()), Some(endpoint), recorded(&specs, "aml-online-endpoint.json", 4)]);
    assert_eq!((status.state, status.phase), (DeploymentState::Starting, Phase::Create));
}

#[test]
fn jobs_on_an_own_cluster_are_billed_by_their_nodes() {
    let work = WorkShape::Job { tasks: 3 };
    let existing = identity(AzureService::Ml, work);
    let own = DeploymentIdentity { node_idle: Some(Duration::from_secs(120)), ..existing.clone() };
    let job = |state: &str| Some(json!({"properties": {"status": state}}));
    let ended = json!({"startTimeUtc": "2026-11-17T01:00:00Z", "endTimeUtc": "2026-11-17T01:30:00Z"});
    let running = json!({"startTimeUtc": "2026-11-17T01:40:00Z"});
    let answers = [
        Some(group()),
        job("Completed"),
        Some(ended.clone()),
        job("Running"),
        Some(running),
        job("Queued"),
        Some(json!({})),
    ];
    let status = own.status(&answers);
    let times: Vec<_> =
        status.jobs.iter().map(|job| (job.name.as_str(), Some(job.from), job.until)).collect();
    assert_eq!(
        times,
        [
            ("cudock-0123456789ab-0", time("2026-11-17T01:00:00Z"), time("2026-11-17T01:30:00Z")),
            ("cudock-0123456789ab-1", time("2026-11-17T01:40:00Z"), None),
        ]
    );
    let answers: Vec<_> = std::iter::once(Some(group()))
        .chain((0..3).flat_map(|_| [job("Completed"), Some(ended.clone())]))
        .collect();
    let status = own.status(&answers);
    assert_eq!((status.state, status.billed_until), (DeploymentState::Succeeded, None), "nodes wait");
    assert_eq!(status.jobs.len(), 3);
    let status = existing.status(&answers);
    assert_eq!((status.jobs.len(), status.billed_until), (0, time("2026-11-17T01:30:00Z")));
}

#[test]
fn the_states_of_a_machine_learning_job() {
    let identity = identity(AzureService::Ml, JOB);
    let details = json!({"startTimeUtc": "2026-11-17T01:00:00Z", "endTimeUtc": "2026-11-17T01:30:00Z",
        "error": {"error": {"code": "UserError", "message": "Execution failed. Process exited with exit code 3"}},
        "logFiles": {"user_logs/std_log.txt": "https://storage.example.com/log", "system_logs/x.log": "https://x"}});
    for (state, expected, phase) in [
        ("NotStarted", DeploymentState::Starting, Phase::Create),
        ("Queued", DeploymentState::Starting, Phase::Create),
        ("Preparing", DeploymentState::Starting, Phase::Pull),
        ("Running", DeploymentState::Running, Phase::Work),
        ("Finalizing", DeploymentState::Running, Phase::Work),
        ("CancelRequested", DeploymentState::Deleting, Phase::Delete),
        ("Completed", DeploymentState::Succeeded, Phase::Work),
        ("Failed", DeploymentState::Failed, Phase::Work),
        ("Canceled", DeploymentState::Failed, Phase::Work),
        ("Pondering", DeploymentState::Starting, Phase::Start),
    ] {
        let job = json!({"properties": {"status": state}});
        let status = identity.status(&[Some(group()), Some(job), Some(details.clone())]);
        assert_eq!((status.state, status.phase), (expected, phase), "{state}");
        assert_eq!(status.billed_from, time("2026-11-17T01:00:00Z"));
        assert_eq!(
            status.exit_code,
            match state {
                "Completed" => Some(0),
                "Failed" => Some(3),
                _ => None,
            }
        );
    }
    let parts = identity.log_parts(&[Some(details)]);
    let [LogPart::File { name, .. }] = parts.as_slice() else { panic!("{parts:?}") };
    assert_eq!(name, "user_logs/std_log.txt");
    assert!(!format!("{parts:?}").contains("storage.example.com"));
}

#[test]
fn one_failed_job_of_several_is_the_result_once_all_have_ended() {
    let identity = identity(AzureService::Ml, WorkShape::Job { tasks: 2 });
    let job = |state: &str| Some(json!({"properties": {"status": state}}));
    let status = identity.status(&[Some(group()), job("Failed"), None, job("Running"), None]);
    assert_eq!(status.state, DeploymentState::Running);
    let status = identity.status(&[Some(group()), job("Completed"), None, job("Failed"), None]);
    assert_eq!(status.state, DeploymentState::Failed);
    let status = identity.status(&[Some(group()), job("Completed"), None, job("Completed"), None]);
    assert_eq!((status.state, status.exit_code), (DeploymentState::Succeeded, Some(0)));
}

#[test]
fn a_deployment_whose_groups_are_deleted_is_gone() {
    for spec in specs::all() {
        let Ok(deployment) = deployment(&Facts::embedded(), &spec) else { continue };
        let identity = deployment.identity;
        let calls = identity.status_calls();
        let none = vec![None; calls.len()];
        assert_eq!(identity.status(&none).state, DeploymentState::Gone);
        let mut deleting = none;
        deleting[0] = Some(json!({"properties": {"provisioningState": "Deleting"}}));
        let status = identity.status(&deleting);
        assert_eq!((status.state, status.phase), (DeploymentState::Deleting, Phase::Delete));
    }
}

#[test]
fn an_identity_is_stored_and_read_again() {
    for spec in specs::all() {
        let Ok(deployment) = deployment(&Facts::embedded(), &spec) else { continue };
        let stored = serde_json::to_string(&deployment.identity).unwrap();
        let read: DeploymentIdentity = serde_json::from_str(&stored).unwrap();
        assert_eq!(read, deployment.identity);
        assert_eq!(read.status_calls(), deployment.identity.status_calls());
    }
}

/// Any JSON that resembles an answer: keys and states that are read, of any type.
fn json_like() -> impl Strategy<Value = Value> {
    let strings = prop::sample::select(vec![
        "Running",
        "Succeeded",
        "Failed",
        "Terminated",
        "completed",
        "Deleting",
        "PowerState/x",
        "2026-11-17T01:00:00Z",
        "\u{e9}",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        strings.prop_map(Value::from),
    ];
    let keys = prop::sample::select(vec![
        "properties",
        "value",
        "containers",
        "instanceView",
        "currentState",
        "state",
        "status",
        "statuses",
        "code",
        "executionInfo",
        "poolId",
        "exitCode",
        "provisioningState",
        "latestRevisionName",
        "name",
        "error",
        "details",
        "events",
    ]);
    leaf.prop_recursive(5, 64, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((keys.clone(), inner), 0..5).prop_map(|entries| entries
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect()),
        ]
    })
}

proptest! {
    #[test]
    fn no_answer_makes_it_panic(
        service in prop::sample::select(specs::TARGETS.to_vec()),
        work in prop::sample::select(vec![SERVE, JOB, WorkShape::Job { tasks: 3 }, WorkShape::MultiNode { nodes: 2 }]),
        answers in prop::collection::vec(prop::option::of(json_like()), 0..7),
    ) {
        let identity = identity(service, work);
        let _ = identity.status(&answers);
        let _ = identity.log_parts(&answers);
        for call in identity.follow_up_calls(&answers).into_iter().chain(identity.log_follow_up_calls(&answers)) {
            prop_assert!(call.path.starts_with('/') && call.path.is_ascii(), "{}", call.path);
        }
    }
}
