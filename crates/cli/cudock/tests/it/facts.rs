//! `cudock facts` as a user types it.

use crate::support::{self, code, json, run, schema, shown};

macro_rules! answers {
    ($($name:ident: $($word:literal)+;)+) => {
        $(#[test]
        fn $name() {
            insta::assert_snapshot!(shown(&run(&["facts", $($word),+])));
        })+
    };
}

answers! {
    a_gpu_by_its_name: "gpu" "T4";
    a_gpu_by_what_the_driver_calls_it: "gpu" "NVIDIA H200";
    a_name_that_stands_for_several_gpus: "gpu" "A100";
    a_gpu_that_is_not_nvidias: "gpu" "MI300X";
    a_gpu_that_does_not_exist: "gpu" "T5";
    a_driver_version: "driver" "535.161.08";
    a_driver_branch: "driver" "R580";
    a_driver_that_is_no_version: "driver" "12.4";
    a_driver_newer_than_the_table: "driver" "700.10";
    a_cuda_version: "cuda" "12.4";
    a_cuda_release_with_its_components: "cuda" "12.4.1";
    a_cuda_that_was_never_released: "cuda" "12.7";
    a_code_target: "arch" "sm_90a";
    a_ptx_target: "arch" "compute_100f";
    an_image_tag: "image" "12.4.1-cudnn-runtime-ubuntu22.04";
    an_image_tag_with_the_wrong_cudnn_suffix: "image" "nvidia/cuda:12.4.1-cudnn8-runtime-ubuntu22.04";
    an_image_tag_with_a_two_part_version: "image" "12.4-base-ubuntu22.04";
    an_image_tag_that_was_deleted: "image" "11.7.0-base-ubuntu20.04";
    the_tag_latest: "image" "nvidia/cuda:latest";
    a_torch_release: "torch" "2.5.1";
    a_torch_build: "torch" "2.5.1+cu121";
    a_torch_build_that_does_not_exist: "torch" "2.5.1+cu130";
    a_torch_release_that_does_not_exist: "torch" "2.5.7";
    a_torchvision_release: "torchvision" "0.20.1";
    a_tensorflow_release: "tensorflow" "2.17.0";
    an_onnxruntime_release: "onnxruntime" "1.31.1";
    a_jax_release: "jax" "0.11.0";
    a_jax_release_that_another_row_answers_says_so: "jax" "0.12.0";
    a_jax_release_newer_than_the_table: "jax" "0.13.0";
    a_tensorrt_release_newer_than_the_readme: "tensorrt" "11.4.0.106";
    a_gpu_known_by_its_chip: "gpu" "NVIDIA RTX A4000";
    a_name_that_gpus_of_different_capability_share: "gpu" "RTX 4000";
    a_driver_branch_past_its_end: "driver" "610.57.04";
    a_tensorrt_build: "tensorrt" "10.13.2.6";
    an_azure_size: "size" "Standard_NC4as_T4_v3";
    an_azure_size_without_its_prefix: "size" "nd96isr_h200_v5" "--region" "eastus";
    a_retired_azure_size: "size" "Standard_NC6s_v3";
    an_azure_size_that_never_was: "size" "Standard_NC6_v3";
    azure_sizes_with_a_gpu_in_a_region: "size" "--gpu" "A100" "--region" "westeurope";
    a_region_that_does_not_exist: "size" "--gpu" "A100" "--region" "westeurop";
    an_azure_service: "service" "aci";
    azure_storage: "storage" "managed-disk-ultra";
    an_option_of_another_kind: "gpu" "T4" "--region" "eastus";
    the_price_of_a_size_in_every_region: "size" "Standard_NC40ads_H100_v5" "--prices";
    the_price_of_a_size_in_one_region: "size" "Standard_NV6ads_A10_v5" "--prices" "--region" "eastus";
    the_prices_of_no_size: "size" "--prices";
    the_life_of_sizes_with_a_gpu: "size" "--gpu" "V100" "--lifecycle";
    the_life_of_a_size_in_a_region_that_keeps_it: "size" "Standard_NC6s_v3" "--lifecycle" "--region" "jioindiawest";
}

#[test]
fn every_kind_lists_its_rows() {
    for kind in [
        "gpu",
        "driver",
        "cuda",
        "image",
        "torch",
        "torchvision",
        "tensorflow",
        "onnxruntime",
        "jax",
        "tensorrt",
        "size",
        "service",
        "storage",
    ] {
        let output = run(&["facts", kind]);
        assert_eq!(code(&output), 0, "{kind}: {}", shown(&output));
        assert!(output.stdout.len() > 200, "{kind} lists too little");
        let listed = json(&run(&["facts", kind, "--format", "json"]));
        assert_eq!(listed["schema"], 1);
        assert!(listed["rows"].as_array().unwrap().len() > 4, "{kind}");
    }
}

#[test]
fn json_has_typed_rows_and_the_age_of_its_tables() {
    let report = json(&run(&["facts", "gpu", "T4", "--format", "json"]));
    assert_eq!(report["schema"], 1);
    assert_eq!(report["kind"], "gpu");
    assert_eq!(report["query"], "T4");
    assert_eq!(report["rows"][0]["capability"], "7.5");
    assert_eq!(report["rows"][0]["memory_gb"][0], 16);
    assert_eq!(report["tables"][0]["name"], "gpus");
    assert_eq!(report["tables"][0]["as_of"], "2026-11-14");
    assert_eq!(report["tables"][0]["stale"], false);
}

#[test]
fn sizes_are_listed_by_the_day_of_their_end() {
    let on = |day: &str| {
        let mut command = support::cudock(&["facts", "size", "--lifecycle", "--format", "json"]);
        json(&schema::output(command.env("CUDOCK_TODAY", day)))
    };
    let report = on("2026-11-15");
    let rows = report["rows"].as_array().unwrap();
    let stages: Vec<&str> = rows.iter().map(|row| row["stage"].as_str().unwrap()).collect();
    let order = ["ended", "ending", "on-sale", "preview"];
    let ranks: Vec<usize> =
        stages.iter().map(|stage| order.iter().position(|known| known == stage).unwrap()).collect();
    assert!(ranks.is_sorted(), "{stages:?}");
    let ended: Vec<&str> = rows
        .iter()
        .filter(|row| row["stage"] == "ended" && !row["ends"].is_null())
        .map(|row| row["ends"].as_str().unwrap())
        .collect();
    assert!(ended.len() > 20 && ended.is_sorted(), "{ended:?}");
    let of = |report: &serde_json::Value, name: &str| {
        report["rows"].as_array().unwrap().iter().find(|row| row["size"] == name).unwrap().clone()
    };
    assert_eq!(of(&report, "Standard_NC6")["replacement"], "Standard_NC4as_T4_v3");
    assert_eq!(of(&report, "Standard_NC6s_v3")["ends_by_region"]["chinanorth3"], "2027-06-30");
    assert_eq!(of(&on("2023-09-05"), "Standard_NC6")["stage"], "ending");
}

#[test]
fn prices_are_sorted_and_carry_what_spot_saves() {
    let report = json(&run(&["facts", "size", "Standard_NC4as_T4_v3", "--prices", "--format", "json"]));
    let rows = report["rows"].as_array().unwrap();
    assert!(rows.len() > 20);
    let prices: Vec<f64> = rows.iter().filter_map(|row| row["price"]["price"].as_f64()).collect();
    assert!(prices.is_sorted(), "{prices:?}");
    for row in rows {
        assert_eq!(row["usd_per_gpu_hour"], row["price"]["price"], "it has one GPU");
        let saves = row["spot_saves_percent"].as_f64();
        assert_eq!(saves.is_some(), row["price"]["spot"].is_number() && row["price"]["price"].is_number());
        assert!(saves.is_none_or(|saves| (-100.0..=100.0).contains(&saves)));
    }
}

#[test]
fn the_tables_are_listed_with_their_age() {
    insta::with_settings!({ filters => vec![(r" +\d+ +\d+ +2026", " [counts] 2026")] }, {
        insta::assert_snapshot!(shown(&run(&["facts"])));
    });
}

#[test]
fn a_stale_table_is_reported_once() {
    let output = support::cudock(&["facts", "gpu", "T4"]).env("CUDOCK_TODAY", "2027-07-01").output().unwrap();
    let talk = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(talk.matches("older than 180 days").count(), 1, "{talk}");
    assert!(talk.contains("gpus (2026-11-14)"), "{talk}");
    let mut command = support::cudock(&["facts", "gpu", "T4", "--format", "json"]);
    let report = schema::output(command.env("CUDOCK_TODAY", "2027-07-01"));
    assert_eq!(json(&report)["tables"][0]["stale"], true);
}

#[test]
fn an_unknown_kind_is_a_bad_call() {
    let output = run(&["facts", "gpus", "T4"]);
    assert_eq!(code(&output), 2);
    assert!(String::from_utf8_lossy(&output.stderr).contains("gpu"));
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    use std::process::Stdio;
    let mut child =
        support::cudock(&["facts", "image"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}
