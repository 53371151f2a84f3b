//! Every request body against the official schemas.

use cudock_facts::Facts;
use cudock_facts::services::AzureService;
use std::collections::{BTreeMap, BTreeSet};

use cudock_azure::{Call, DeploymentSpec, Plane, deployment};
use cudock_http::Method;
use cudock_testkit::random::{Random, cases, seed};
use serde_json::{Value, json};

use crate::schema::{Documents, Schema};
use crate::specs;

const BATCH: &str = "openapi/batch/data-plane/Microsoft.Batch/stable/2024-07-01.20.0/BatchService.json";
const JOBS: &str = "openapi/app/resource-manager/Microsoft.App/stable/2024-03-01/Jobs.json";
const LOGIC: &str = "openapi/logic/resource-manager/Microsoft.Logic/stable/2019-05-01/logic.json";
const COMPUTE: &str = "openapi/compute/resource-manager/Microsoft.Compute/ComputeRP/stable/2024-07-01";
const ML: &str = "openapi/machinelearningservices/resource-manager/Microsoft.MachineLearningServices/stable/2024-10-01/mfe.json";

/// The schema of each resource type as a template's resource.
const TEMPLATES: &[(&str, &str, &str)] = &[
    (
        "Microsoft.Resources/deployments",
        "2025-04-01/Microsoft.Resources.json",
        "resourceDefinitions/deployments",
    ),
    (
        "Microsoft.Resources/resourceGroups",
        "2025-04-01/Microsoft.Resources.json",
        "subscription_resourceDefinitions/resourceGroups",
    ),
    (
        "Microsoft.Authorization/roleAssignments",
        "2022-04-01/Microsoft.Authorization.json",
        "resourceDefinitions/roleAssignments",
    ),
    (
        "Microsoft.Compute/virtualMachines",
        "2026-03-01/Microsoft.Compute.json",
        "resourceDefinitions/virtualMachines",
    ),
    (
        "Microsoft.Compute/virtualMachines/runCommands",
        "2026-03-01/Microsoft.Compute.json",
        "resourceDefinitions/virtualMachines_runCommands",
    ),
    (
        "Microsoft.Network/networkSecurityGroups",
        "2025-07-01/Microsoft.Network.NRP.cut.json",
        "resourceDefinitions/networkSecurityGroups",
    ),
    (
        "Microsoft.Network/virtualNetworks",
        "2025-07-01/Microsoft.Network.NRP.cut.json",
        "resourceDefinitions/virtualNetworks",
    ),
    (
        "Microsoft.Network/publicIPAddresses",
        "2025-07-01/Microsoft.Network.NRP.cut.json",
        "resourceDefinitions/publicIPAddresses",
    ),
    (
        "Microsoft.Network/networkInterfaces",
        "2025-07-01/Microsoft.Network.NRP.cut.json",
        "resourceDefinitions/networkInterfaces",
    ),
    ("Microsoft.Batch/batchAccounts", "2025-06-01/Microsoft.Batch.json", "resourceDefinitions/batchAccounts"),
    (
        "Microsoft.ContainerInstance/containerGroups",
        "2025-09-01/Microsoft.ContainerInstance.json",
        "resourceDefinitions/containerGroups",
    ),
    (
        "Microsoft.App/managedEnvironments",
        "2026-01-01/Microsoft.App.json",
        "resourceDefinitions/managedEnvironments",
    ),
    ("Microsoft.App/containerApps", "2026-01-01/Microsoft.App.json", "resourceDefinitions/containerApps"),
    ("Microsoft.App/jobs", "2026-01-01/Microsoft.App.json", "resourceDefinitions/jobs"),
    (
        "Microsoft.MachineLearningServices/workspaces/environments/versions",
        "2026-05-01/Microsoft.MachineLearningServices.json",
        "resourceDefinitions/workspaces_environments_versions",
    ),
    (
        "Microsoft.MachineLearningServices/workspaces/computes",
        "2026-05-01/Microsoft.MachineLearningServices.json",
        "resourceDefinitions/workspaces_computes",
    ),
    (
        "Microsoft.MachineLearningServices/workspaces/jobs",
        "2026-05-01/Microsoft.MachineLearningServices.json",
        "resourceDefinitions/workspaces_jobs",
    ),
    (
        "Microsoft.MachineLearningServices/workspaces/onlineEndpoints",
        "2026-05-01/Microsoft.MachineLearningServices.json",
        "resourceDefinitions/workspaces_onlineEndpoints",
    ),
    (
        "Microsoft.MachineLearningServices/workspaces/onlineEndpoints/deployments",
        "2026-05-01/Microsoft.MachineLearningServices.json",
        "resourceDefinitions/workspaces_onlineEndpoints_deployments",
    ),
];

/// The schema of a resource as it is sent: some types have none as a template's resource.
pub(crate) fn resource_faults(documents: &Documents, kind: &str, name: &str, body: &Value) -> Vec<String> {
    let mut body = body.clone();
    let object = body.as_object_mut().unwrap();
    for key in ["dependsOn", "resourceGroup", "scope"] {
        object.remove(key);
    }
    let of_request = match kind {
        "Microsoft.Logic/workflows" => Some(documents.schema(LOGIC, "/definitions/Workflow")),
        "Microsoft.Compute/virtualMachines/extensions" => Some(
            documents
                .schema(&format!("{COMPUTE}/virtualMachine.json"), "/definitions/VirtualMachineExtension"),
        ),
        _ => None,
    };
    if let Some(schema) = of_request {
        for key in ["type", "apiVersion", "name"] {
            object.remove(key);
        }
        return documents.faults(&schema, &body);
    }
    let (_, file, pointer) =
        TEMPLATES.iter().find(|(known, ..)| *known == kind).unwrap_or_else(|| panic!("no schema for {kind}"));
    let schema = documents.schema(&format!("arm-schemas/{file}"), &format!("/{pointer}"));
    let version = file.split_once('/').unwrap().0;
    object.insert("apiVersion".to_owned(), json!(version));
    object.insert("type".to_owned(), json!(kind));
    object.insert("name".to_owned(), json!(name));
    let mut faults = documents.faults(&schema, &body);
    for resource in
        body.pointer("/properties/template/resources").and_then(Value::as_array).into_iter().flatten()
    {
        let text = |key: &str| resource[key].as_str().unwrap();
        let own = resource_faults(documents, text("type"), text("name"), resource);
        faults.extend(own.into_iter().map(|fault| format!("{} {}: {fault}", text("type"), text("name"))));
    }
    faults
}

/// Type and name of the resource that a path means.
fn resource_of(path: &str) -> (String, String) {
    let (_, provider) = path.split('?').next().unwrap().rsplit_once("/providers/").unwrap();
    let parts: Vec<&str> = provider.split('/').collect();
    let kind: Vec<&str> = parts.iter().skip(1).step_by(2).copied().collect();
    let names: Vec<&str> = parts.iter().skip(2).step_by(2).copied().collect();
    (format!("{}/{}", parts[0], kind.join("/")), names.last().unwrap().to_string())
}

fn batch_schema(documents: &Documents, call: &Call) -> Schema {
    let path = call.path.split('?').next().unwrap();
    let name = match (&call.method, path.rsplit('/').next().unwrap()) {
        (&Method::POST, "jobs") => "JobAddParameter",
        (&Method::POST, "addtaskcollection") => "TaskAddCollectionParameter",
        (&Method::PATCH, _) => "JobPatchParameter",
        _ => panic!("{} {path} has no schema", call.method),
    };
    documents.schema(BATCH, &format!("/definitions/{name}"))
}

fn faults(documents: &Documents, call: &Call, body: &Value) -> Vec<String> {
    match (&call.plane, &call.method) {
        (Plane::Batch { .. }, _) => documents.faults(&batch_schema(documents, call), body),
        (Plane::ResourceManager, &Method::PUT) => {
            let (kind, name) = resource_of(&call.path);
            resource_faults(documents, &kind, &name, body)
        }
        (Plane::ResourceManager, _) => {
            let path = call.path.split('?').next().unwrap();
            let schema = match path.rsplit('/').next().unwrap() {
                "start" => documents.schema(JOBS, "/definitions/JobExecutionTemplate"),
                "runCommand" => {
                    documents.schema(&format!("{COMPUTE}/runCommand.json"), "/definitions/RunCommandInput")
                }
                "getLogs" => documents.schema(ML, "/definitions/DeploymentLogsRequest"),
                other => panic!("{other} has no schema"),
            };
            documents.faults(&schema, body)
        }
        (Plane::MlHistory { .. }, _) => panic!("no body is sent to the run history"),
    }
}

#[test]
fn every_body_validates_against_the_official_schema() {
    let Some(root) = specs::specifications() else { return };
    let documents = Documents::new(root);
    let mut count = BTreeMap::<AzureService, usize>::new();
    let mut wrong = BTreeSet::new();
    for spec in specs::all() {
        let Ok(deployment) = deployment(&Facts::embedded(), &spec) else { continue };
        *count.entry(spec.service).or_default() += 1;
        let logs = deployment.identity.log_calls();
        let calls = deployment.steps.iter().chain(&deployment.cleanup).map(|step| &step.call).chain(&logs);
        for call in calls {
            let Some(body) = &call.body else { continue };
            let faults = faults(&documents, call, &body.expose());
            wrong
                .extend(faults.into_iter().map(|fault| format!("{:?} {}: {fault}", spec.service, call.path)));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(count.values().sum::<usize>() >= 60, "{count:?}");
    assert!(
        specs::TARGETS.iter().all(|service| count.get(service).is_some_and(|count| *count >= 6)),
        "{count:?}"
    );
}

const GIB: f64 = 1_073_741_824.0;

/// The processors and the memory of each container in a request.
fn amounts(body: &Value) -> Vec<(f64, f64)> {
    let containers = ["/properties/containers", "/properties/template/containers", "/containers"];
    let containers = containers.iter().filter_map(|pointer| body.pointer(pointer)?.as_array()).flatten();
    let amounts = containers.filter_map(|container| {
        let requests = &container["properties"]["resources"]["requests"];
        if requests.is_object() {
            return Some((requests["cpu"].as_f64()?, requests["memoryInGB"].as_f64()?));
        }
        let resources = &container["resources"];
        let memory = resources["memory"].as_str()?.strip_suffix("Gi")?.parse().ok()?;
        Some((resources["cpu"].as_f64()?, memory))
    });
    amounts.collect()
}

/// Whether a number is written as a multiple of `1 / per_unit`, without what binary fractions leave behind.
fn is_multiple(number: f64, per_unit: u32) -> bool {
    let decimals = number.to_string().split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let steps = number * f64::from(per_unit);
    decimals <= 2 && (steps - steps.round()).abs() < 1e-9
}

/// The steps of Container Instances are those that its refusals name ("times of 0.1 GB", "increments of 0.01"); those of
/// Container Apps the pairs of its consumption profile, all of which other profiles take, too.
#[test]
fn amounts_are_multiples_of_the_steps_that_services_take_and_never_less_than_requested() {
    let mut random = Random::new(seed());
    let profile = || Some("Consumption-GPU-NC8as-T4".to_owned());
    for index in 0..cases(300) as usize {
        let mut number = |below: u32| f64::from(1 + u32::try_from(random.below(below as usize)).unwrap());
        // Among them whole numbers of the unit, of tenths of it, and of megabytes.
        let kinds = [
            number(60) * 1e9 / GIB,
            number(600) / 10.0,
            number(60_000) * 1e6 / GIB,
            number(1 << 31) * 32.0 / GIB,
        ];
        let memory_gib = kinds[index % kinds.len()];
        let cpus = if number(2) < 2.0 { 0.1 * number(60) } else { number(6_000_000) / 1e6 };
        for (service, size, gpus, steps, limits) in [
            (AzureService::Aci, None, 0, (100, 10), (31.0, 240.0)),
            (AzureService::ContainerApps, profile(), 1, (4, 2), (8.0, 56.0)),
            (AzureService::ContainerApps, None, 0, (4, 2), (4.0, 8.0)),
        ] {
            for work in [specs::serve(), specs::job(0)] {
                let spec = DeploymentSpec {
                    size: size.clone(),
                    gpus,
                    cpus,
                    memory_gib,
                    ..specs::spec(service, work)
                };
                let fits = cpus <= limits.0 && memory_gib <= limits.1;
                let Ok(deployment) = deployment(&Facts::embedded(), &spec) else {
                    assert!(!fits, "{service:?} {cpus} {memory_gib} is refused");
                    continue;
                };
                assert!(fits, "{service:?} {cpus} {memory_gib} is over the limit");
                let bodies = deployment.steps.iter().filter_map(|step| step.call.body.as_ref());
                let found: Vec<(f64, f64)> = bodies.flat_map(|body| amounts(body.redacted())).collect();
                assert!(!found.is_empty());
                for (cpu, memory) in found {
                    let what =
                        format!("{service:?}: {cpus} becomes {cpu}, and {memory_gib} becomes {memory}");
                    assert!(is_multiple(cpu, steps.0) && is_multiple(memory, steps.1), "{what}");
                    assert!(cpu >= cpus - 1e-6 && memory >= memory_gib - 1e-6, "{what}");
                    assert!(cpu <= limits.0 && memory <= limits.1, "{what}");
                    if service == AzureService::ContainerApps && size.is_none() {
                        assert!((memory - 2.0 * cpu).abs() < 1e-9, "{what}");
                    } else {
                        assert!(
                            cpu < cpus + 1.0 / f64::from(steps.0)
                                && memory < memory_gib + 1.0 / f64::from(steps.1),
                            "{what}"
                        );
                    }
                }
            }
        }
    }
}

/// One small change to a valid body.
type Change = fn(&mut Value);

#[test]
fn a_body_with_a_mistake_does_not_validate() {
    let Some(root) = specs::specifications() else { return };
    let documents = Documents::new(root);
    let cases: [(AzureService, &str, Change, &str); 8] = [
        (
            AzureService::Aci,
            "containers",
            |body| body["properties"]["memory"] = json!(1),
            "/properties/memory is unknown",
        ),
        (
            AzureService::Aci,
            "containers",
            |body| body["properties"]["osType"] = json!("Plan9"),
            "/properties/osType",
        ),
        (
            AzureService::Aci,
            "containers",
            |body| {
                body["properties"]["containers"][0].as_object_mut().unwrap().remove("name");
            },
            "has no name",
        ),
        (
            AzureService::Batch,
            "job",
            |body| body["constraints"]["maxTaskRetryCount"] = json!("1"),
            "not of type integer",
        ),
        (AzureService::Batch, "job", |body| body["onAllTasksCompleted"] = json!("noaction"), "is unknown"),
        (
            AzureService::Vm,
            "vm",
            |body| {
                let resources = body["properties"]["template"]["resources"].as_array_mut().unwrap();
                resources[4]["properties"]["evictionPolicy"] = json!("Stop");
            },
            "evictionPolicy",
        ),
        (
            AzureService::ContainerApps,
            "app",
            |body| body["properties"]["template"]["containers"][0]["memory"] = json!("1Gi"),
            "is unknown",
        ),
        (
            AzureService::Vm,
            "reaper",
            |body| body["properties"]["template"]["resources"][0]["properties"] = json!([]),
            "not of type object",
        ),
    ];
    for (service, step, change, expected) in cases {
        let work = if service == AzureService::Batch { specs::job(0) } else { specs::serve() };
        let deployment = deployment(&Facts::embedded(), &specs::spec(service, work)).unwrap();
        let call = &deployment.steps.iter().find(|one| one.id == step).unwrap().call;
        let mut body = call.body.as_ref().unwrap().expose();
        assert_eq!(faults(&documents, call, &body), Vec::<String>::new());
        change(&mut body);
        let faults = faults(&documents, call, &body);
        assert!(faults.iter().any(|fault| fault.contains(expected)), "{step}: {faults:?}");
    }
}

#[test]
fn secrets_are_sent_and_neither_shown_nor_stored() {
    let secret = specs::password();
    let mut sent = 0;
    for spec in specs::all() {
        let Ok(deployment) = deployment(&Facts::embedded(), &spec) else { continue };
        let shown = format!("{deployment:?}") + &serde_json::to_string(&deployment.steps).unwrap();
        assert!(!shown.contains(&secret), "{:?}", spec.service);
        let steps = deployment.steps.iter().filter_map(|step| step.call.body.as_ref());
        let wire: String = steps.map(|body| body.expose().to_string()).collect();
        let has_secret = !spec.variables.is_empty();
        // The start script of a machine is base64 of base64.
        if has_secret && spec.service != AzureService::Vm {
            assert!(wire.contains(&secret), "{:?}", spec.service);
            sent += 1;
        }
    }
    assert!(sent >= 20, "{sent}");
}
