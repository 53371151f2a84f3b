//! Which placement is taken, and how it is reported.

use cudock_azure::preflight::{PreflightReport, Topic};
use cudock_facts::services::AzureService;
use serde_json::json;

use super::support::{A100, T4, candidate, error, ok, report, request_for, usage};

/// Three placements: the first without quota, the second in a region without the service, the third fine.
fn three() -> PreflightReport {
    let request = request_for(vec![
        candidate(AzureService::Vm, A100, "eastus"),
        candidate(AzureService::ContainerApps, "Consumption-GPU-NC8as-T4", "norwaywest"),
        candidate(AzureService::Vm, T4, "westeurope"),
    ]);
    let empty = ok(json!({"value": [usage("cores", 0, 100)]}));
    report(
        &request,
        vec![
            (Topic::VmUsages("eastus".into()), empty),
            (Topic::AppProfiles("norwaywest".into()), error(404, "NotFound")),
            (Topic::AppUsages("norwaywest".into()), error(404, "NotFound")),
        ],
    )
}

#[test]
fn the_first_placement_that_passes_is_taken_within_the_attempts() {
    let report = three();
    for (attempts, expected) in
        [(0, None), (1, None), (2, None), (3, Some("westeurope")), (9, Some("westeurope"))]
    {
        assert_eq!(report.choice(attempts).map(|choice| choice.region.as_str()), expected, "{attempts}");
    }
}

#[test]
fn each_placement_that_was_passed_over_has_its_reason() {
    let report = three();
    let passed_over = report.passed_over(3);
    assert_eq!(passed_over.len(), 2);
    assert_eq!(
        passed_over[0],
        "vm Standard_NC24ads_A100_v4 eastus: not enough quota `StandardNCADSA100v4Family` in eastus: needs 24 vCPUs, 0 of 0 free"
    );
    assert!(
        passed_over[1].starts_with("container-apps Consumption-GPU-NC8as-T4 norwaywest: "),
        "{}",
        passed_over[1]
    );
    assert_eq!(report.passed_over(1).len(), 1);
}

#[test]
fn a_blocked_account_leaves_no_choice() {
    let request = request_for(vec![candidate(AzureService::Vm, T4, "westeurope")]);
    let report = report(&request, vec![(Topic::Subscription, ok(json!({"state": "Disabled"})))]);
    assert!(report.choice(1).is_none());
    assert_eq!(report.passed_over(1).len(), 1, "the account's reason; the placement itself is fine");
}

#[test]
fn the_table_fits_one_screen() {
    let report = three();
    let chosen = report.choice(3);
    let table = report.table(chosen);
    assert!(table.len() <= 20, "{}", table.len());
    assert!(table.iter().all(|row| row.len() == PreflightReport::TITLES.len()));
    assert_eq!(table[0], ["sign-in", "ok", "az as user@example.com"]);
    let first = &report.candidates[0];
    let findings = report.findings(Some(first));
    assert_eq!(findings.first().map(|finding| finding.code), Some("CD0859"), "the worst comes first");
    assert!(findings.iter().all(|finding| !finding.fix.is_empty()));
}

#[test]
fn the_report_is_json_with_a_schema() {
    let value = serde_json::to_value(three()).unwrap();
    let first = &value["candidates"][0];
    assert_eq!(first["verdict"], "blocked");
    assert_eq!((&first["service"], &first["size"]), (&json!("vm"), &json!(A100)));
    let row = first["rows"].as_array().unwrap().iter().find(|row| row["question"] == "family-quota").unwrap();
    assert_eq!(row["finding"]["code"], "CD0859");
    let schema = schemars::schema_for!(PreflightReport);
    assert!(schema.as_value().pointer("/properties/candidates").is_some(), "{schema:?}");
}

#[test]
fn every_code_has_a_page() {
    let facts = cudock_facts::Facts::embedded();
    for code in cudock_azure::preflight::codes::ALL {
        assert!(facts.findings().finding.iter().any(|page| page.code == *code), "{code}");
    }
}
