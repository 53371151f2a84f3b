//! Bad input: where it is, what is wrong, and what may have been meant.

use std::fs;

use super::planned::{example, with_facts};
use crate::support::{code, shown};

/// What is said about a file with this text, and how it ends.
fn said(text: &str) -> (i32, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cudock.toml");
    fs::write(&path, text).unwrap();
    let output = with_facts(&[path.to_str().unwrap()]);
    let talk = String::from_utf8_lossy(&output.stderr).replace(folder.path().to_str().unwrap(), "DIR");
    (code(&output), talk)
}

/// A file that is refused at a place, with these words.
fn refused(text: &str, place: &str, words: &[&str]) {
    let (code, talk) = said(text);
    assert_eq!(code, 2, "{talk}");
    assert!(talk.contains(&format!("cudock.toml:{place}: ")), "{place} is not in: {talk}");
    for word in words {
        assert!(talk.contains(word), "{word} is not in: {talk}");
    }
}

#[test]
fn a_negative_time_is_refused_in_its_place() {
    refused("[workload]\nkind = \"job\"\nduration = \"-40m\"\n", "3:12", &["-40m", "negative"]);
}

#[test]
fn a_time_without_a_unit_is_refused_in_its_place() {
    refused("[workload]\nduration = \"40\"\n", "2:12", &["`40` has no unit", "40m"]);
    refused("[workload]\nduration = 40\n", "2:12", &["`40` has no unit", "40m"]);
}

#[test]
fn keys_that_contradict_each_other_are_refused_in_their_place() {
    refused("[workload]\nduration = \"40m\"\ntrials = 27\n", "3:1", &["duration", "trials", "keep one"]);
    refused("[workload]\nrate = 5\nreplica_rate = 10\ndeadline = \"2h\"\n", "4:1", &["deadline", "rate"]);
    refused(
        "[workload]\nduration = \"1h\"\n[needs]\ncapability = { least = \"9.0\", greatest = \"7.0\" }\n",
        "4:14",
        &["9.0", "7.0"],
    );
}

#[test]
fn a_region_that_does_not_exist_is_refused_with_the_nearest_one() {
    refused(
        "[workload]\nduration = \"1h\"\n[needs]\ngpu_memory = \"8GB\"\n[deploy]\nregions = [\"eastus\", \"westeurop\"]\n",
        "6:22",
        &["westeurop", "did you mean", "westeurope"],
    );
}

#[test]
fn a_card_a_size_and_a_service_that_do_not_exist_are_refused_with_the_nearest_ones() {
    let job = "[workload]\nduration = \"1h\"\n";
    refused(&format!("{job}[needs]\ngpu = \"A1001\"\n"), "4:7", &["A1001"]);
    refused(
        &format!("{job}[deploy]\nsizes = [\"Standard_NC4as_T4_v4\"]\n"),
        "4:10",
        &["Standard_NC4as_T4_v3"],
    );
    refused(&format!("{job}[deploy]\nservices = [\"bach\"]\n"), "4:13", &["batch"]);
}

#[test]
fn a_key_that_does_not_exist_is_refused_with_the_nearest_one() {
    refused("[workload]\nduratoin = \"1h\"\n", "2:1", &["duratoin", "did you mean `duration`"]);
}

#[test]
fn bad_flags_are_refused_with_what_was_meant() {
    let cases: [(&[&str], &str); 7] = [
        (&["--region", "westeurop"], "westeurope"),
        (&["--gpu", "A1001"], "A1001"),
        (&["--duration", "-5m"], "negative"),
        (&["--gpu-memory", "4 gigs"], "4GiB"),
        (&["--service", "bach"], "batch"),
        (&["--budget", "lots"], "lots"),
        (&["--speed", "H100"], "GPU=FACTOR"),
    ];
    for (words, expected) in cases {
        let output = example("batch-job", words);
        assert_eq!(code(&output), 2, "{words:?}: {}", shown(&output));
        assert!(String::from_utf8_lossy(&output.stderr).contains(expected), "{words:?}: {}", shown(&output));
    }
}

#[test]
fn what_is_asked_about_must_exist() {
    for words in [
        ["--why", "Standard_NC4as_T4_v4"],
        ["--compare", "Standard_NC4as_T4_v4,Standard_NC4as_T4_v3"],
        ["--compare", "bach/Standard_NC4as_T4_v3,Standard_NC4as_T4_v3"],
        ["--compare", "vm/Standard_NC4as_T4_v3/westeurop,Standard_NC4as_T4_v3"],
    ] {
        let output = example("batch-job", &words);
        assert_eq!(code(&output), 2, "{words:?}: {}", shown(&output));
        assert!(String::from_utf8_lossy(&output.stderr).contains("did you mean"), "{}", shown(&output));
    }
    let output = example("batch-job", &["--compare", "Standard_NC4as_T4_v3"]);
    assert_eq!(code(&output), 2, "one cannot be compared: {}", shown(&output));
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let output = with_facts(&["nowhere.toml"]);
    assert_eq!(code(&output), 2);
    assert!(shown(&output).contains("nowhere.toml"), "{}", shown(&output));
}

#[test]
fn a_size_that_cannot_hold_it_has_every_reason_and_exits_1() {
    let output = example("llm-training", &["--why", "Standard_NC4as_T4_v3"]);
    assert_eq!(code(&output), 1, "{}", shown(&output));
    let text = shown(&output);
    for expected in ["CD0804", "CD0806", "CD0807", "16 GB", "70 GB"] {
        assert!(text.contains(expected), "{expected} is not in: {text}");
    }
}

/// What is said to flags, and how it ends.
fn told(flags: &[&str]) -> (i32, String) {
    let output = with_facts(flags);
    (code(&output), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_bare_number_for_a_size_or_a_time_is_refused_with_a_suggestion() {
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
        let (code, talk) = told(&["--duration", "3h", flag, "40"]);
        assert_eq!(code, 2, "{flag}: {talk}");
        assert!(talk.contains(&format!("`40` has no unit; write {suggestion}")), "{flag}: {talk}");
    }
    assert!(told(&["--duration", "3"]).1.contains("`3` has no unit; write 3s or 3m or 3h"));
}

#[test]
fn spot_and_no_spot_exclude_each_other() {
    let (code, talk) = told(&["--duration", "3h", "--spot", "--no-spot"]);
    assert_eq!(code, 2, "{talk}");
    assert!(talk.contains("--no-spot"), "{talk}");
}

#[test]
fn a_time_of_several_units_is_taken() {
    let output = with_facts(&["--duration", "5h30m", "--gpu", "T4", "--format", "json"]);
    assert_eq!(code(&output), 0);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["workload"]["work"]["duration_s"], 19_800.0);
}

#[test]
fn a_day_in_the_past_is_refused() {
    let (code, talk) = told(&["--duration", "3h", "--begins", "2020-01-01"]);
    assert_eq!(code, 2, "{talk}");
    assert!(talk.contains("2020-01-01 is in the past; today is 2026-11-15"), "{talk}");
    refused("[workload]\nduration = \"1h\"\nbegins = \"2020-01-01\"\n", "3:10", &["is in the past"]);
}
