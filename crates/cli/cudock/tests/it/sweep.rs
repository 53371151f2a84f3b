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
fn colors_are_no_part_of_a_metric_and_a_failed_trial_shows_why() {
    let script = r#"command = ["sh", "-c", "printf '\\033[32mloss={lr}\\033[0m\\n'; printf '\\033[31mKeyError: x\\033[0m\\n'; exit {code}"]"#;
    let keys = "retries = 0\nparameters = { lr = { choice = [0.5] }, code = { choice = [0, 3] } }";
    let rest =
        GRID.lines().skip(1).filter(|line| !line.starts_with("parameters")).collect::<Vec<_>>().join("\n");
    let project = project(&format!("{script}\n{rest}\n{keys}"));
    let output = run(&["sweep", text(project.path()), "--concurrent", "1"]);
    assert_eq!(code(&output), 0, "{}", shown(&output));
    let progress = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(progress.contains("trial 1 failed: exit code 3\n  loss=0.5\n  KeyError: x\n"), "{progress}");
    let show = shown(&run(&["sweep", "show", text(project.path())]));
    assert!(show.contains("best: trial 0, loss 0.5 (minimize)"), "{show}");
    assert!(show.contains("trial 1 failed: exit code 3; the end of "), "{show}");
    assert!(show.contains("trials/1/attempt-1.log:\n  loss=0.5\n  KeyError: x"), "{show}");
    let report = json(&run(&["sweep", "show", text(project.path()), "--format", "json"]));
    assert_eq!(report["trials"][1]["log"], serde_json::json!(["loss=0.5", "KeyError: x"]));
}

#[test]
fn faults_are_reported_before_anything_runs() {
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

const CLOUD: &str = r#"command = ["python", "train.py"]
image = "team.azurecr.io/train:1"
objectives = [{ metric = "loss", goal = "minimize" }]
limits = { trials = 6, concurrent = 2 }
[sweep.parameters]
lr = { loguniform = [1e-4, 1e-1] }
[deploy]
regions = ["westeurope"]
[needs]
gpu_memory = "8GiB""#;

const SIZES: &str = "lr = { choice = [1, 2] }\nnode = { sizes = [\"NC4as_T4_v3\", \"NC24ads_A100_v4\"] }";

/// A sweep on a service, as all of its requests.
fn dry_run(sweep: &str, arguments: &[&str]) -> std::process::Output {
    let project = project(sweep);
    let base = ["sweep", text(project.path()), "--dry-run"];
    let output = run(&base.iter().chain(arguments).copied().collect::<Vec<_>>());
    assert!(!project.path().join(".cudock").exists(), "{}", shown(&output));
    output
}

#[test]
fn a_dry_run_on_batch_prints_a_job_that_waits_for_trials() {
    let output = dry_run(CLOUD, &["--on", "batch", "--size", "NC4as_T4_v3"]);
    assert_eq!(code(&output), 0, "{}", shown(&output));
    let text = shown(&output);
    for expected in [
        "# p on Batch in westeurope",
        "POST /jobs?",
        "\"vmSize\": \"Standard_NC4as_T4_v3\"",
        "billed from here on",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(text.contains("\"targetDedicatedNodes\": 2"), "{text}");
    assert!(!text.contains("addtaskcollection") && !text.contains("onAllTasksComplete"), "{text}");
}

#[test]
fn a_dry_run_has_a_deployment_for_each_size_that_trials_choose() {
    let sweep = CLOUD.replace("lr = { loguniform = [1e-4, 1e-1] }", SIZES);
    let output = dry_run(&sweep, &["--on", "batch"]);
    assert_eq!(code(&output), 0, "{}", shown(&output));
    let text = shown(&output);
    for expected in ["# p-nc4as-t4-v3 on Batch", "# p-nc24ads-a100-v4 on Batch", "Standard_NC24ads_A100_v4"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert_eq!(text.matches("\"targetDedicatedNodes\": 1").count(), 2, "{text}");
}

#[test]
fn a_dry_run_on_ml_prints_the_sweep_job_of_the_service() {
    let sweep = CLOUD.replace("limits", "metrics = { from = \"mlflow\" }\nlimits");
    let output = dry_run(&sweep, &["--on", "ml", "--workspace", "shared/lab"]);
    assert_eq!(code(&output), 0, "{}", shown(&output));
    let text = shown(&output);
    for expected in
        ["\"jobType\": \"Sweep\"", "\"maxTotalTrials\": 6", "${{search_space.lr}}", "\"loguniform\""]
    {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn a_dry_run_on_ml_names_the_reason_for_single_jobs_and_how_each_is_deleted() {
    let output = dry_run(CLOUD, &["--on", "ml", "--workspace", "shared/lab"]);
    assert_eq!(code(&output), 0, "{}", shown(&output));
    let text = shown(&output);
    for expected in [
        "each trial is a job of its own: the service reads metrics from MLflow only",
        "\"computeType\": \"AmlCompute\"",
        "\"maxNodeCount\": 2",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(!text.contains("\"jobType\""), "no job is submitted yet: {text}");
    // Six trials and a retry of each.
    let deleted = text.lines().filter(|line| line.starts_with("DELETE ") && line.contains("/jobs/"));
    assert_eq!(deleted.count(), 12, "{text}");
}

#[test]
fn what_cannot_run_on_a_service_is_refused_before_any_request() {
    let sizes = CLOUD.replace("lr = { loguniform = [1e-4, 1e-1] }", SIZES);
    let cases: [(String, &[&str], &str); 11] = [
        (CLOUD.replace("image", "# image"), &["--on", "batch"], "a sweep on Azure needs an image"),
        (
            CLOUD.replace("limits", "metrics = { from = \"mlflow\" }\nlimits"),
            &["--on", "batch"],
            "read from their standard output only",
        ),
        (
            CLOUD.replace("limits", "pass = \"environment\"\nlimits"),
            &["--on", "batch"],
            "parameter `lr` does not reach a trial on Azure",
        ),
        (sizes.replace("T4_v3", "T4_v9"), &["--on", "batch"], "`NC4as_T4_v9` is not a size of Azure"),
        (
            sizes.replace("NC24ads_A100_v4", "Standard_NC4as_T4_v3"),
            &["--on", "batch"],
            "`NC4as_T4_v3` and `Standard_NC4as_T4_v3` are the same size",
        ),
        (sizes, &["--on", "batch", "--size", "NC4as_T4_v3"], "--size and the parameter `node` both choose"),
        (
            CLOUD.replace("limits", "sampler = \"tpe\"\nmetrics = { from = \"mlflow\" }\nlimits"),
            &["--on", "ml", "--workspace", "shared/lab"],
            "the service has no TPE sampler; and not as single jobs: metrics of trials on Azure are read from",
        ),
        (
            CLOUD.replace("trials = 6", "trials = 101"),
            &["--on", "ml", "--workspace", "shared/lab"],
            "may be 202 jobs, and at most 100",
        ),
        (
            CLOUD.replace("trials = 6, ", "timeout = \"1h\", "),
            &["--on", "ml", "--workspace", "shared/lab"],
            "their number has to be known",
        ),
        (CLOUD.to_owned(), &["--on", "vm"], "expected ml or batch"),
        (CLOUD.to_owned(), &[], "--on <SERVICE>"),
    ];
    for (sweep, arguments, expected) in cases {
        let output = dry_run(&sweep, arguments);
        assert_eq!(code(&output), 2, "{expected}: {}", shown(&output));
        assert!(shown(&output).contains(expected), "{expected}: {}", shown(&output));
    }
}
