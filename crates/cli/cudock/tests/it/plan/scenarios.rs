//! The named scenarios: facts that every report must contain.

use serde_json::Value;

use super::examples::{NAMES, example, list, number, report};
use crate::support::{code, shown};

fn codes(placement: &Value) -> Vec<&str> {
    list(placement, "warnings").iter().map(|warning| warning["code"].as_str().unwrap()).collect()
}

#[test]
fn every_scenario_has_a_placement_and_the_three_choices() {
    for name in NAMES {
        let report = report(name, &[]);
        assert!(!list(&report, "placements").is_empty(), "{name}");
        for choice in ["cheapest", "fastest", "least management"] {
            let rank = report["choices"][choice].as_u64().unwrap_or_else(|| panic!("{name}: {choice}"));
            let ranks: Vec<u64> =
                list(&report, "placements").iter().map(|one| one["rank"].as_u64().unwrap()).collect();
            assert!(ranks.contains(&rank), "{name}: {choice} is #{rank}");
        }
        let cheapest =
            &list(&report, "placements").iter().find(|one| one["rank"] == report["choices"]["cheapest"]);
        let cost = |one: &Value| number(&one["cost"]["total"]);
        let least = list(&report, "placements").iter().map(cost).fold(f64::INFINITY, f64::min);
        assert!((cost(cheapest.unwrap()) - least).abs() < 1e-9, "{name}");
    }
}

#[test]
fn placements_are_in_the_order_of_their_cost_and_parts_add_up() {
    for name in NAMES {
        let report = report(name, &["--all-regions"]);
        let cost = |one: &Value| number(&one["cost"]["total"]);
        let tied = |one: &Value| list(one, "warnings").iter().any(|finding| finding["code"] == "CD0908");
        for pair in list(&report, "placements").windows(2) {
            let (before, after) = (&pair[0], &pair[1]);
            let alike = tied(before) && tied(after) && cost(before) <= cost(after) * 1.1 + 1e-9;
            assert!(cost(before) <= cost(after) || alike, "{name}: {before} {after}");
        }
        for placement in list(&report, "placements") {
            let parts = placement["cost"]["parts"].as_object().unwrap().values().map(number).sum::<f64>();
            let total = number(&placement["cost"]["total"]);
            assert!((parts - total).abs() < 1e-6 * total.max(1.0), "{name}: {parts} is not {total}");
        }
    }
}

#[test]
fn container_instances_are_rejected_with_what_replaces_them() {
    for name in NAMES {
        let report = report(name, &[]);
        let aci = list(&report, "rejected").iter().find(|one| one["service"] == "aci").unwrap();
        assert_eq!(aci["code"], "CD0803", "{name}");
        assert_eq!(aci["size"], Value::Null, "{name}");
        assert!(aci["reason"].as_str().unwrap().contains("2025-07-14"), "{name}: {aci}");
    }
}

#[test]
fn training_over_infiniband_takes_two_machines_of_eight_h100() {
    let report = report("llm-training", &[]);
    for placement in list(&report, "placements") {
        assert_eq!(placement["gpu"], "H100-SXM");
        assert_eq!((&placement["gpus_per_instance"], &placement["instances"]), (&8000.into(), &2.into()));
    }
    let rejected = list(&report, "rejected");
    let nvl = rejected.iter().find(|one| one["size"] == "Standard_NC40ads_H100_v5").unwrap();
    assert!(nvl["code"].as_str().unwrap().starts_with("CD08"), "{nvl}");
}

#[test]
fn rendering_is_done_before_the_deadline_with_as_few_machines_as_that_takes() {
    let report = report("nightly-rendering", &[]);
    for placement in list(&report, "placements") {
        assert!(number(&placement["times"]["total"]) <= 7200.0, "{placement}");
        // 10,000 x 6 s are 60,000 s: nine machines at least in two hours without any start.
        assert!(number(&placement["instances"]) >= 9.0, "{placement}");
    }
}

#[test]
fn a_service_for_the_day_costs_a_month_and_a_million() {
    let report = report("daytime-inference", &[]);
    let placements = list(&report, "placements");
    // 5/s for twelve hours of 730/24 days are 6.57 million requests a month.
    for placement in placements {
        let (month, million) = (number(&placement["per_month"]), number(&placement["per_million"]));
        assert!((month / million - 6.57).abs() < 0.01, "{month} / {million}");
    }
    let services: Vec<&str> = placements.iter().map(|one| one["service"].as_str().unwrap()).collect();
    for service in ["container-apps", "vm", "aks", "ml-endpoint"] {
        assert!(services.contains(&service), "{service} is not in {services:?}");
    }
    assert!(!services.contains(&"batch"), "Batch does not serve requests");
}

#[test]
fn a_sweep_keeps_three_machines() {
    let report = report("sweep", &[]);
    for placement in list(&report, "placements") {
        assert_eq!(placement["instances"], 3);
        // 27 trials of 20 minutes in nine waves, on a GPU that is as fast as the required one, or slower.
        assert!(number(&placement["times"]["total"]) >= 9.0 * 1200.0, "{placement}");
    }
    assert!(list(&report, "placements").iter().all(|one| one["service"] != "ml-endpoint"));
}

#[test]
fn slow_data_is_reported_with_both_figures() {
    let streamed = report("data-bound", &[]);
    let warned = list(&streamed, "placements").iter().filter(|one| codes(one).contains(&"CD0903"));
    let warned: Vec<&Value> = warned.collect();
    assert!(!warned.is_empty(), "nothing warns of slow data");
    for placement in warned {
        let warnings = list(placement, "warnings");
        let warning = warnings.iter().find(|one| one["code"] == "CD0903").unwrap();
        let (message, evidence) = (warning["message"].as_str().unwrap(), &warning["evidence"][0]["detail"]);
        assert!(message.contains("2.5 GB/s"), "20 Gb/s of network, or the storage's own rate: {warning}");
        assert!(evidence.as_str().unwrap().contains("5 GB/s"), "{warning}");
    }
}

#[test]
fn spot_with_checkpoints_is_cheaper_and_includes_the_cost_of_evictions() {
    let report = report("spot-training", &[]);
    let placements = list(&report, "placements");
    let first = &placements[0];
    assert_eq!(first["priority"], "spot");
    assert!(number(&first["cost"]["parts"]["evictions"]) > 0.0, "{first}");
    let regular = placements.iter().find(|one| one["priority"] == "regular").unwrap();
    assert!(number(&regular["cost"]["total"]) > number(&first["cost"]["total"]));
    assert!(regular["cost"]["parts"].get("evictions").is_none(), "{regular}");
}

#[test]
fn code_for_volta_runs_on_v100_only_and_its_retirement_is_reported() {
    let report = report("v100-binary", &[]);
    for placement in list(&report, "placements") {
        assert_eq!(placement["gpu"], "V100", "{placement}");
    }
    let rejected = list(&report, "rejected");
    assert!(rejected.iter().any(|one| one["code"] == "CD0805"), "newer GPUs are out by their capability");
    assert!(rejected.iter().any(|one| one["code"] == "CD0801"), "NCv3 is retired");
}

#[test]
fn two_hundred_gigabytes_on_a_t4_get_the_nearest_and_what_would_fit() {
    let output = example("impossible", &["--format", "json"]);
    assert_eq!(code(&output), 1, "{}", shown(&output));
    let report = crate::support::json(&output);
    assert!(list(&report, "placements").is_empty());
    let nearest = &list(&report, "nearest")[0];
    assert_eq!(nearest["code"], "CD0804", "{nearest}");
    let would_fit = list(&report, "would_fit");
    let changes: Vec<&str> = would_fit.iter().map(|one| one["change"].as_str().unwrap()).collect();
    assert!(changes.iter().any(|change| change.contains("16 GB on each GPU")), "{changes:?}");
}
