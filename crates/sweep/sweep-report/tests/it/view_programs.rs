//! Views in the programs that they are made for: a browser, Optuna and its dashboard.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cudock_sweep_report as view;
use serde_json::{Value, json};

use crate::view_support::{Story, digits, tradeoff};

fn directory(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&directory).unwrap();
    directory
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/view").join(name)
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}\n{out}\n{err}");
    out.into_owned()
}

/// What each page shows is in `tests/view/look.py`.
#[test]
fn the_html_report_is_drawn_and_operable_in_a_browser() {
    let Some((python, chromium)) = cudock_testkit::require_browser() else {
        return;
    };
    let pages = directory("html-report");
    for (name, story) in [("digits", digits()), ("tradeoff", tradeoff())] {
        let page = pages.join(format!("{name}.html"));
        fs::write(&page, view::html(&story.sweep, story.now)).unwrap();
        output(Command::new(&python).arg(script("look.py")).arg(name).arg(&page).arg(&chromium).arg(&pages));
        for shade in ["light", "dark", "small"] {
            let size = fs::metadata(pages.join(format!("{name}-{shade}.png"))).unwrap().len();
            assert!(size > 10_000, "{name}-{shade}.png shows nothing");
        }
    }
}

/// Optuna's own account of a file.
fn loaded(python: &Path, name: &str, story: &Story) -> Value {
    let file = directory("optuna").join(format!("{name}.log"));
    fs::write(&file, view::optuna_journal(&story.sweep, story.now)).unwrap();
    serde_json::from_str(&output(Command::new(python).arg(script("load.py")).arg(&file))).unwrap()
}

#[test]
fn optuna_reads_states_values_curves_and_distributions() {
    let Some(python) = cudock_testkit::require_optuna() else {
        return;
    };
    let study = loaded(&python, "digits", &digits());
    assert_eq!(study["directions"], json!(["MAXIMIZE"]));
    assert_eq!(study["metric_names"], json!(["accuracy"]));
    assert_eq!(study["best"], json!(2));
    let states: Vec<&str> =
        study["trials"].as_array().unwrap().iter().map(|t| t["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["COMPLETE", "PRUNED", "COMPLETE", "FAIL", "RUNNING"]);
    assert_eq!(study["trials"][2]["values"], json!([0.9132]));
    assert_eq!(study["trials"][2]["intermediate"], json!({"1": "0.7", "2": "nan", "3": "0.9132"}));
    assert_eq!(study["trials"][2]["seconds"], json!(30.0));
    let sgd = json!({"lr": 0.1, "layers": 1, "optimizer": "sgd", "momentum": 0.9, "weight_decay": -0.5});
    assert_eq!(study["trials"][1]["params"], sgd);
    assert_eq!(study["trials"][1]["reason"], json!("at step 2: 0.61 < 0.8 / (1 + 0.2) = 0.667"));
    assert_eq!(study["trials"][0]["params"].get("momentum"), None);
    let distributions = json!({
        "lr": "FloatDistribution(high=0.1, log=True, low=0.0001, step=None)",
        "layers": "IntDistribution(high=4, log=False, low=1, step=1)",
        "optimizer": "CategoricalDistribution(choices=('adam', 'sgd'))",
        "momentum": "FloatDistribution(high=1.0, log=False, low=0.0, step=None)",
        "weight_decay": "FloatDistribution(high=3.0, log=False, low=-3.0, step=None)",
    });
    assert_eq!(study["trials"][1]["distributions"], distributions);
    assert_eq!(study["is_extended"], json!(true), "the study cannot be continued");

    let study = loaded(&python, "tradeoff", &tradeoff());
    assert_eq!(study["directions"], json!(["MAXIMIZE", "MINIMIZE"]));
    assert_eq!(study["front"], json!([0, 1]));
    assert_eq!(study["trials"][1]["values"], json!([0.95, 20.0]));
}

/// What the dashboard shows is in `tests/view/dashboard.py`.
#[test]
fn optuna_dashboard_opens_the_file() {
    let (Some(optuna), Some((python, chromium))) =
        (cudock_testkit::require_optuna(), cudock_testkit::require_browser())
    else {
        return;
    };
    let directory = directory("optuna-dashboard");
    for (name, story) in [("digits", digits()), ("tradeoff", tradeoff())] {
        let file = directory.join(format!("{name}.log"));
        fs::write(&file, view::optuna_journal(&story.sweep, story.now)).unwrap();
        let mut command = Command::new(&python);
        command.arg(script("dashboard.py")).arg(&optuna).arg(&file).arg(&chromium).arg(&directory).arg(name);
        output(&mut command);
    }
}
