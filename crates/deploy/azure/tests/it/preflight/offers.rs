//! Rows about what is offered, where and until when.

use cudock_azure::ExistingResources;
use cudock_azure::preflight::{Candidate, ImageCheck, PreflightVerdict, QueryResult, Question, Topic};
use cudock_facts::finding::{Finding, Severity};
use cudock_facts::services::AzureService;
use serde_json::{Value, json};

use super::support::{A100, T4, candidate, day, error, fix, ok, report, request_for, rows, sku, verdict};

use PreflightVerdict::{Blocked, Ok as Fine, Unknown, Warning};

const REGION: &str = "westeurope";

fn skus(restrictions: &Value) -> (Topic, QueryResult) {
    let size = sku(A100, "StandardNCADSA100v4Family", "24", REGION, restrictions);
    (Topic::Skus(Some(REGION.to_owned())), ok(json!({ "value": [size] })))
}

#[test]
fn restrictions_close_regions_and_zones() {
    let here = json!({"locations": [REGION], "zones": ["1", "3"]});
    let one = json!({"locations": [REGION], "zones": ["1"]});
    let elsewhere = json!({"locations": ["eastus"]});
    let restriction = |kind: &str, info: &Value, reason: &str| json!([{"type": kind, "values": [REGION], "restrictionInfo": info, "reasonCode": reason}]);
    for (zone, restrictions, expected) in [
        (None, json!([]), (Fine, None)),
        (None, json!(null), (Fine, None)),
        (Some("3"), json!([]), (Fine, None)),
        (Some("2"), json!([]), (Blocked, Some("CD0858"))),
        (None, restriction("Location", &here, "NotAvailableForSubscription"), (Blocked, Some("CD0857"))),
        (None, restriction("Location", &json!(null), "QuotaId"), (Blocked, Some("CD0857"))),
        (None, restriction("Location", &elsewhere, "NotAvailableForSubscription"), (Fine, None)),
        (None, restriction("Zone", &here, "NotAvailableForSubscription"), (Blocked, Some("CD0858"))),
        (None, restriction("Zone", &one, "NotAvailableForSubscription"), (Fine, None)),
        (Some("1"), restriction("Zone", &one, "NotAvailableForSubscription"), (Blocked, Some("CD0858"))),
        (Some("3"), restriction("Zone", &one, "NotAvailableForSubscription"), (Fine, None)),
        (None, restriction("Rack", &here, "New"), (Warning, Some("CD0857"))),
    ] {
        let zone = zone.map(str::to_owned);
        let request =
            request_for(vec![Candidate { zone: zone.clone(), ..candidate(AzureService::Vm, A100, REGION) }]);
        let found = report(&request, vec![skus(&restrictions)]);
        assert_eq!(verdict(&found, Question::Offered), expected, "{zone:?} {restrictions}");
    }
}

#[test]
fn a_size_that_is_not_listed_is_not_offered() {
    let request = request_for(vec![candidate(AzureService::Vm, T4, REGION)]);
    let found = report(&request, vec![skus(&json!([]))]);
    assert_eq!(verdict(&found, Question::Offered), (Blocked, Some("CD0856")));
    let fix = fix(&found, Question::Offered);
    assert_eq!(fix, "az vm list-skus --size Standard_NC4as_T4_v3 --all --output table");
    let elsewhere = sku(T4, "f", "4", "eastus", &json!([]));
    let topic = Topic::Skus(Some(REGION.to_owned()));
    let found = report(&request, vec![(topic, ok(json!({"value": [elsewhere]})))]);
    assert_eq!(verdict(&found, Question::Offered), (Blocked, Some("CD0856")));
}

#[test]
fn spot_must_be_offered() {
    let mut size = sku(A100, "f", "24", REGION, &json!([]));
    size["capabilities"] =
        json!([{"name": "LowPriorityCapable", "value": "False"}, {"name": "vCPUs", "value": "24"}]);
    let topic = Topic::Skus(Some(REGION.to_owned()));
    for (is_spot, expected) in [(true, (Blocked, Some("CD0866"))), (false, (Fine, None))] {
        let request = request_for(vec![Candidate { is_spot, ..candidate(AzureService::Vm, A100, REGION) }]);
        let found = report(&request, vec![(topic.clone(), ok(json!({"value": [size]})))]);
        assert_eq!(verdict(&found, Question::Offered), expected);
    }
}

#[test]
fn a_region_that_a_service_does_not_serve_is_not_offered() {
    let profile = "Consumption-GPU-NC8as-T4";
    for (service, size, topic) in [
        (AzureService::ContainerApps, profile, Topic::AppProfiles(REGION.to_owned())),
        (AzureService::Batch, T4, Topic::BatchSizes(REGION.to_owned())),
    ] {
        let mut request = request_for(vec![candidate(service, size, REGION)]);
        request.existing =
            ExistingResources { batch_account: Some("team/shared".into()), ..ExistingResources::default() };
        for missing in [error(404, "NotFound"), error(400, "NoRegisteredProviderFound")] {
            let found = report(&request, vec![(topic.clone(), missing)]);
            assert_eq!(verdict(&found, Question::Offered), (Blocked, Some("CD0856")), "{service:?}");
        }
        let found = report(&request, vec![(topic, error(503, "ServerBusy"))]);
        assert_eq!(verdict(&found, Question::Offered), (Unknown, Some("CD0867")), "{service:?}");
    }
    // The list of providers names regions as people do.
    let providers = |regions: Value| {
        let kind = json!([{"resourceType": "Workspaces", "locations": regions}]);
        ok(
            json!({"value": [{"namespace": "Microsoft.MachineLearningServices", "registrationState": "Registered", "resourceTypes": kind}]}),
        )
    };
    let request = request_for(vec![candidate(AzureService::Ml, T4, REGION)]);
    for (regions, expected) in [
        (json!(["West Europe", "East US"]), (Fine, None)),
        (json!(["East US"]), (Blocked, Some("CD0856"))),
        (json!([]), (Unknown, Some("CD0867"))),
    ] {
        let found = report(&request, vec![(Topic::Providers, providers(regions.clone()))]);
        assert_eq!(verdict(&found, Question::Offered), expected, "{regions}");
    }
}

#[test]
fn a_region_that_the_subscription_lacks_is_named() {
    let request = request_for(vec![
        candidate(AzureService::Vm, T4, "atlantis"),
        candidate(AzureService::Vm, T4, REGION),
    ]);
    let found = report(&request, vec![(Topic::Locations, ok(json!({"value": [{"name": REGION}]})))]);
    let row = &rows(&found, Question::Offered)[0];
    assert_eq!(row.finding.as_ref().unwrap().message, "the subscription has no region `atlantis`");
}

#[test]
fn a_serverless_profile_that_is_documented_but_not_listed_is_a_warning() {
    let listed =
        ok(json!({"value": [{"name": "Consumption-GPU-NC8as-T4", "properties": {"category": "GPU"}}]}));
    let empty = || ok(json!({"value": [{"name": "D4"}]}));
    for (profile, region, answer, expected) in [
        ("Consumption-GPU-NC8as-T4", "eastus", listed, (Fine, None)),
        ("Consumption-GPU-NC8as-T4", "eastus", empty(), (Warning, Some("CD0856"))),
        ("Consumption-GPU-NC8as-T4", "eastus2", empty(), (Blocked, Some("CD0856"))),
        ("NC24-A100", "westus3", empty(), (Blocked, Some("CD0856"))),
        ("D4", "eastus", empty(), (Fine, None)),
    ] {
        let request = request_for(vec![candidate(AzureService::ContainerApps, profile, region)]);
        let found = report(&request, vec![(Topic::AppProfiles(region.to_owned()), answer)]);
        assert_eq!(verdict(&found, Question::Offered), expected, "{profile} {region}");
    }
}

#[test]
fn a_size_that_retires_before_the_end_blocks() {
    let batch_until =
        |end: &str| ok(json!({"value": [{"name": T4, "familyName": "x", "batchSupportEndOfLife": end}]}));
    let mut request = request_for(vec![candidate(AzureService::Batch, T4, REGION)]);
    request.existing =
        ExistingResources { batch_account: Some("team/shared".into()), ..ExistingResources::default() };
    let topic = Topic::BatchSizes(REGION.to_owned());
    for (end, expected) in [
        ("2024-08-31T00:00:00Z", (Blocked, Some("CD0863"))),
        ("2027-08-31T00:00:00Z", (Fine, None)),
        ("soon", (Fine, None)),
    ] {
        let found = report(&request, vec![(topic.clone(), batch_until(end))]);
        assert_eq!(verdict(&found, Question::Offered), expected, "{end}");
    }
    // By the tables: NCv3 is retired, and ends later in one region; NVv4 has a date ahead.
    for (size, region, today, expected) in [
        (T4, REGION, "2026-11-16", (Fine, None)),
        ("Standard_NC6s_v3", REGION, "2026-11-16", (Blocked, Some("CD0863"))),
        ("Standard_NC6s_v3", "jioindiawest", "2026-11-16", (Fine, None)),
        ("Standard_NC6s_v3", "jioindiawest", "2027-03-01", (Warning, Some("CD0863"))),
        ("Standard_NC6s_v3", "jioindiawest", "2027-06-29", (Blocked, Some("CD0863"))),
        ("Standard_D4s_v5", REGION, "2026-11-16", (Unknown, None)),
    ] {
        let mut request = request_for(vec![candidate(AzureService::Vm, size, region)]);
        request.today = day(today);
        request.expires = if today == "2027-06-29" { day("2027-07-02") } else { day(today) };
        assert_eq!(
            verdict(&report(&request, vec![]), Question::Retirement),
            expected,
            "{size} {region} {today}"
        );
    }
}

#[test]
fn the_verdict_of_check_and_the_price_are_rows() {
    let finding =
        Finding::new("CD0501", Severity::Error, "no code for compute capability 7.5", "build for sm_75");
    let image = ImageCheck {
        verdict: Blocked,
        detail: "fails on driver 580.126.16".into(),
        finding: Some(finding.clone()),
    };
    let request = request_for(vec![Candidate {
        image: Some(image),
        price: None,
        ..candidate(AzureService::Vm, T4, REGION)
    }]);
    let found = report(&request, vec![]);
    assert_eq!(verdict(&found, Question::ImageRuns), (Blocked, Some("CD0501")));
    assert_eq!(found.candidates[0].obstacles(), [&finding]);
    assert_eq!(verdict(&found, Question::Price), (Warning, Some("CD0870")));
    let priced = report(&request_for(vec![candidate(AzureService::Vm, T4, REGION)]), vec![]);
    assert_eq!(rows(&priced, Question::Price)[0].detail, "$0.53 per hour, as of 2026-08-22");
}
