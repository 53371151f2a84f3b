//! Recorded answers of the real services, where they are at hand; they are not part of this repository.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use cudock_azure::{Body, Call, Cause, Plane, Step, Wait};
use cudock_http::Method;
use cudock_testkit::http::{Reply, Request, Server};
use serde_json::Value;

use crate::support::{azure, client, refusal, step};

/// Longer polls are shortened.
const MAX_REPEATED: u64 = 4;

fn recordings() -> Option<PathBuf> {
    Some(cudock_testkit::require_azure_specs()?.join("wire"))
}

fn interactions(directory: &Path, name: &str) -> Vec<Value> {
    let text = fs::read_to_string(directory.join(format!("{name}.json"))).unwrap();
    let mut recording: Value = serde_json::from_str(&text).unwrap();
    serde_json::from_value(recording["interactions"].take()).unwrap()
}

/// The path of a recorded request, with its query.
fn path(interaction: &Value) -> String {
    let url = interaction["request"]["url"].as_str().unwrap();
    let rest = url.strip_prefix("https://").unwrap();
    rest[rest.find('/').unwrap()..].to_owned()
}

fn recorded_reply(interaction: &Value, host: &str) -> Reply {
    let response = &interaction["response"];
    let status = u16::try_from(response["status"].as_u64().unwrap()).unwrap();
    let body = match &response["body"] {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    let headers = response["headers"].as_object().unwrap();
    // The recorder leaves Retry-After out.
    headers.iter().fold(Reply::new(status, body).with("Retry-After", "0"), |reply, (name, value)| {
        let value =
            value.as_str().unwrap().replace("https://management.azure.com", &format!("http://{host}"));
        reply.with(name, value)
    })
}

/// The parts of a path that are types, in lower case. The recorder replaced names in URLs, but not in headers.
fn types(path: &str) -> Vec<String> {
    let path = path.split('?').next().unwrap().to_ascii_lowercase();
    path.split('/').skip(1).step_by(2).map(str::to_owned).collect()
}

/// A server that gives the recorded answers from this one on, in their order.
fn replay(recording: Vec<Value>, from: usize) -> Server {
    let mut queue: Vec<Value> = Vec::new();
    for interaction in recording.into_iter().skip(from) {
        let times = interaction["repeated"].as_u64().unwrap_or(1).min(MAX_REPEATED);
        queue.extend((0..times).map(|_| interaction.clone()));
    }
    queue.reverse();
    let queue = Mutex::new(queue);
    azure(move |request: &Request| {
        let mut queue = queue.lock().unwrap();
        let is_next = |next: &Value| {
            next["request"]["method"] == request.method.as_str() && types(&path(next)) == types(&request.path)
        };
        match queue.last() {
            Some(next) if is_next(next) => recorded_reply(&queue.pop().unwrap(), &request.headers["host"]),
            _ => refusal(404, "NotRecorded"),
        }
    })
}

fn recorded_step(interaction: &Value) -> Step {
    let method: Method = interaction["request"]["method"].as_str().unwrap().parse().unwrap();
    let mut step = step(method, &path(interaction), Wait::Operation);
    step.call.body = interaction["request"].get("body").cloned().map(Body::new);
    step
}

#[test]
fn every_recorded_operation_ends_as_it_did() {
    let Some(directory) = recordings() else { return };
    for (name, begin, end) in [
        ("aci-create-logs-delete", 1, Some(4)),
        ("aci-create-logs-delete", 8, Some(8)),
        ("aml-compute", 0, Some(2)),
        ("aml-online-endpoint", 1, Some(3)),
        ("aml-online-endpoint", 6, Some(9)),
        ("batch-account-quotas", 0, Some(2)),
        ("containerapps-dedicated-gpu", 1, Some(4)),
        ("containerapps-dedicated-gpu", 5, Some(8)),
        ("containerapps-environment-and-usages", 2, Some(5)),
        ("containerapps-job-run-logs", 0, Some(3)),
        ("containerapps-profile-change", 0, Some(2)),
        ("logic-workflow-identity", 0, Some(0)),
        ("quota-read-and-raise", 1, Some(4)),
        ("quota-read-and-raise", 5, Some(8)),
        ("resourcegroup-force-delete", 0, None),
        ("roleassignment-principalnotfound", 0, Some(1)),
        ("vm-deploy-deallocate", 0, Some(3)),
        ("vm-deploy-deallocate", 6, None),
        ("vm-deploy-deallocate", 10, Some(12)),
    ] {
        let recording = interactions(&directory, name);
        let step = recorded_step(&recording[begin]);
        let expected = end.map_or(Value::Null, |end| recording[end]["response"]["body"].clone());
        let server = replay(recording, begin);
        let answer = client(&server).run(&step);
        let answer = answer.unwrap_or_else(|error| panic!("{name} {begin}: {error}"));
        assert_eq!(answer.body, expected, "{name} {begin}");
        assert!(answer.date.is_some() || expected.is_null(), "{name} {begin}: {answer:?}");
    }
}

#[test]
fn every_recorded_refusal_is_understood() {
    let Some(directory) = recordings() else { return };
    let batch = Plane::Batch { account: "clibatch".to_owned(), region: "eastus2".to_owned(), endpoint: None };
    for (name, index, plane, code, cause) in [
        ("deployment-quotaexceeded", 0, Plane::ResourceManager, "QuotaExceeded", Cause::RegionalQuota),
        ("vm-simulate-eviction", 1, Plane::ResourceManager, "OperationNotAllowed", Cause::Other),
        ("vm-simulate-eviction", 7, Plane::ResourceManager, "NotFound", Cause::NotFound),
        ("containerapps-dedicated-gpu", 0, Plane::ResourceManager, "ResourceNotFound", Cause::NotFound),
        ("batch-pools-and-nodes", 2, batch.clone(), "InvalidPropertyValue", Cause::Other),
        ("batch-pools-and-nodes", 16, batch.clone(), "PoolUsageMetricAPIRetired", Cause::Other),
        ("batch-pools-and-nodes", 23, batch.clone(), "InvalidApplicationPackageReferences", Cause::Other),
        ("batch-jobs-and-tasks", 6, batch, "ConditionNotMet", Cause::Other),
    ] {
        let recording = interactions(&directory, name);
        let call = Call { plane, ..recorded_step(&recording[index]).call };
        let server = replay(recording, index);
        let error = client(&server).send(&call).unwrap_err();
        let service = error.service().unwrap_or_else(|| panic!("{name} {index}: {error}"));
        assert_eq!((service.code.as_deref(), service.cause), (Some(code), cause), "{name} {index}");
        assert_eq!(error.is_not_found(), cause == Cause::NotFound, "{name} {index}");
        let message = service.message.as_deref().unwrap();
        assert!(!message.contains("RequestId") && !message.contains("lang"), "{message}");
        match name {
            "deployment-quotaexceeded" => {
                let quota = service.quota.as_ref().unwrap();
                assert_eq!((quota.limit, quota.used, quota.required), (10, 10, 2));
            }
            "batch-pools-and-nodes" if index == 2 => {
                assert!(message.contains("PropertyName: vmSize"), "{message}");
            }
            _ => {}
        }
    }
}
