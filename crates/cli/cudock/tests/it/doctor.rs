//! `cudock doctor` as a user types it, on trees and on this machine.

use crate::support::{code, json, run, shown};
use cudock_testkit::host_tree as tree;

fn doctor(tree: &tree::HostTree, args: &[&str]) -> std::process::Output {
    run(&[&["doctor", "--root", tree.path().to_str().unwrap()], args].concat())
}

#[test]
fn a_healthy_host() {
    insta::assert_snapshot!(shown(&doctor(&tree::healthy(), &[])));
}

#[test]
fn a_gpu_without_a_driver() {
    insta::assert_snapshot!(shown(&doctor(&tree::no_driver(), &[])));
}

#[test]
fn a_driver_that_does_not_match_its_libraries() {
    insta::assert_snapshot!(shown(&doctor(&tree::mismatch(), &["--verbose"])));
}

#[test]
fn windows_linux() {
    insta::assert_snapshot!(shown(&doctor(&tree::wsl2(), &[])));
}

#[test]
fn a_container_started_without_the_gpu() {
    insta::assert_snapshot!(shown(&doctor(&tree::container_without_toolkit(), &[])));
}

#[test]
fn torch_for_the_cpu() {
    insta::assert_snapshot!(shown(&doctor(&tree::torch_cpu_build(), &[])));
}

#[test]
fn torch_too_new_for_the_card() {
    insta::assert_snapshot!(shown(&doctor(&tree::torch_too_new_for_the_card(), &[])));
}

#[test]
fn json_has_what_was_seen_and_what_was_concluded() {
    let report = json(&doctor(&tree::torch_too_new_for_the_card(), &["--format", "json"]));
    assert_eq!(report["schema"], 1);
    assert_eq!(report["status"], "error");
    assert_eq!(report["driver"], "580.95.05");
    assert_eq!(report["cuda"], "13.0");
    assert_eq!(report["gpus"][0]["capability"], "7.0");
    assert_eq!(report["frameworks"][0]["verdict"], "fails");
    assert_eq!(report["frameworks"][0]["error"], 209);
    assert_eq!(report["host"]["kernel"]["proc_version"], "580.95.05");
    let check = report["checks"].as_array().unwrap().iter().find(|check| check["code"] == "CD0501").unwrap();
    assert_eq!((&check["status"], &check["area"]), (&"error".into(), &"frameworks".into()));
}

#[test]
fn github_annotations_have_what_did_not_pass() {
    let output = doctor(&tree::mismatch(), &["--format", "github"]);
    insta::assert_snapshot!(shown(&output));
    let healthy = doctor(&tree::healthy(), &["--format", "github"]);
    assert_eq!((code(&healthy), healthy.stdout.len()), (0, 0), "{}", shown(&healthy));
}

#[test]
fn a_root_that_cannot_be_read() {
    insta::assert_snapshot!(shown(&run(&["doctor", "--root", "/nowhere/at/all"])));
}

#[test]
fn a_root_that_is_a_file() {
    assert_eq!(code(&run(&["doctor", "--root", "/etc/hostname"])), 2);
}

/// Whatever this machine is: an answer in one screen, and no crash.
#[test]
fn this_machine() {
    let output = run(&["doctor"]);
    let text = shown(&output);
    assert!(matches!(code(&output), 0 | 1), "{text}");
    assert!(text.lines().count() < 60, "{text}");
    assert!(!text.contains("panicked"), "{text}");
    let has_gpu = std::path::Path::new("/proc/driver/nvidia/version").exists();
    if !has_gpu && !std::path::Path::new("/dev/dxg").exists() {
        assert_eq!(code(&output), 1, "{text}");
        assert!(text.contains("CD01"), "{text}");
    }
}

#[test]
fn the_query_in_a_child_answers_in_json() {
    let answer = json(&run(&["nvml", "/nowhere/libnvidia-ml.so.1"]));
    assert!(answer["failed"].as_str().is_some(), "{answer}");
}
