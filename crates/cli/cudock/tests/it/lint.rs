//! `cudock lint` as a user types it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use cudock_testkit::http::{Reply, Server};
use serde_json::{Value, json};

use crate::support::{code, cudock, run, run_with_input, schema, shown};

/// Only rules that these tests name apply, so that others can be added.
const SETTINGS: &str =
    "[lint]\ndisable = 'all'\nenable = ['CD0613', 'missing-tag', 'recommended-packages']\n";
const UNTAGGED: &str = "FROM nvcr.io/nvidia/pytorch\nRUN python train.py\n";
const RECOMMENDED: &str = "\
FROM ubuntu:22.04
RUN apt-get update && \\
    apt-get install -y nvidia-cuda-toolkit
";

fn lint_in(directory: &Path, args: &[&str]) -> Output {
    let args: Vec<&str> = std::iter::once("lint").chain(args.iter().copied()).collect();
    schema::output(cudock(&args).current_dir(directory))
}

/// Runs it in a directory with these files.
fn lint(files: &[(&str, &str)], args: &[&str]) -> Output {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("cudock.toml"), SETTINGS).unwrap();
    for (name, text) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    lint_in(directory.path(), args)
}

fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", shown(output)))
}

#[test]
fn findings_are_shown_with_the_lines_they_are_about() {
    let files = [
        ("Dockerfile", UNTAGGED),
        ("docker/gpu.dockerfile", RECOMMENDED),
        ("docker/wrong.dockerfile", "FETCH a\n"),
    ];
    insta::assert_snapshot!(shown(&lint(&files, &["--for", "T4"])));
}

#[test]
fn many_findings_have_excerpts_with_verbose_only() {
    let text = "FROM a/b\n".repeat(6);
    let output = lint(&[("Dockerfile", &text)], &[]);
    insta::assert_snapshot!(shown(&output));
    let verbose = shown(&lint(&[("Dockerfile", &text)], &["--verbose"]));
    assert_eq!(verbose.matches("^^^").count(), 6, "{verbose}");
}

#[test]
fn nothing_found_is_one_line() {
    let files = [("Dockerfile", "FROM a:1\n"), ("Containerfile", "FROM a:1\n")];
    insta::assert_snapshot!(shown(&lint(&files, &[])));
}

#[test]
fn json_has_the_place_the_fix_and_the_totals() {
    let output = lint(&[("Dockerfile", UNTAGGED), ("Dockerfile.gpu", RECOMMENDED)], &["--format", "json"]);
    assert_eq!(code(&output), 0, "warnings do not fail: {}", shown(&output));
    let report = json_of(&output);
    let finding = &report["files"][0]["findings"][0];
    assert_eq!(report["files"][0]["path"], "Dockerfile");
    assert_eq!(
        (
            &finding["code"],
            &finding["line"],
            &finding["column"],
            &finding["end_line"],
            &finding["end_column"]
        ),
        (&json!("CD0702"), &json!(1), &json!(6), &json!(1), &json!(28))
    );
    assert_eq!((&finding["fixable"], &finding["saves_bytes"]), (&json!(false), &Value::Null));
    assert_eq!(report["files"][1]["findings"][0]["fixable"], true);
    assert_eq!((&report["total"]["warnings"], &report["total"]["fixable"]), (&json!(2), &json!(1)));
}

#[test]
fn other_services_get_their_formats() {
    let files = [("Dockerfile", UNTAGGED), ("a/Dockerfile", "FROM a/b\nFROM a/b\n")];
    let annotations = shown(&lint(&files, &["--format", "github"]));
    assert!(
        annotations.contains("::warning file=Dockerfile,line=1,col=6,endColumn=28,title=CD0702::"),
        "{annotations}"
    );
    let sarif = json_of(&lint(&[("Dockerfile", RECOMMENDED)], &["--format", "sarif"]));
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!((&result["ruleId"], &result["level"]), (&json!("CD0775"), &json!("warning")));
    assert!(result["fixes"][0]["artifactChanges"][0]["replacements"].is_array(), "{sarif}");

    let issues = json_of(&lint(&files, &["./", "--format", "gitlab"]));
    let issues = issues.as_array().unwrap();
    let places: Vec<(&str, u64)> = issues
        .iter()
        .map(|issue| {
            let location = &issue["location"];
            (location["path"].as_str().unwrap(), location["lines"]["begin"].as_u64().unwrap())
        })
        .collect();
    assert_eq!(places, [("Dockerfile", 1), ("a/Dockerfile", 1), ("a/Dockerfile", 2)]);
    assert_eq!((&issues[0]["check_name"], &issues[0]["severity"]), (&json!("CD0702"), &json!("minor")));
    let fingerprints: std::collections::HashSet<_> =
        issues.iter().map(|issue| issue["fingerprint"].to_string()).collect();
    assert_eq!(fingerprints.len(), 3, "equal findings are different issues");
}

#[test]
fn fixes_are_shown_as_a_diff_and_then_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("Dockerfile");
    fs::write(directory.path().join("cudock.toml"), SETTINGS).unwrap();
    fs::write(&path, RECOMMENDED).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    insta::assert_snapshot!(shown(&lint_in(directory.path(), &["--fix", "--dry-run"])));
    assert_eq!(fs::read_to_string(&path).unwrap(), RECOMMENDED);

    let output = lint_in(directory.path(), &["--fix", "--fail-level", "note"]);
    assert_eq!(
        (code(&output), shown(&output).contains("Dockerfile: fixed 1 finding")),
        (0, true),
        "{}",
        shown(&output)
    );
    let fixed = RECOMMENDED.replace("install -y", "install --no-install-recommends -y");
    assert_eq!(fs::read_to_string(&path).unwrap(), fixed);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(json_of(&lint_in(directory.path(), &["--fix", "--format", "json"]))["files"][0]["fixed"], 0);
}

#[test]
fn standard_input_is_linted_and_its_fixed_text_printed() {
    let output = run_with_input(&["lint", "-", "--format", "json"], UNTAGGED.as_bytes());
    assert_eq!(json_of(&output)["files"][0]["path"], "<stdin>");
    let output = run_with_input(&["lint", "-", "--fix"], b"FROM a:1\nUSER 1\nRUN b");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "FROM a:1\nUSER 1\nRUN b\n");
    let output = run_with_input(&["lint", "-"], b"FROM \xff");
    assert_eq!(code(&output), 2);
    assert!(shown(&output).contains("not UTF-8 at byte 5"), "{}", shown(&output));
}

#[test]
fn the_exit_code_follows_the_level() {
    for (args, expected) in [
        (&[][..], 0),
        (&["--fail-level", "warning"], 1),
        (&["--fail-level", "none"], 0),
        (&["Dockerfile", "absent"], 2),
        (&["--for", "T5"], 2),
        (&["--driver", "535"], 2),
        (&["--dry-run"], 2),
    ] {
        let output = lint(&[("Dockerfile", UNTAGGED)], args);
        assert_eq!(code(&output), expected, "{args:?}: {}", shown(&output));
    }
    assert_eq!(code(&lint(&[("Dockerfile", "FETCH a\n")], &[])), 1);
    assert_eq!(code(&lint(&[("readme", "")], &[])), 2);
}

#[test]
fn rules_are_listed() {
    let text = shown(&run(&["lint", "--rules"]));
    assert!(text.contains("CD0702  missing-tag "), "{text}");
    let rules = json_of(&run(&["lint", "--rules", "--format", "json"]));
    let rule = rules["rules"].as_array().unwrap().iter().find(|rule| rule["code"] == "CD0702").unwrap();
    assert_eq!(
        *rule,
        json!({"code": "CD0702", "name": "missing-tag", "severity": "warning", "fixable": false, "also": ["DL3006"]})
    );
}

#[test]
fn registries_get_requests_with_online_only() {
    let server = Server::start(|request| match request.path.rsplit('/').next() {
        Some("1.0") => Reply::new(200, ""),
        Some("2.0") => Reply::new(404, ""),
        _ => Reply::new(403, ""),
    });
    let host = server.host();
    let text = format!(
        "FROM {host}/a:1.0\nFROM {host}/a:2.0 AS b\nFROM {host}/a:3.0\nFROM b\nFROM {host}/a:2.0\nFROM $X\n"
    );
    let files = [("Dockerfile", text.as_str())];
    let cache = tempfile::tempdir().unwrap();
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("Dockerfile"), files[0].1).unwrap();
    fs::write(directory.path().join("cudock.toml"), SETTINGS).unwrap();
    let lint = |args: &[&str]| {
        let args = [&["lint", "--format", "json"], args].concat();
        let output =
            schema::output(cudock(&args).current_dir(directory.path()).env("CUDOCK_CACHE", cache.path()));
        let found = json_of(&output)["files"][0]["findings"].as_array().unwrap().clone();
        let lines: Vec<u64> = found.iter().map(|finding| finding["line"].as_u64().unwrap()).collect();
        (lines, String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(lint(&[]), (vec![], String::new()));
    assert_eq!(server.requests().len(), 0);
    let (lines, notes) = lint(&["--online"]);
    assert_eq!(lines, [2, 5]);
    assert!(notes.contains("note: manifest 3.0 of a on") && notes.contains("access denied"), "{notes}");
    assert_eq!(server.requests().len(), 3, "each image is requested once");
}
