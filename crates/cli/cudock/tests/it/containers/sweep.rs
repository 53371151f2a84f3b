//! `cudock sweep` with a container for each trial.

use std::process::Stdio;

use serde_json::Value;

use super::images::Image;
use super::machine::{Machine, machine, until};
use crate::support::json;

/// A project whose trials run a script in containers of a busybox image.
fn project(machine: &Machine, script: &str) {
    let image = Image::of(machine).layer(&[("trial.sh", script)]).write("image");
    let manifest = format!(
        "name = \"p\"\n[sweep]\ncommand = [\"sh\", \"/trial.sh\"]\nimage = \"oci:{}\"\ngpus_per_trial = 0\nretries = 3\n\
         objectives = [{{ metric = \"score\", goal = \"maximize\" }}]\nsampler = \"grid\"\n\
         parameters = {{ x = {{ choice = [1, 2] }} }}\n",
        image.display()
    );
    machine.write("cudock.toml", manifest);
}

fn states(report: &Value) -> Vec<&str> {
    report["trials"].as_array().unwrap().iter().map(|trial| trial["state"].as_str().unwrap()).collect()
}

#[test]
fn each_trial_is_a_container_with_its_directory() {
    let Some(machine) = machine() else { return };
    project(&machine, "echo \"$*\" > $CUDOCK_ARTIFACT_DIR/arguments; echo score=$CUDOCK_PARAM_X");
    let report = json(&machine.call(&["sweep", "--format", "json"]));
    assert_eq!(states(&report), ["succeeded", "succeeded"], "{report}");
    assert_eq!(report["best"], serde_json::json!([1]));
    let arguments = machine.path().join(".cudock/sweeps/p/trials/1/artifacts/arguments");
    assert_eq!(std::fs::read_to_string(arguments).unwrap(), "--x=2\n");
    assert_eq!(machine.list(), [Value::Null; 0]);
}

#[test]
fn no_container_is_left_when_the_sweep_is_killed() {
    let Some(machine) = machine() else { return };
    project(&machine, "touch $CUDOCK_TRIAL_DIR/up; echo score=1; [ $CUDOCK_ATTEMPT != 1 ] || sleep 1000");
    let mut sweep = machine.command(&["sweep", "--concurrent", "1", "--grace", "200ms"]);
    let mut sweep = sweep.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let up = machine.path().join(".cudock/sweeps/p/trials/0/up");
    until("the trial runs", || up.exists());
    sweep.kill().unwrap();
    sweep.wait().unwrap();
    until("its container is gone", || machine.list().is_empty());
    let stopped = std::thread::scope(|scope| {
        let run = scope.spawn(|| machine.call(&["sweep", "--concurrent", "1", "--format", "json"]));
        let second = machine.path().join(".cudock/sweeps/p/trials/1/up");
        until("the next trial runs", || second.exists());
        machine.good(&["sweep", "stop", "1"]);
        run.join().unwrap()
    });
    assert_eq!(states(&json(&stopped)), ["succeeded", "stopped"]);
    assert_eq!(machine.list(), [Value::Null; 0]);
}
