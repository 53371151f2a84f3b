//! `cudock sweep` as a user types it.

use std::fs;
use std::path::Path;

use crate::support::{code, json, run, shown};

fn project(sweep: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("cudock.toml"), format!("name = \"p\"\n[sweep]\n{sweep}\n")).unwrap();
    directory
}

const GRID: &str = r#"command = ["sh", "-c", "for step in 1 2 3; do echo step=$step loss={lr}; done"]
gpus_per_trial = 0
objectives = [{ metric = "loss", goal = "minimize" }]
sampler = "grid"
parameters = { lr = { choice = [0.1, 0.2, 0.3] } }"#;

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_sweep_runs_is_shown_extended_and_resumed() {
    let project = project(GRID);
    let directory = text(project.path());
    let output = run(&["sweep", directory, "--trials", "2", "--concurrent", "2"]);
    assert_eq!(code(&output), 0, "{}", shown(&output));
    assert!(shown(&output).contains("best: trial 0, loss 0.1 (minimize)"), "{}", shown(&output));
    assert!(shown(&output).contains("trial 1 succeeded"), "{}", shown(&output));

    assert_eq!(code(&run(&["sweep", "add", "1", directory])), 0);
    let report = json(&run(&["sweep", directory, "--format", "json"]));
    assert_eq!(report["trials"].as_array().unwrap().len(), 3);
    assert_eq!(report["trials"][2]["state"], "succeeded");

    let html = project.path().join("report.html");
    let shown_again = run(&["sweep", "show", directory, "--html", text(&html), "--format", "csv"]);
    assert_eq!(String::from_utf8_lossy(&shown_again.stdout).lines().count(), 4);
    assert!(fs::read_to_string(&html).unwrap().contains("</html>"));
}

#[test]
fn a_sweep_without_any_result_answers_no() {
    let project = project(&GRID.replace("loss={lr}", "nothing"));
    let output = run(&["sweep", text(project.path())]);
    assert_eq!(code(&output), 1, "{}", shown(&output));
    assert!(
        shown(&output).contains("trial 2 failed: metric `loss` was never reported"),
        "{}",
        shown(&output)
    );
}

#[test]
fn what_is_wrong_is_said_before_anything_runs() {
    let directory = project(GRID);
    let absent = run(&["sweep", "show", text(directory.path())]);
    assert_eq!(code(&absent), 2);
    assert!(shown(&absent).contains("no sweep `p` in"), "{}", shown(&absent));
    assert!(shown(&absent).contains("hint: `cudock sweep` starts it"));
    let name = run(&["sweep", text(directory.path()), "--name", "../x"]);
    assert!(shown(&name).contains("invalid name of a sweep"), "{}", shown(&name));

    let space = project(
        "command = [\"true\"]\nparameters = { lr = { uniform = [2.0, 1.0] } }\nobjectives = [{ metric = \"a\", goal = \"minimize\" }]",
    );
    let output = run(&["sweep", text(space.path())]);
    assert_eq!(code(&output), 2, "{}", shown(&output));
    assert!(!space.path().join(".cudock").exists());
}

#[test]
fn a_limit_in_dollars_needs_a_price() {
    let project = project(&GRID.replace("sampler", "limits = { dollars = 1.0 }\nsampler"));
    let output = run(&["sweep", text(project.path())]);
    assert_eq!(code(&output), 2);
    assert!(shown(&output).contains("--price USD"), "{}", shown(&output));
    let output = run(&["sweep", text(project.path()), "--price", "3.6"]);
    assert_eq!(code(&output), 0, "{}", shown(&output));
}
