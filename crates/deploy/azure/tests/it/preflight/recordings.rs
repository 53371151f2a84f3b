//! Answers that the services really gave; they are not part of this repository.

use cudock_facts::services::AzureService;
use std::fs;
use std::path::Path;

use cudock_azure::ExistingResources;
use cudock_azure::preflight::{Candidate, PreflightVerdict, QueryResult, Question, Topic};
use serde_json::Value;

use crate::specs::specifications as specs;

use super::support::{A100, T4, candidate, report, request_for, rows, verdict};

use PreflightVerdict::{Blocked, Ok as Fine, Warning};

fn load(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// The last answer of a recording to a request whose URL has a text in it.
fn recorded(specs: &Path, recording: &str, part_of_url: &str) -> QueryResult {
    let file = load(&specs.join("wire").join(format!("{recording}.json")));
    let interactions = file["interactions"].as_array().unwrap();
    let is_wanted = |one: &&Value| {
        one["request"]["url"].as_str().unwrap().contains(part_of_url) && !one["response"]["body"].is_null()
    };
    let one = interactions.iter().rfind(is_wanted).unwrap_or_else(|| panic!("{recording}: {part_of_url}"));
    let status = one["response"]["status"].as_u64().unwrap().try_into().unwrap();
    QueryResult::Response { status, body: one["response"]["body"].clone() }
}

/// The answer of an example of the specification.
fn example(path: &Path) -> QueryResult {
    QueryResult::Response { status: 200, body: load(path)["responses"]["200"]["body"].clone() }
}

#[test]
fn compute_usages_have_all_gpu_families_of_the_tables() {
    let Some(specs) = specs() else { return };
    let usages = recorded(&specs, "compute-usages-gpu-rows", "/usages");
    let QueryResult::Response { body, .. } = &usages else { panic!() };
    let facts = cudock_facts::Facts::embedded();
    let names: Vec<&str> =
        body["value"].as_array().unwrap().iter().filter_map(|row| row["name"]["value"].as_str()).collect();
    for size in [
        T4,
        A100,
        "Standard_ND96isr_H100_v5",
        "Standard_ND96isr_H200_v5",
        "Standard_NV36ads_A10_v5",
        "Standard_ND96isr_MI300X_v5",
    ] {
        let family = facts.sizes().find(size).one().unwrap().quota_family.as_deref().unwrap();
        let count = names.iter().filter(|name| facts.quotas().limits("vm", name, family)).count();
        assert_eq!(count, 1, "{size}: {family}");
    }
    let request = request_for(vec![candidate(AzureService::Vm, A100, "westus")]);
    let topic = Topic::VmUsages("westus".to_owned());
    let found = report(&request, vec![(topic.clone(), usages.clone())]);
    assert_eq!(rows(&found, Question::FamilyQuota)[0].detail, "needs 24 vCPUs, 0 of 0 free");
    assert_eq!(rows(&found, Question::RegionalQuota)[0].detail, "needs 24 vCPUs, 86 of 100 free");
    let spot = request_for(vec![Candidate {
        is_spot: true,
        instances: 5,
        ..candidate(AzureService::Vm, A100, "westus")
    }]);
    let found = report(&spot, vec![(topic, usages)]);
    assert_eq!(rows(&found, Question::SpotQuota)[0].detail, "needs 120 vCPUs, 100 of 100 free");
}

#[test]
fn a_recorded_batch_account_has_no_quota_for_current_gpus() {
    let Some(specs) = specs() else { return };
    let QueryResult::Response { body, .. } = recorded(&specs, "batch-account-quotas", "operationResults")
    else {
        panic!()
    };
    let accounts = QueryResult::Response { status: 200, body: serde_json::json!({ "value": [body] }) };
    let mut request = request_for(vec![candidate(AzureService::Batch, A100, "eastus2")]);
    request.existing = ExistingResources {
        batch_account: Some("clitest.rg000001/clibatchtestacct000003".into()),
        ..ExistingResources::default()
    };
    for (size, expected) in [
        (A100, "needs 24 vCPUs, limit 0, use unknown"),
        ("Standard_ND96isr_MI300X_v5", "needs 96 vCPUs, limit 0, use unknown"),
        // Not in the account's list at all.
        ("Standard_ND96isr_H200_v5", "needs 96 vCPUs, 0 of 0 free"),
    ] {
        request.candidates[0].size = Some(size.to_owned());
        let found = report(&request, vec![(Topic::BatchAccounts, accounts.clone())]);
        assert_eq!(rows(&found, Question::FamilyQuota)[0].detail, expected, "{size}");
        assert_eq!(
            rows(&found, Question::ServiceQuota)[0].detail.split(',').nth(1),
            Some(" limit 500"),
            "{size}"
        );
    }
    request.candidates[0].is_spot = true;
    let found = report(&request, vec![(Topic::BatchAccounts, accounts)]);
    assert_eq!(verdict(&found, Question::SpotQuota), (Fine, None));
}

#[test]
fn recorded_profiles_lack_the_serverless_gpus_that_are_documented() {
    let Some(specs) = specs() else { return };
    let profiles =
        recorded(&specs, "containerapps-profile-types", "availableManagedEnvironmentsWorkloadProfileTypes");
    let topic = Topic::AppProfiles("eastus".to_owned());
    for (profile, expected) in [
        ("D4", (Fine, None)),
        ("Consumption-GPU-NC8as-T4", (Warning, Some("CD0856"))),
        ("NC24-A100", (Blocked, Some("CD0856"))),
    ] {
        let request = request_for(vec![candidate(AzureService::ContainerApps, profile, "eastus")]);
        let found = report(&request, vec![(topic.clone(), profiles.clone())]);
        assert_eq!(verdict(&found, Question::Offered), expected, "{profile}");
    }
}

#[test]
fn recorded_usages_of_container_apps_limit_gpus() {
    let Some(specs) = specs() else { return };
    let recording = "containerapps-environment-and-usages";
    let environment = recorded(&specs, recording, "managedEnvironments/containerapp-e2e-env000003/usages");
    let region = recorded(&specs, recording, "locations/northcentralusstage/usages");
    let mut request = request_for(vec![candidate(
        AzureService::ContainerApps,
        "Consumption-GPU-NC8as-T4",
        "northcentralus",
    )]);
    let changes = || {
        vec![
            (Topic::EnvironmentUsages, environment.clone()),
            (Topic::AppUsages("northcentralus".to_owned()), region.clone()),
        ]
    };
    assert_eq!(
        rows(&report(&request, changes()), Question::ServiceQuota)[0].detail,
        "needs 1 environment, 36 of 50 free"
    );
    request.existing.container_apps_environment = Some("team/env".into());
    for (instances, expected) in [(5, Fine), (6, Blocked)] {
        request.candidates[0].instances = instances;
        assert_eq!(verdict(&report(&request, changes()), Question::FamilyQuota).0, expected, "{instances}");
    }
}

#[test]
fn a_recorded_provider_state_that_is_not_registered_blocks() {
    let Some(specs) = specs() else { return };
    let QueryResult::Response { body, .. } = recorded(&specs, "provider-register", "?api-version") else {
        panic!()
    };
    let mut provider = body;
    assert!(provider["registrationState"].is_string());
    provider["namespace"] = "Microsoft.Logic".into();
    let mut request = request_for(vec![candidate(AzureService::Aci, "", "westeurope")]);
    request.candidates[0].size = None;
    let answer = QueryResult::Response { status: 200, body: serde_json::json!({"value": [provider]}) };
    let found = report(&request, vec![(Topic::Providers, answer)]);
    let row = &rows(&found, Question::Providers)[0];
    assert_eq!(row.verdict, Blocked);
    assert!(row.detail.contains("Microsoft.ContainerInstance"), "{}", row.detail);
}

#[test]
fn examples_of_the_specification_are_read() {
    let Some(specs) = specs() else { return };
    let openapi = specs.join("openapi");
    let usages = example(&openapi.join("machinelearningservices/resource-manager/Microsoft.MachineLearningServices/stable/2024-10-01/examples/Usage/list.json"));
    let QueryResult::Response { mut body, status } = usages else { panic!() };
    // The example has no quota for the family, as if it were not listed.
    for row in body["value"].as_array_mut().unwrap() {
        if row["name"]["value"] == "Standard NCv3 Family Cluster Dedicated vCPUs" {
            row["limit"] = 12.into();
        }
    }
    let request = request_for(vec![candidate(AzureService::Ml, "Standard_NC6s_v3", "eastus")]);
    let found = report(
        &request,
        vec![(Topic::MlUsages("eastus".to_owned()), QueryResult::Response { status, body })],
    );
    let family = &rows(&found, Question::FamilyQuota)[0];
    assert_eq!(family.detail, "needs 6 vCPUs, 12 of 12 free", "{family:?}");
    assert_eq!(rows(&found, Question::RegionalQuota)[0].detail, "needs 6 vCPUs, 10 of 24 free");

    let skus = example(&openapi.join("compute/resource-manager/Microsoft.Compute/Skus/stable/2021-07-01/examples/skus/ListAvailableResourceSkusForARegion.json"));
    let request = request_for(vec![candidate(AzureService::Vm, "Standard_A1", "westus")]);
    let found = report(&request, vec![(Topic::Skus(Some("westus".to_owned())), skus)]);
    assert_eq!(rows(&found, Question::Offered)[0].detail, "westus, zones 1, 2, 3");

    let groups = example(&openapi.join("containerinstance/resource-manager/Microsoft.ContainerInstance/stable/2023-05-01/examples/ContainerGroupUsage.json"));
    let request =
        request_for(vec![Candidate { size: None, ..candidate(AzureService::Aci, "", "westcentralus") }]);
    let found = report(&request, vec![(Topic::AciUsages("westcentralus".to_owned()), groups)]);
    assert_eq!(rows(&found, Question::ServiceQuota)[0].detail, "needs 1 group, 1999 of 2000 free");

    let sizes = example(&openapi.join("batch/resource-manager/Microsoft.Batch/stable/2024-07-01/examples/LocationListVirtualMachineSkus.json"));
    let mut request = request_for(vec![candidate(AzureService::Batch, "Standard_A1", "japaneast")]);
    request.existing.batch_account = Some("team/shared".into());
    let found = report(&request, vec![(Topic::BatchSizes("japaneast".to_owned()), sizes)]);
    assert_eq!(rows(&found, Question::Offered)[0].detail, "until 2024-08-31");
}
