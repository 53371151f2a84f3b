//! The reports of `cudock plan` as text, JSON and CSV.

use super::examples::{NAMES, example, list, report, with_facts};
use crate::support::{code, cudock, run, schema, shown};
use cudock_facts::services::AzureOffering;

macro_rules! shows {
    ($($name:ident: $example:literal $($word:literal)*;)+) => {
        $(#[test]
        fn $name() {
            insta::assert_snapshot!(shown(&example($example, &[$($word),*])));
        })+
    };
}

shows! {
    job: "batch-job";
    job_verbose: "batch-job" "--verbose";
    service: "daytime-inference" "--top" "6";
    spot_job: "spot-training" "--top" "4" "--region" "westeurope";
    nothing_fits: "impossible";
    why_a_size: "batch-job" "--why" "NC4as_T4_v3" "--service" "batch,container-apps" "--region" "eastus";
    compare_two: "daytime-inference" "--compare" "vm/Standard_NC4as_T4_v3/eastus,container-apps/Consumption-GPU-NC8as-T4/eastus";
}

#[test]
fn two_runs_are_equal_byte_for_byte() {
    for name in NAMES {
        for args in [vec![], vec!["--format", "json"], vec!["--format", "csv"], vec!["--chart"]] {
            let (first, second) = (example(name, &args), example(name, &args));
            assert_eq!(first.stdout, second.stdout, "{name} {args:?}");
            assert_eq!(code(&first), 0, "{name} {args:?}: {}", shown(&first));
        }
    }
}

#[test]
fn json_begins_with_its_schema_and_has_the_documented_fields() {
    for name in NAMES {
        let output = example(name, &["--format", "json"]);
        assert!(output.stdout.starts_with(b"{\n  \"schema\": 1,"), "{}", shown(&output));
        let report = crate::support::json(&output);
        for placement in list(&report, "placements") {
            for key in ["service", "size", "region", "priority"] {
                assert!(placement[key].is_string(), "{name}: {key}");
            }
            assert!(placement["price_per_hour"].is_number(), "{name}");
            assert!(placement["cost"]["total"].is_number(), "{name}");
            assert_eq!(placement["cost"]["currency"], "USD", "{name}");
            assert!(placement["cost"]["parts"].is_object(), "{name}");
            assert!(placement["reasons"].is_array() && placement["warnings"].is_array(), "{name}");
        }
        for rejection in list(&report, "rejected") {
            let known = |key: &str| rejection[key].is_string() || rejection[key].is_null();
            assert!(known("service") && known("size"), "{name}: {rejection}");
            assert!(rejection["reason"].is_string(), "{name}: {rejection}");
            assert!(rejection["code"].as_str().unwrap().starts_with("CD0"), "{name}: {rejection}");
        }
        assert!(report["assumptions"].is_array() && report["choices"].is_object(), "{name}");
        let prices = list(&report, "tables").iter().find(|table| table["name"] == "azure_prices").unwrap();
        assert_eq!(prices["as_of"], "2026-08-22", "the day of the newest row");
    }
}

#[test]
fn every_code_has_a_page() {
    let mut codes = std::collections::BTreeSet::new();
    for name in NAMES {
        let report = report(name, &[]);
        let warnings = list(&report, "placements").iter().flat_map(|one| list(one, "warnings"));
        for found in warnings.chain(list(&report, "rejected")) {
            codes.insert(found["code"].as_str().unwrap().to_owned());
        }
    }
    assert!(codes.len() > 5, "{codes:?}");
    for code in codes {
        let page = run(&["explain", &code]);
        assert_eq!(crate::support::code(&page), 0, "{code}: {}", shown(&page));
    }
}

#[test]
fn csv_has_the_same_number_of_cells_in_every_line() {
    for name in NAMES {
        let output = example(name, &["--format", "csv"]);
        let text = String::from_utf8(output.stdout).unwrap();
        let mut rows = text.lines().map(cells);
        let titles = rows.next().unwrap();
        assert!(titles >= 25, "{titles} columns");
        let mut count = 0;
        for (number, cells) in rows.enumerate() {
            assert_eq!(cells, titles, "{name}: line {}", number + 2);
            count += 1;
        }
        assert_eq!(count, list(&report(name, &[]), "placements").len(), "{name}");
    }
}

/// Cells of a line whose quoted cells may hold commas.
fn cells(line: &str) -> usize {
    let mut quoted = false;
    1 + line
        .chars()
        .filter(|letter| {
            quoted ^= *letter == '"';
            *letter == ',' && !quoted
        })
        .count()
}

#[test]
fn top_limits_what_is_listed_but_never_hides_a_choice() {
    let all = report("daytime-inference", &[]);
    let few = report("daytime-inference", &["--top", "1"]);
    assert_eq!(few["choices"], all["choices"]);
    assert!(list(&few, "placements").len() <= 3);
}

#[test]
fn all_regions_lists_more_and_the_cheapest_is_the_same() {
    let (best, all) = (report("batch-job", &[]), report("batch-job", &["--all-regions"]));
    assert!(list(&all, "placements").len() > list(&best, "placements").len());
    assert_eq!(all["placements"][0]["region"], best["placements"][0]["region"]);
}

#[test]
fn flags_alone_are_enough() {
    let directory = tempfile::tempdir().unwrap();
    let mut command =
        cudock(&["plan", "--gpu-memory", "40GB", "--duration", "3h", "--no-spot", "--format", "json"]);
    let output = schema::output(command.current_dir(directory.path()));
    assert_eq!(code(&output), 0, "{}", shown(&output));
    let report = crate::support::json(&output);
    assert!(!list(&report, "placements").is_empty());
    assert!(!list(&report, "assumptions").is_empty(), "missing values are assumed and reported");
}

#[test]
fn a_flag_overrides_the_key() {
    let longer = report("batch-job", &["--duration", "80m"]);
    assert_eq!(longer["workload"]["work"]["duration_s"], 4800.0);
    let west = report("batch-job", &["--region", "westeurope"]);
    assert!(list(&west, "placements").iter().all(|one| one["region"] == "westeurope"));
}

#[test]
fn csv_is_supported_by_plan_only() {
    let output = run(&["facts", "--format", "csv"]);
    assert_eq!(code(&output), 2);
    let output =
        with_facts(&["--duration", "1h", "--gpu-memory", "1GB", "--why", "NC4as_T4_v3", "--format", "csv"]);
    assert_eq!(code(&output), 2, "{}", shown(&output));
}

fn of_json(flags: &[&str]) -> (i32, serde_json::Value) {
    let output = run(&[&["plan"], flags, &["--format", "json"]].concat());
    (code(&output), serde_json::from_slice(&output.stdout).unwrap_or_default())
}

#[test]
fn the_example_of_the_help_gives_no_restricted_region() {
    let (code, report) = of_json(&["--gpu-memory", "40GB", "--duration", "3h"]);
    assert_eq!(code, 0);
    let facts = cudock_facts::Facts::embedded();
    let placements = report["placements"].as_array().unwrap();
    assert!(placements.len() > 10);
    for placement in placements {
        let region = facts.services().region(placement["region"].as_str().unwrap()).unwrap();
        assert!(region.listed && !region.restricted, "{placement}");
        assert_ne!(placement["proof"], "not-listed");
    }
    // H100 is faster than A100, whatever starts first; nothing was measured, and the report has a flag for that.
    let fastest = report["choices"]["fastest"].as_u64().unwrap();
    let fastest = placements.iter().find(|one| one["rank"].as_u64() == Some(fastest)).unwrap();
    let gpu = fastest["gpu"].as_str().unwrap();
    assert!(gpu.starts_with("H100") || gpu.starts_with("H200"), "{gpu}");
    assert_eq!(report["fastest_by_published_throughput"], true);
}

#[test]
fn a_named_gpu_defaults_to_its_smallest_memory() {
    let (_, report) = of_json(&["--gpu", "V100", "--duration", "2h"]);
    assert_eq!(report["workload"]["gpu_memory_bytes"], 16_000_000_000_u64);
    let (code, report) = of_json(&["--gpu", "K80", "--duration", "2h"]);
    assert_eq!((code, &report["workload"]["gpu_memory_bytes"]), (1, &12_000_000_000_u64.into()));
    // Memory is never shown as zero, even where the table lacks it.
    let facts = cudock_facts::Facts::embedded();
    for gpu in facts.gpus().gpu.iter().filter(|gpu| gpu.memory_gb.is_empty()) {
        let output = run(&["plan", "--gpu", &gpu.id, "--duration", "2h", "--top", "1"]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(!text.contains(" 0 kB") && !text.contains("with 0 GB"), "{}: {text}", gpu.id);
    }
}

#[test]
fn unlisted_offers_are_reported_separately() {
    let (code, report) = of_json(&["--gpu", "A10", "--duration", "2h", "--service", "ml"]);
    assert_eq!(code, 1, "nothing that is proven fits");
    assert_eq!(report["placements"].as_array().unwrap().len(), 0);
    let unlisted = report["unlisted"].as_array().unwrap();
    assert!(!unlisted.is_empty() && unlisted.iter().all(|one| one["proof"] == "not-listed"));
    let output = run(&["plan", "--gpu", "A10", "--duration", "2h", "--service", "ml"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("Not listed") && text.contains("CD0825"), "{text}");
}

#[test]
fn container_instances_run_jobs() {
    let output = run(&["plan", "--gpu", "T4", "--duration", "2h", "--why", "NC4as_T4_v3"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!text.contains("Container Instances serves requests and does not run jobs"), "{text}");
}

#[test]
fn a_cluster_of_six_thousand_nodes_exceeds_the_limit_of_aks() {
    let (_, report) = of_json(&["--gpu", "T4", "--duration", "2h", "--nodes", "6000", "--service", "aks"]);
    assert_eq!(report["placements"].as_array().unwrap().len(), 0);
    let rejected = report["rejected"].as_array().unwrap();
    let limit = rejected.iter().find(|one| one["reason"].as_str().unwrap().contains("at most 5000"));
    assert_eq!(limit.expect("the limit is named")["code"], "CD0815");
}

#[test]
fn a_request_a_day_costs_a_few_dollars_a_month() {
    let (code, report) = of_json(&["--rate", "1/d", "--gpu", "T4", "--service", "container-apps"]);
    assert_eq!(code, 0);
    // 30.4 starts a month, each of which keeps a replica for its start and 300 s, at 1.56 an hour and more.
    let month = report["placements"][0]["per_month"].as_f64().unwrap();
    assert!((3.0..10.0).contains(&month), "{month}");
    let rates = report["workload"]["work"]["requests_per_second_by_hour"].as_array().unwrap();
    assert!((rates[0].as_f64().unwrap() * 86_400.0 - 1.0).abs() < 1e-9, "{rates:?}");
}

/// The report for a file with these needs, for a job of two hours.
fn with_needs(needs: &str) -> serde_json::Value {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("cudock.toml");
    std::fs::write(&file, format!("[workload]\nduration = \"2h\"\n[needs]\n{needs}\n")).unwrap();
    let output = run(&["plan", file.to_str().unwrap(), "--format", "json"]);
    crate::support::json(&output)
}

#[test]
fn a_precision_restricts_the_gpus_to_those_that_calculate_in_it() {
    let facts = cudock_facts::Facts::embedded();
    for (precision, out) in [
        ("fp8", ["T4", "A10", "A100-80"].as_slice()),
        ("fp4", &["A10", "A100-80", "H100-NVL"]),
        ("bf16", &["T4", "V100"]),
    ] {
        let x86_64 = with_needs(&format!("precision = \"{precision}\""));
        let aarch64 = with_needs(&format!("precision = \"{precision}\"\narchitecture = \"aarch64\""));
        let placements = [&x86_64, &aarch64].into_iter().flat_map(|report| list(report, "placements"));
        let gpus: std::collections::BTreeSet<&str> =
            placements.map(|one| one["gpu"].as_str().unwrap()).collect();
        assert!(!gpus.is_empty(), "{precision}");
        for gpu in gpus {
            let capability = facts.gpus().find(gpu).one().unwrap().capability.unwrap();
            let native = facts.gpus().native_formats(capability).unwrap();
            assert!(native.iter().any(|format| format.name() == precision), "{precision} on {gpu}");
            assert!(!out.contains(&gpu), "{precision} on {gpu}");
        }
        let reasons = list(&x86_64, "rejected").iter().filter(|one| one["code"] == "CD0836");
        assert!(reasons.count() > 5, "{precision}");
    }
    let stored = with_needs("precision = \"int4\"");
    assert!(
        list(&stored, "placements").iter().any(|one| one["gpu"] == "T4"),
        "weights of four bits run anywhere"
    );
}

#[test]
fn two_linked_gpus_are_a_bridged_pair_and_four_are_not() {
    let (code, pair) = of_json(&["--duration", "2h", "--gpus", "2", "--nvlink", "--gpu-memory", "40GB"]);
    assert_eq!(code, 0);
    let best = &pair["placements"][0];
    assert_eq!(best["gpu"], "A100-80", "{best}");
    assert!(best["cost"]["total"].as_f64().unwrap() < 20.0, "{best}");
    let (_, four) = of_json(&["--duration", "2h", "--gpus", "4", "--nvlink", "--gpu-memory", "40GB"]);
    let sizes = |list: &str| -> Vec<String> {
        four[list]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|one| Some(one["size"].as_str()?.to_owned()))
            .collect()
    };
    assert!(!sizes("placements").contains(&"Standard_NC96ads_A100_v4".to_owned()));
    assert!(sizes("placements").iter().any(|size| size.starts_with("Standard_ND")), "{four}");
}

#[test]
fn what_is_named_and_cannot_be_had_is_nearest_with_its_reason() {
    for (flags, size, reason) in [
        (["--size", "Standard_NC6s_v3"], "Standard_NC6s_v3", "retired on 2025-09-30"),
        (["--size", "NC24rs_v3"], "Standard_NC24rs_v3", "retired on 2025-09-30"),
        (["--gpu", "K80"], "Standard_NC12", "retired on 2023-09-06"),
        (["--gpu", "M60"], "Standard_NV12", "retired on "),
        (["--gpu", "MI300X"], "Standard_ND96isr_MI300X_v5", "MI300X is an AMD GPU"),
        (["--size", "Standard_NV16as_v4"], "Standard_NV16as_v4", "retired on 2026-09-30"),
        (
            ["--gpu", "GB200"],
            "Standard_ND128isr_NDR_GB200_v6",
            "architecture arm64 (aarch64), the image is for x86_64",
        ),
    ] {
        let (code, report) = of_json(&[&["--duration", "2h", "--gpu-memory", "1GB"], &flags[..]].concat());
        assert_eq!(code, 1, "{flags:?}");
        let nearest = &report["nearest"][0];
        assert_eq!(nearest["size"], size, "{flags:?}");
        assert!(nearest["reason"].as_str().unwrap().contains(reason), "{flags:?}: {nearest}");
    }
}

#[test]
fn fifty_terabytes_are_not_read_in_two_hours_over_eight_gigabits() {
    let data = ["--duration", "2h", "--data", "50TB", "--gpu", "T4", "--service", "vm"];
    let (_, report) = of_json(&data);
    for placement in list(&report, "placements") {
        // 8 to 32 Gb/s are 1 to 4 GB/s: 3.5 hours at least.
        assert!(placement["times"]["work"].as_f64().unwrap() > 3.4 * 3600.0, "{placement}");
        let codes: Vec<&str> =
            list(placement, "warnings").iter().map(|one| one["code"].as_str().unwrap()).collect();
        assert!(codes.contains(&"CD0903"), "{codes:?}");
    }
    let (code, report) = of_json(&[&data[..], &["--deadline", "2h30m"]].concat());
    assert_eq!(code, 1);
    assert!(list(&report, "nearest").iter().any(|one| one["code"] == "CD0902"), "{}", report["nearest"]);
}

#[test]
fn an_hour_on_an_h100_is_above_fifteen_on_a_t4_for_the_same_money() {
    let flags = ["--duration", "15h", "--measured-on", "T4", "--gpu", "T4,H100-NVL", "--region", "eastus"];
    let (_, report) = of_json(&flags);
    let placements = list(&report, "placements");
    let of = |gpu: &str| placements.iter().position(|one| one["gpu"] == gpu).unwrap();
    let [t4, h100] = ["T4", "H100-NVL"].map(of);
    let cost = |index: usize| placements[index]["cost"]["total"].as_f64().unwrap();
    assert!(cost(h100) < cost(t4) * 1.05, "{} and {}", cost(h100), cost(t4));
    assert!(h100 < t4, "the faster one is #{}, the slower one #{}", h100 + 1, t4 + 1);
    let text = shown(&run(&[&["plan"], &flags[..]].concat()));
    assert!(
        text.contains("cost the same within the uncertainty of the estimate, and are ordered by time"),
        "{text}"
    );
}

#[test]
fn a_winner_that_up_cannot_deploy_is_followed_by_the_first_that_it_can() {
    let flags = ["plan", "--rate", "5,0@08:00-20:00", "--replica-rate", "10", "--gpu", "T4", "--service"];
    let text_for = |services: &str| {
        let text = shown(&run(&[&flags[..], &[services]].concat()));
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let note = "Deploying: `cudock up` does not deploy to Kubernetes Service; ";
    let both = text_for("aks,vm");
    assert!(
        both.contains(&format!(
            "{note}the first that it does is #2, Standard_NC4as_T4_v3 on Virtual Machine"
        )),
        "{both}"
    );
    assert!(text_for("aks").contains(&format!("{note}nothing that it deploys to fits")));
    assert!(!text_for("vm").contains("Deploying:"));
    let (_, report) = of_json(&[&flags[1..], &["aks,vm"]].concat());
    assert_eq!(report["placements"][0]["service"], "aks");
    assert_eq!(report["choices"]["deployable"], 2);
}

#[test]
fn the_plan_knows_what_up_deploys_to() {
    use cudock_plan::{Catalog, Verdicts, Workload, plan};
    let (facts, verdicts) = (cudock_facts::Facts::embedded(), Verdicts::default());
    let catalog = Catalog::of(&facts);
    let workload = Workload {
        work: cudock_plan::Work::Job { duration: std::time::Duration::from_secs(3600) },
        gpu: cudock_plan::GpuNeeds { per_instance: 1, instances: 1, ..Default::default() },
        machine: cudock_plan::MachineNeeds::default(),
        data: None,
        start: cudock_plan::Start::default(),
        spot: None,
        constraints: cudock_plan::Constraints::default(),
        begins: "2026-11-19".parse().unwrap(),
        assumptions: Vec::new(),
    };
    let plan = plan(&catalog, &facts, &workload, &verdicts);
    let mut placement = plan.placement(&plan.ranked()[0]);
    for service in AzureOffering::ALL {
        placement.service = service;
        let deploys = cudock_azure::SpecPlacement::try_from(&placement).is_ok();
        assert_eq!(service.service().is_deployable(), deploys, "{}", service.id());
    }
}
