//! `--format sarif`, which code scanners read.

use std::collections::BTreeSet;

use serde_json::Value;

use super::workdir::Directory;
use crate::support::{code, json, run, shown};

fn report(directory: &Directory, arguments: &[&str]) -> Value {
    json(&directory.check(&[arguments, &["--format", "sarif"]].concat()))
}

/// The requirements of SARIF 2.1.0 on this output.
fn assert_is_sarif(log: &Value) {
    assert_eq!(log["version"], "2.1.0");
    assert!(log["$schema"].as_str().unwrap().contains("sarif-2.1.0"));
    let runs = log["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 1);
    let driver = &runs[0]["tool"]["driver"];
    assert_eq!(driver["name"], "cudock");
    let rules = driver["rules"].as_array().unwrap();
    let ids: BTreeSet<&str> = rules.iter().map(|rule| rule["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), rules.len(), "no rule twice");
    for rule in rules {
        assert!(rule["shortDescription"]["text"].as_str().is_some_and(|text| !text.is_empty()), "{rule}");
        assert!(rule["help"]["text"].as_str().is_some_and(|text| !text.is_empty()), "{rule}");
    }
    for result in runs[0]["results"].as_array().unwrap() {
        assert!(ids.contains(result["ruleId"].as_str().unwrap()), "{result}");
        assert!(matches!(result["level"].as_str(), Some("error" | "warning" | "note")), "{result}");
        assert!(result["message"]["text"].as_str().is_some_and(|text| !text.is_empty()), "{result}");
        let locations = result["locations"].as_array().unwrap();
        assert!(!locations.is_empty(), "{result}");
        for location in locations {
            let uri = location["physicalLocation"]["artifactLocation"]["uri"].as_str().unwrap();
            assert!(!uri.is_empty() && !uri.contains(' '), "{uri}");
            let line = &location["physicalLocation"]["region"]["startLine"];
            assert!(line.is_null() || line.as_u64() >= Some(1), "{location}");
        }
    }
}

fn with_rule<'l>(log: &'l Value, rule: &str) -> Vec<&'l Value> {
    let results = log["runs"][0]["results"].as_array().unwrap();
    results.iter().filter(|result| result["ruleId"] == rule).collect()
}

#[test]
fn a_finding_in_a_file_stands_at_its_line() {
    let directory = Directory::with("requirements.txt", "# models\nnumpy==2.1.0\ntorch==2.15.0\n");
    let arguments = ["requirements.txt", "--gpu", "V100"];
    let log = report(&directory, &arguments);
    assert_is_sarif(&log);
    let found = with_rule(&log, "CD0501");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["level"], "error");
    let place = &found[0]["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "requirements.txt");
    assert_eq!(place["region"]["startLine"], 3);
    assert_eq!(code(&directory.check(&[arguments.as_slice(), &["--format", "sarif"]].concat())), 1);
}

#[test]
fn the_same_finding_on_two_cards_is_two_results_of_one_rule() {
    let directory = Directory::with("requirements.txt", "torch==2.6.0\n");
    let log =
        report(&directory, &["requirements.txt", "--gpu", "B200", "--gpu", "RTX 5090", "--driver", "580"]);
    assert_is_sarif(&log);
    let found = with_rule(&log, "CD0501");
    let prints: BTreeSet<String> =
        found.iter().map(|result| result["partialFingerprints"].to_string()).collect();
    assert_eq!((found.len(), prints.len()), (2, 2));
}

#[test]
fn what_lies_inside_a_directory_is_named_below_it() {
    let directory = Directory::with("my app/library.so", super::workdir::fixture("library.so"));
    let log = report(&directory, &["my app", "--gpu", "V100", "--driver", "580"]);
    assert_is_sarif(&log);
    let found = with_rule(&log, "CD0501");
    let location = &found[0]["locations"][0];
    assert_eq!(location["physicalLocation"]["artifactLocation"]["uri"], "my%20app");
    let inside = location["logicalLocations"][0]["fullyQualifiedName"].as_str().unwrap();
    assert!(inside.ends_with("my app/library.so"), "{location}");
}

#[test]
fn a_check_without_findings_is_a_log_without_results() {
    let directory = Directory::with_fixture("default.fatbin");
    let log = report(&directory, &["default.fatbin", "--gpu", "T4", "--driver", "580"]);
    assert_is_sarif(&log);
    assert_eq!(log["runs"][0]["results"], serde_json::json!([]));
}

#[test]
fn github_annotations_have_the_line_of_the_file_that_is_to_blame() {
    let directory = Directory::with("requirements.txt", "# models\nnumpy==2.1.0\ntorch==2.15.0\n");
    let output = directory.check(&["requirements.txt", "--gpu", "V100", "--format", "github"]);
    assert_eq!(code(&output), 1, "{}", shown(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let start = "::error file=requirements.txt,line=3,title=CD0501::V100 (7.0), driver ";
    assert!(text.lines().any(|line| line.starts_with(start)), "{text}");
    assert!(text.lines().all(|line| line.starts_with("::")), "{text}");
}

#[test]
fn github_annotations_of_a_dockerfile_point_into_the_files_it_copies() {
    let directory = Directory::with("app/requirements.txt", "torch==2.15.0\n");
    let dockerfile = "FROM python:3.12\nCOPY requirements.txt .\nRUN pip install -r requirements.txt\n";
    std::fs::write(directory.path().join("app/Dockerfile"), dockerfile).unwrap();
    let output = directory.check(&["app/Dockerfile", "--gpu", "V100", "--format", "github"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("::error file=app/requirements.txt,line=1,title=CD0501::"), "{}", shown(&output));
}

#[test]
fn github_annotations_of_a_program_have_no_line() {
    let directory = Directory::with_fixture("library.so");
    let output = directory.check(&["library.so", "--gpu", "V100", "--driver", "580", "--format", "github"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.starts_with("::error title=CD0501::V100 (7.0), driver 580"), "{}", shown(&output));
}

#[test]
fn other_verbs_refuse_it() {
    let directory = Directory::with_fixture("library.so");
    let library = directory.path().join("library.so");
    let library = library.to_str().unwrap();
    for arguments in [
        ["doctor"].as_slice(),
        &["facts"],
        &["facts", "gpu", "T4"],
        &["explain", "CD0501"],
        &["inspect", library],
        &["slim", library, "--dry-run", "--for", "T4"],
    ] {
        let output = run(&[arguments, &["--format", "sarif"]].concat());
        assert_eq!(code(&output), 2, "{arguments:?}: {}", shown(&output));
        assert!(shown(&output).contains("error: --format sarif"), "{arguments:?}: {}", shown(&output));
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}
