//! Batch: automatic pools, tasks, and what nodes cost.

use cudock_azure_testkit::CloudSettings;
use cudock_base::Secret;
use cudock_http::Method;
use serde_json::{Value, json};

use crate::client::{Answered, Azure, prompt};

struct Batch {
    azure: Azure,
    token: Secret,
}

impl Batch {
    fn start(settings: CloudSettings) -> Option<Self> {
        let azure = Azure::start(settings)?;
        let token = azure.token_for("https://batch.core.windows.net/.default");
        Some(Self { azure, token })
    }

    fn send(&self, method: &Method, path: &str, body: Option<&Value>) -> Answered {
        let url = format!("{}{path}?api-version=2024-07-01.20.0", self.azure.stand_in.batch_url());
        self.azure.send_with(method, &url, body, &self.token).unwrap()
    }

    /// A job with a pool of its own, in the account that exists.
    fn job(&self, limit: &str, spot: bool) -> Answered {
        let (dedicated, low_priority) = if spot { (0, 1) } else { (1, 0) };
        let pool = json!({
            "vmSize": "Standard_NC4as_T4_v3", "targetDedicatedNodes": dedicated, "targetLowPriorityNodes": low_priority,
        });
        let job = json!({
            "id": "j", "constraints": {"maxWallClockTime": limit},
            "poolInfo": {"autoPoolSpecification": {"poolLifetimeOption": "job", "keepAlive": false, "pool": pool}},
        });
        self.send(&Method::POST, "/jobs", Some(&job))
    }

    fn add_task(&self) -> Answered {
        self.send(&Method::POST, "/jobs/j/tasks", Some(&json!({"id": "t", "commandLine": "true"})))
    }

    fn end_with_the_last_task(&self) {
        let patched =
            self.send(&Method::PATCH, "/jobs/j", Some(&json!({"onAllTasksComplete": "terminatejob"})));
        assert_eq!(patched.status, 200);
    }
}

#[test]
fn a_job_ends_with_its_last_task_and_takes_its_pool_along() {
    let Some(batch) = Batch::start(prompt()) else { return };
    assert_eq!(batch.job("PT1H", false).status, 201);
    let repeated = batch.job("PT1H", false);
    assert_eq!((repeated.status, repeated.code()), (409, "JobExists"));
    assert_eq!(batch.add_task().status, 201);
    assert_eq!(batch.add_task().code(), "TaskExists");
    batch.end_with_the_last_task();
    let job = batch.send(&Method::GET, "/jobs/j", None).body;
    assert_eq!(job["state"], "active");
    let pool = job["executionInfo"]["poolId"].as_str().unwrap().to_owned();
    let nodes = batch.send(&Method::GET, &format!("/pools/{pool}/nodes"), None).body;
    let time =
        |value: &Value| cudock_base::Timestamp::parse(value.as_str().unwrap()).unwrap().millis().unwrap();
    let allocated = time(&nodes["value"][0]["allocationTime"]);
    batch.azure.pass(400);
    let job = batch.send(&Method::GET, "/jobs/j", None).body;
    assert_eq!(
        (job["state"].as_str(), job["executionInfo"]["terminateReason"].as_str()),
        (Some("completed"), Some("AllTasksComplete"))
    );
    let task = batch.send(&Method::GET, "/jobs/j/tasks/t", None).body;
    assert_eq!(task["executionInfo"]["exitCode"], 0);
    let billed = time(&job["executionInfo"]["endTime"]) - allocated;
    assert_eq!(batch.azure.stand_in.billed_seconds() * 1000, billed);
    batch.azure.pass(100);
    assert_eq!(batch.send(&Method::GET, &format!("/pools/{pool}"), None).code(), "PoolNotFound");
    assert!(batch.azure.stand_in.leftovers().is_empty());
}

#[test]
fn a_job_without_tasks_that_may_end_with_the_last_one_ends_at_once() {
    let Some(batch) = Batch::start(prompt()) else { return };
    batch.job("PT1H", false);
    batch.end_with_the_last_task();
    assert_eq!(batch.send(&Method::GET, "/jobs/j", None).body["state"], "completed");
}

#[test]
fn a_job_ends_at_its_time_limit_without_a_client() {
    let Some(batch) = Batch::start(CloudSettings { job_seconds: 100_000, ..prompt() }) else { return };
    batch.job("PT30M", false);
    batch.add_task();
    batch.azure.pass(1700);
    assert_eq!(batch.azure.stand_in.billed().len(), 1);
    batch.azure.pass(300);
    assert!(batch.azure.stand_in.billed().is_empty());
    assert_eq!(batch.azure.stand_in.leftovers(), Vec::<String>::new());
}

#[test]
fn a_preempted_node_is_not_billed_and_its_task_starts_again() {
    let settings = CloudSettings { evict_after: Some(150), job_seconds: 100, ..prompt() };
    let Some(batch) = Batch::start(settings) else { return };
    batch.job("PT1H", true);
    batch.add_task();
    batch.azure.pass(160);
    assert!(batch.azure.stand_in.billed().is_empty());
    let task = batch.send(&Method::GET, "/jobs/j/tasks/t", None).body;
    assert_eq!(
        (task["state"].as_str(), task["executionInfo"]["requeueCount"].as_u64()),
        (Some("active"), Some(1))
    );
    batch.azure.pass(300);
    batch.send(&Method::GET, "/jobs/j", None);
    assert_eq!(batch.send(&Method::GET, "/jobs/j/tasks/t", None).body["state"], "completed");
}

#[test]
fn quota_shows_as_an_error_of_the_pool() {
    let quota = std::collections::BTreeMap::from([("cores".to_owned(), 3)]);
    let Some(batch) = Batch::start(CloudSettings { quota, ..prompt() }) else { return };
    batch.job("PT1H", false);
    let job = batch.send(&Method::GET, "/jobs/j", None).body;
    let pool = batch.send(
        &Method::GET,
        &format!("/pools/{}", job["executionInfo"]["poolId"].as_str().unwrap()),
        None,
    );
    assert_eq!(pool.body["resizeErrors"][0]["code"], "AccountCoreQuotaReached");
    assert!(batch.azure.stand_in.billed().is_empty());
}
