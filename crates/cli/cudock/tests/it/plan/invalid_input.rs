//! Invalid input is reported with its position and a suggestion.

use std::fs;

use super::examples::{example, with_facts};
use crate::support::{code, shown};

/// The exit code and standard error for a file with this text.
fn plan_file(text: &str) -> (i32, String) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cudock.toml");
    fs::write(&path, text).unwrap();
    let output = with_facts(&[path.to_str().unwrap()]);
    let stderr = String::from_utf8_lossy(&output.stderr).replace(directory.path().to_str().unwrap(), "DIR");
    (code(&output), stderr)
}

/// Asserts that a file is rejected at a position, with a message that contains these texts.
fn assert_rejected(text: &str, position: &str, expected: &[&str]) {
    let (code, stderr) = plan_file(text);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains(&format!("cudock.toml:{position}: ")), "{position} is not in: {stderr}");
    for text in expected {
        assert!(stderr.contains(text), "{text} is not in: {stderr}");
    }
}

#[test]
fn a_negative_time_is_rejected_with_its_position() {
    assert_rejected("[workload]\nkind = \"job\"\nduration = \"-40m\"\n", "3:12", &["-40m", "negative"]);
}

#[test]
fn a_time_without_a_unit_is_rejected_with_its_position() {
    assert_rejected("[workload]\nduration = \"40\"\n", "2:12", &["`40` has no unit", "40m"]);
    assert_rejected("[workload]\nduration = 40\n", "2:12", &["`40` has no unit", "40m"]);
}

#[test]
fn contradicting_keys_are_rejected_with_their_position() {
    assert_rejected(
        "[workload]\nduration = \"40m\"\ntrials = 27\n",
        "3:1",
        &["duration", "trials", "keep one"],
    );
    assert_rejected(
        "[workload]\nrate = 5\nreplica_rate = 10\ndeadline = \"2h\"\n",
        "4:1",
        &["deadline", "rate"],
    );
    assert_rejected(
        "[workload]\nduration = \"1h\"\n[needs]\ncapability = { least = \"9.0\", greatest = \"7.0\" }\n",
        "4:14",
        &["9.0", "7.0"],
    );
}

#[test]
fn an_unknown_region_is_rejected_with_a_suggestion() {
    assert_rejected(
        "[workload]\nduration = \"1h\"\n[needs]\ngpu_memory = \"8GB\"\n[deploy]\nregions = [\"eastus\", \"westeurop\"]\n",
        "6:22",
        &["westeurop", "did you mean", "westeurope"],
    );
}

#[test]
fn unknown_gpus_sizes_and_services_are_rejected_with_suggestions() {
    let job = "[workload]\nduration = \"1h\"\n";
    assert_rejected(&format!("{job}[needs]\ngpu = \"A1001\"\n"), "4:7", &["A1001"]);
    assert_rejected(
        &format!("{job}[deploy]\nsizes = [\"Standard_NC4as_T4_v4\"]\n"),
        "4:10",
        &["Standard_NC4as_T4_v3"],
    );
    assert_rejected(&format!("{job}[deploy]\nservices = [\"bach\"]\n"), "4:13", &["batch"]);
}

#[test]
fn an_unknown_key_is_rejected_with_a_suggestion() {
    assert_rejected("[workload]\nduratoin = \"1h\"\n", "2:1", &["duratoin", "did you mean `duration`"]);
}

#[test]
fn invalid_flags_are_rejected_with_suggestions() {
    let cases: [(&[&str], &str); 7] = [
        (&["--region", "westeurop"], "westeurope"),
        (&["--gpu", "A1001"], "A1001"),
        (&["--duration", "-5m"], "negative"),
        (&["--gpu-memory", "4 gigs"], "4GiB"),
        (&["--service", "bach"], "batch"),
        (&["--budget", "lots"], "lots"),
        (&["--speed", "H100"], "GPU=FACTOR"),
    ];
    for (args, expected) in cases {
        let output = example("batch-job", args);
        assert_eq!(code(&output), 2, "{args:?}: {}", shown(&output));
        assert!(String::from_utf8_lossy(&output.stderr).contains(expected), "{args:?}: {}", shown(&output));
    }
}

#[test]
fn names_in_why_and_compare_must_exist() {
    for args in [
        ["--why", "Standard_NC4as_T4_v4"],
        ["--compare", "Standard_NC4as_T4_v4,Standard_NC4as_T4_v3"],
        ["--compare", "bach/Standard_NC4as_T4_v3,Standard_NC4as_T4_v3"],
        ["--compare", "vm/Standard_NC4as_T4_v3/westeurop,Standard_NC4as_T4_v3"],
    ] {
        let output = example("batch-job", &args);
        assert_eq!(code(&output), 2, "{args:?}: {}", shown(&output));
        assert!(String::from_utf8_lossy(&output.stderr).contains("did you mean"), "{}", shown(&output));
    }
    let output = example("batch-job", &["--compare", "Standard_NC4as_T4_v3"]);
    assert_eq!(code(&output), 2, "one cannot be compared: {}", shown(&output));
}

#[test]
fn a_missing_file_is_named() {
    let output = with_facts(&["nowhere.toml"]);
    assert_eq!(code(&output), 2);
    assert!(shown(&output).contains("nowhere.toml"), "{}", shown(&output));
}

#[test]
fn a_size_that_does_not_fit_has_every_reason_and_exits_1() {
    let output = example("llm-training", &["--why", "Standard_NC4as_T4_v3"]);
    assert_eq!(code(&output), 1, "{}", shown(&output));
    let text = shown(&output);
    for expected in ["CD0804", "CD0806", "CD0807", "16 GB", "70 GB"] {
        assert!(text.contains(expected), "{expected} is not in: {text}");
    }
}

/// The exit code and standard error for flags.
fn plan_flags(flags: &[&str]) -> (i32, String) {
    let output = with_facts(flags);
    (code(&output), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_number_without_a_unit_is_rejected_with_a_suggestion() {
    for (flag, suggestion) in [
        ("--gpu-memory", "40GB or 40GiB"),
        ("--ram", "40GB or 40GiB"),
        ("--data", "40GB or 40GiB"),
        ("--data-rate", "40GB or 40GiB"),
        ("--item-time", "40s or 40m or 40h"),
        ("--trial-time", "40s or 40m or 40h"),
        ("--deadline", "40s or 40m or 40h"),
        ("--checkpoint-every", "40s or 40m or 40h"),
    ] {
        let (code, stderr) = plan_flags(&["--duration", "3h", flag, "40"]);
        assert_eq!(code, 2, "{flag}: {stderr}");
        assert!(stderr.contains(&format!("`40` has no unit; write {suggestion}")), "{flag}: {stderr}");
    }
    assert!(plan_flags(&["--duration", "3"]).1.contains("`3` has no unit; write 3s or 3m or 3h"));
}

#[test]
fn spot_and_no_spot_exclude_each_other() {
    let (code, stderr) = plan_flags(&["--duration", "3h", "--spot", "--no-spot"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("--no-spot"), "{stderr}");
}

#[test]
fn a_time_of_several_units_is_accepted() {
    let output = with_facts(&["--duration", "5h30m", "--gpu", "T4", "--format", "json"]);
    assert_eq!(code(&output), 0);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["workload"]["work"]["duration_s"], 19_800.0);
}

#[test]
fn a_day_in_the_past_is_rejected() {
    let (code, stderr) = plan_flags(&["--duration", "3h", "--begins", "2020-01-01"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("2020-01-01 is in the past; today is 2026-11-15"), "{stderr}");
    assert_rejected("[workload]\nduration = \"1h\"\nbegins = \"2020-01-01\"\n", "3:10", &["is in the past"]);
}
