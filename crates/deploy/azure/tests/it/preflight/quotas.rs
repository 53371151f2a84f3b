//! Rows about quotas.

use cudock_azure::ExistingResources;
use cudock_azure::preflight::{Candidate, PreflightVerdict, QueryResult, Question, Topic};
use cudock_facts::services::AzureService;
use serde_json::{Value, json};

use super::support::{
    A100, SUBSCRIPTION, T4, candidate, error, fix, ok, report, request_for, rows, usage, verdict,
};

use PreflightVerdict::{Blocked, Ok as Fine, Unknown, Warning};

const REGION: &str = "westeurope";

fn vm(usages: &Value) -> (Topic, QueryResult) {
    (Topic::VmUsages(REGION.to_owned()), ok(json!({ "value": usages })))
}

#[test]
fn a_machine_needs_quota_of_its_family_and_of_the_region() {
    let family = "StandardNCADSA100v4Family";
    for (instances, usages, expected) in [
        (1, json!([usage(family, 0, 24), usage("cores", 0, 24)]), [Fine, Fine]),
        (2, json!([usage(family, 0, 47), usage("cores", 0, 48)]), [Blocked, Fine]),
        (1, json!([usage(family, 1, 24), usage("cores", 0, 100)]), [Blocked, Fine]),
        (1, json!([usage(family, 0, 24), usage("cores", 80, 100)]), [Fine, Blocked]),
        (1, json!([usage("cores", 0, 100)]), [Blocked, Fine]),
        (1, json!([usage("standardncads a100v4 family", 0, 24), usage("Cores", 0, 24)]), [Fine, Fine]),
        (1, json!([usage(family, 0, -1), usage("cores", 0, 24)]), [Fine, Fine]),
        (1, json!([usage(family, 50, 24), usage("cores", 0, 24), {"name": 5}, null]), [Blocked, Fine]),
        (
            1,
            json!([{"name": {"value": family}, "currentValue": "0", "limit": "24.0"}, usage("cores", 0, 24)]),
            [Fine, Fine],
        ),
    ] {
        let request = request_for(vec![Candidate { instances, ..candidate(AzureService::Vm, A100, REGION) }]);
        let found = report(&request, vec![vm(&usages)]);
        let verdicts =
            [Question::FamilyQuota, Question::RegionalQuota].map(|question| verdict(&found, question).0);
        assert_eq!(verdicts, expected, "{instances} {usages}");
    }
}

#[test]
fn a_shortage_says_how_to_request_more() {
    let request = request_for(vec![candidate(AzureService::Vm, A100, REGION)]);
    let found = report(
        &request,
        vec![vm(&json!([usage("StandardNCADSA100v4Family", 8, 24), usage("cores", 0, 100)]))],
    );
    let row = &rows(&found, Question::FamilyQuota)[0];
    assert_eq!(row.detail, "needs 24 vCPUs, 16 of 24 free");
    let finding = row.finding.as_ref().unwrap();
    assert_eq!(
        finding.message,
        "not enough quota `StandardNCADSA100v4Family` in westeurope: needs 24 vCPUs, 16 of 24 free"
    );
    let fix = format!(
        "az quota update --resource-name 'StandardNCADSA100v4Family' --scope \
         /subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute/locations/westeurope --limit-object value=32 \
         limit-object-type=LimitValue --resource-type dedicated"
    );
    assert_eq!(finding.fix, fix);
}

#[test]
fn spot_needs_its_own_quota_and_no_other() {
    let usages = |spot: i64| vm(&json!([usage("lowPriorityCores", 0, spot), usage("cores", 100, 100)]));
    let request = request_for(vec![Candidate { is_spot: true, ..candidate(AzureService::Vm, A100, REGION) }]);
    for (limit, expected) in [(24, (Fine, None)), (23, (Blocked, Some("CD0861")))] {
        let found = report(&request, vec![usages(limit)]);
        assert_eq!(verdict(&found, Question::SpotQuota), expected);
        assert!(rows(&found, Question::FamilyQuota).is_empty());
    }
    let found = report(&request, vec![usages(0)]);
    let fix = fix(&found, Question::SpotQuota);
    assert!(fix.ends_with("--resource-type lowPriority"), "{fix}");
}

#[test]
fn the_quota_of_many_regions_comes_from_one_answer() {
    let regions: Vec<String> = (0..6).map(|index| format!("region{index}")).collect();
    let request = request_for(regions.iter().map(|region| candidate(AzureService::Vm, T4, region)).collect());
    let row =
        |region: &str, name: &str, max: i64| json!({"location": region, "n": name, "used": 0, "max": max});
    let data = json!([
        row("Region0", "cores", 100),
        row("region0", "Standard NCASv3_T4 Family", 8),
        row("region1", "cores", 100),
    ]);
    let found = report(&request, vec![(Topic::VmQuotas, ok(json!({"count": 3, "data": data})))]);
    let family = |index: usize| {
        let rows = &found.candidates[index].rows;
        rows.iter().find(|row| row.question == Question::FamilyQuota).unwrap().verdict
    };
    assert_eq!(family(0), Fine);
    assert_eq!(family(1), Blocked, "a family that is not listed has no quota");
    assert_eq!(family(2), Unknown, "a region that is not listed at all was left out");
}

/// A Batch account with some quotas.
fn account(properties: &Value) -> (Topic, QueryResult) {
    let id = format!(
        "/subscriptions/{SUBSCRIPTION}/resourcegroups/TEAM/providers/Microsoft.Batch/batchAccounts/shared"
    );
    (Topic::BatchAccounts, ok(json!({"value": [{"id": id, "location": REGION, "properties": properties}]})))
}

#[test]
fn a_batch_account_has_its_own_quotas() {
    let quotas = |total: i64, family: i64, enforced: Value| {
        account(&json!({
            "poolAllocationMode": "BatchService", "dedicatedCoreQuota": total, "lowPriorityCoreQuota": 4,
            "dedicatedCoreQuotaPerVMFamilyEnforced": enforced,
            "dedicatedCoreQuotaPerVMFamily": [{"name": "Standard NCASv3_T4 Family", "coreQuota": family}],
        }))
    };
    let existing =
        ExistingResources { batch_account: Some("team/shared".into()), ..ExistingResources::default() };
    let mut request = request_for(vec![candidate(AzureService::Batch, T4, REGION)]);
    request.existing = existing;
    for (answer, service, family) in [
        (quotas(500, 8, json!(true)), Fine, Some(Fine)),
        (quotas(500, 0, json!(true)), Fine, Some(Blocked)),
        (quotas(3, 8, json!(true)), Blocked, Some(Fine)),
        (quotas(500, 0, json!(false)), Fine, None),
        (quotas(500, 0, json!(null)), Fine, Some(Blocked)),
        (account(&json!({"poolAllocationMode": "UserSubscription"})), Unknown, None),
        ((Topic::BatchAccounts, ok(json!({"value": []}))), Blocked, None),
    ] {
        let found = report(&request, vec![answer.clone()]);
        assert_eq!(verdict(&found, Question::ServiceQuota).0, service, "{answer:?}");
        let rows = rows(&found, Question::FamilyQuota);
        assert_eq!(rows.first().map(|row| row.verdict), family, "{answer:?}");
    }
    request.candidates[0].is_spot = true;
    let found = report(&request, vec![quotas(500, 0, json!(true))]);
    assert_eq!(verdict(&found, Question::SpotQuota), (Fine, None), "Spot does not count by family");
}

#[test]
fn a_new_batch_account_may_be_one_too_many_and_has_no_known_quota() {
    let request = request_for(vec![candidate(AzureService::Batch, T4, REGION)]);
    let quota = |limit: i64| (Topic::BatchQuotas(REGION.to_owned()), ok(json!({"accountQuota": limit})));
    for (limit, expected) in [(2, (Fine, None)), (1, (Blocked, Some("CD0862")))] {
        let found = report(&request, vec![quota(limit), account(&json!({}))]);
        assert_eq!(verdict(&found, Question::ServiceQuota), expected);
        assert_eq!(verdict(&found, Question::FamilyQuota), (Warning, Some("CD0868")));
    }
    let missing = (Topic::BatchQuotas(REGION.to_owned()), error(400, "NoRegisteredProviderFound"));
    assert_eq!(verdict(&report(&request, vec![missing]), Question::ServiceQuota), (Blocked, Some("CD0856")));
}

/// Quotas of Machine Learning: of the family, of all families, of low priority.
fn ml(family: i64, total: i64, low: i64) -> (Topic, QueryResult) {
    let row = |id: &str, kind: &str, name: &str, limit: i64| {
        let mut row = usage(name, 0, limit);
        row["id"] = json!(format!("/subscriptions/{SUBSCRIPTION}/{id}"));
        row["type"] = json!(format!("Microsoft.MachineLearningServices/{kind}/usages"));
        row
    };
    let name = "Standard NCASv3_T4 Family Cluster Dedicated vCPUs";
    let rows = json!([
        row(
            "resourceGroups/rg/providers/Microsoft.MachineLearningServices/workspaces/w/usages/x",
            "workspaces",
            name,
            1000
        ),
        row("usages/a", "vmFamily", name, family),
        row("usages/b", "vmFamily", "Standard NCASv3_T4 Family Cluster LowPriority vCPUs", -1),
        row("usages", "dedicatedCores", "Total Cluster Dedicated Regional vCPUs", total),
        row("usages", "lowPriorityCores", "Total Cluster LowPriority Regional vCPUs", low),
    ]);
    (Topic::MlUsages(REGION.to_owned()), ok(json!({ "value": rows })))
}

#[test]
fn machine_learning_has_its_own_quotas_and_endpoints_need_a_fifth_more() {
    for (serves, is_spot, quotas, question, expected) in [
        (false, false, ml(4, 100, 0), Question::FamilyQuota, (Fine, None)),
        (false, false, ml(3, 100, 0), Question::FamilyQuota, (Blocked, Some("CD0859"))),
        (true, false, ml(4, 100, 0), Question::FamilyQuota, (Blocked, Some("CD0859"))),
        (true, false, ml(5, 100, 0), Question::FamilyQuota, (Fine, None)),
        (false, false, ml(4, 3, 0), Question::RegionalQuota, (Blocked, Some("CD0860"))),
        (false, true, ml(0, 0, 4), Question::SpotQuota, (Fine, None)),
        (false, true, ml(0, 0, 3), Question::SpotQuota, (Blocked, Some("CD0861"))),
    ] {
        let request =
            request_for(vec![Candidate { serves, is_spot, ..candidate(AzureService::Ml, T4, REGION) }]);
        let found = report(&request, vec![quotas.clone()]);
        assert_eq!(verdict(&found, question), expected, "{serves} {is_spot} {quotas:?}");
    }
    let request = request_for(vec![candidate(AzureService::Ml, T4, REGION)]);
    for missing in [error(404, "NotFound"), error(400, "NoRegisteredProviderFound")] {
        let found = report(&request, vec![(Topic::MlUsages(REGION.to_owned()), missing)]);
        assert_eq!(verdict(&found, Question::FamilyQuota), (Blocked, Some("CD0856")));
    }
}

#[test]
fn container_apps_limit_gpus_by_environment_or_subscription() {
    let with_environment = ExistingResources {
        container_apps_environment: Some("team/env".into()),
        ..ExistingResources::default()
    };
    let usages = |rows: Value| ok(json!({ "value": rows }));
    let environment = |limit: i64| {
        (Topic::EnvironmentUsages, usages(json!([usage("ManagedEnvironmentConsumptionT4Gpus", 0, limit)])))
    };
    let region = |rows: Value| (Topic::AppUsages("westus3".to_owned()), usages(rows));
    let serverless = "Consumption-GPU-NC8as-T4";
    for (profile, has_environment, change, expected) in [
        (serverless, true, environment(2), (Fine, None)),
        (serverless, true, environment(1), (Blocked, Some("CD0859"))),
        (
            serverless,
            true,
            (Topic::EnvironmentUsages, error(404, "ResourceNotFound")),
            (Blocked, Some("CD0869")),
        ),
        (serverless, false, environment(2), (Warning, Some("CD0868"))),
        (
            "NC24-A100",
            false,
            region(json!([usage("SubscriptionDedicatedNCA100Gpus", 0, 0)])),
            (Blocked, Some("CD0859")),
        ),
        ("NC24-A100", false, region(json!([usage("SubscriptionDedicatedNCA100Gpus", 0, 2)])), (Fine, None)),
        (
            "NC24-A100",
            false,
            (Topic::AppUsages("westus3".to_owned()), error(403, "x")),
            (Unknown, Some("CD0867")),
        ),
    ] {
        let mut request = request_for(vec![Candidate {
            instances: 2,
            ..candidate(AzureService::ContainerApps, profile, "westus3")
        }]);
        if has_environment {
            request.existing = with_environment.clone();
        }
        let found = report(&request, vec![change.clone()]);
        assert_eq!(verdict(&found, Question::FamilyQuota), expected, "{profile} {change:?}");
    }
    let request = request_for(vec![candidate(AzureService::ContainerApps, serverless, "westus3")]);
    let found = report(&request, vec![region(json!([usage("ManagedEnvironmentCount", 50, 50)]))]);
    assert_eq!(verdict(&found, Question::ServiceQuota), (Blocked, Some("CD0862")));
}

#[test]
fn container_instances_count_groups_and_cores() {
    let request = request_for(vec![Candidate {
        size: None,
        cpus: 3.5,
        instances: 2,
        ..candidate(AzureService::Aci, "", REGION)
    }]);
    let topic = || Topic::AciUsages(REGION.to_owned());
    for (rows_given, expected) in [
        (json!([usage("ContainerGroups", 98, 100), usage("StandardCores", 92, 100)]), vec![Fine, Fine]),
        (json!([usage("ContainerGroups", 99, 100), usage("StandardCores", 93, 100)]), vec![Blocked, Blocked]),
        (json!([usage("ContainerGroups", 1, 100), usage("NewKind", 5, 5)]), vec![Fine]),
    ] {
        let found = report(&request, vec![(topic(), ok(json!({"value": rows_given})))]);
        let verdicts: Vec<_> = rows(&found, Question::ServiceQuota).iter().map(|row| row.verdict).collect();
        assert_eq!(verdicts, expected);
    }
    assert!(rows(&report(&request, vec![]), Question::Retirement).is_empty());
    let found = report(&request, vec![(topic(), error(404, "NotFound"))]);
    assert_eq!(verdict(&found, Question::ServiceQuota), (Blocked, Some("CD0856")));
}

#[test]
fn nodes_that_exist_need_no_quota() {
    for service in [AzureService::Batch, AzureService::Ml] {
        let mut request = request_for(vec![candidate(service, T4, "westeurope")]);
        let none = rows(&report(&request, vec![]), Question::FamilyQuota).len();
        assert_eq!(none, 1, "{service:?}");
        (request.existing.pool, request.existing.cluster) = (Some("p".into()), Some("c".into()));
        assert!(rows(&report(&request, vec![]), Question::FamilyQuota).is_empty(), "{service:?}");
    }
}
