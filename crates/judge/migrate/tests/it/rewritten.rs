//! The files that replace old ones, and what is reported about the rest.

use std::fmt::Write;
use std::path::Path;

use cudock_facts::Facts;
use cudock_migrate::{NewFile, Translation, translate};

fn translated(name: &str, text: &str) -> Translation {
    translate(&Facts::embedded(), "2026-11-15".parse().unwrap(), None, name, text)
}

fn input(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inputs").join(name);
    std::fs::read_to_string(path).unwrap()
}

/// The new files and the findings, each with the line it is about.
fn shown(translation: &Translation) -> String {
    let mut text = String::new();
    for NewFile { name, text: content } in &translation.files {
        writeln!(text, "==> {name} <==\n{content}").unwrap();
    }
    for finding in &translation.findings {
        let line = finding.location.as_ref().map_or(0, |location| location.region.span.line);
        writeln!(text, "{line}: {}: {} ({})", finding.severity.name(), finding.message, finding.fix).unwrap();
    }
    text
}

#[test]
fn old_files_become_new_ones_and_the_rest_is_reported_with_its_line() {
    for name in [
        "mnist_sweep.py",
        "bayesian_estimator.py",
        "truncation_grid.py",
        "group.yaml",
        "job.yaml",
        "batch_quickstart.py",
    ] {
        insta::assert_snapshot!(name, shown(&translated(name, &input(name))));
    }
}

#[test]
fn secrets_of_a_group_are_not_copied() {
    let all = shown(&translated("group.yaml", &input("group.yaml")));
    for secret in ["hunter2", "swordfish", "c2VjcmV0"] {
        assert!(!all.contains(secret), "{all}");
    }
}

#[test]
fn what_cannot_be_translated_is_an_error_and_writes_nothing() {
    for (text, expected) in [
        ("az vm create --size Standard_NC6\n", "nothing to translate"),
        ("from x import HyperDriveConfig\n", "cannot be read"),
        ("h = HyperDriveConfig(primary_metric_name='a')\n", "no hyperparameter_sampling"),
        (
            "h = HyperDriveConfig(hyperparameter_sampling=ps, primary_metric_name='a')\n",
            "the sampling is not",
        ),
        ("h = HyperDriveConfig(RandomParameterSampling(space), 'a')\n", "parameter space cannot be read"),
        ("h = HyperDriveConfig(RandomParameterSampling({'a': f()}), 'a')\n", "no parameter can be read"),
        ("h = HyperDriveConfig(RandomParameterSampling({'a': choice(1)}), NAME)\n", "primary_metric_name"),
        ("name: x\nproperties:\n  containers: []\n", "a group without containers"),
        (
            "name: x\nproperties:\n  osType: Windows\n  containers:\n  - {name: a, properties: {image: i, resources: {requests: {cpu: 1, memoryInGB: 1}}}}\n",
            "Windows",
        ),
    ] {
        let translation = translated("old", text);
        assert!(translation.files.is_empty(), "{text}");
        let all = shown(&translation);
        assert!(all.contains("error: ") && all.contains(expected), "{text}: {all}");
    }
}

#[test]
fn written_manifests_are_sweeps() {
    for name in ["mnist_sweep.py", "bayesian_estimator.py", "truncation_grid.py"] {
        let directory = tempfile::tempdir().unwrap();
        for file in translated(name, &input(name)).files {
            std::fs::write(directory.path().join(file.name), file.text).unwrap();
        }
        let project = cudock_project::Project::open(directory.path()).unwrap();
        let plan = project.sweep_plan().unwrap();
        assert!(plan.limits.trials.is_some() && !plan.space.parameters.is_empty(), "{name}");
    }
}

#[test]
fn a_translated_program_needs_no_translation() {
    let first = translated("batch_quickstart.py", &input("batch_quickstart.py"));
    let again = translated("batch_quickstart.py", &first.files[0].text);
    assert!(again.files.is_empty(), "{}", shown(&again));
}

proptest::proptest! {
    #[test]
    fn any_part_of_a_file_is_translated_without_a_panic(at in 0_usize..4000, cut in 0_usize..200, name in 0_usize..6) {
        let names = ["mnist_sweep.py", "bayesian_estimator.py", "truncation_grid.py", "group.yaml", "job.yaml", "batch_quickstart.py"];
        let mut text = input(names[name]);
        let at = at.min(text.len());
        text.replace_range(at..(at + cut).min(text.len()), "");
        translated(names[name], &text);
        translated(names[name], &text[..at]);
    }
}
