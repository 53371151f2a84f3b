//! Sweeps on this machine, with real processes.

use std::fs;

use cudock_sweep::{SweepEnd, TrialId, TrialStatus};
use cudock_sweep_run::{ProjectSweep, SweepRequest};
use rustix::process::{Pid, Signal, kill_process};

use super::local_support::{TestSweep, wait_until};

const GRID: &str =
    "parameters = { lr = { choice = [0.5, 2.0] }, name = { choice = [\"a b\"] } }\nsampler = \"grid\"";

fn one_trial(further: &str) -> String {
    format!("parameters = {{ lr = {{ choice = [0.5] }} }}\nsampler = \"grid\"\nretries = 0\n{further}")
}

#[test]
fn parameters_arrive_as_arguments_variables_and_a_file() {
    let script = r#"echo "args $*"; echo "param $CUDOCK_PARAM_LR $CUDOCK_TRIAL $CUDOCK_ATTEMPT"; cat "$CUDOCK_SWEEP_PARAMETERS"
        touch "$CUDOCK_CHECKPOINT_DIR/c" "$CUDOCK_ARTIFACT_DIR/a"; echo; echo "variable $lr"; echo "score=$CUDOCK_PARAM_LR""#;
    let sweep = TestSweep::new(script, GRID);
    assert!(sweep.run(&[]).status.success());
    let log = sweep.log(0);
    assert!(
        log.contains("args --lr=0.5 --name=a b\nparam 0.5 0 1\n{\"lr\":0.5,\"name\":\"a b\"}\nvariable \n"),
        "{log}"
    );
    assert!(sweep.dir().trial(TrialId(1)).path().join("checkpoints/c").exists());
    let best = sweep.sweep();
    assert_eq!(best.best().unwrap().id, TrialId(1));
    assert_eq!(best.end(), Some(SweepEnd::SpaceExhausted));

    let sweep = TestSweep::new(
        "echo \"args $*\"; echo \"variable $lr\"; echo score=1",
        &format!("{GRID}\npass = \"environment\""),
    );
    assert!(sweep.run(&[]).status.success());
    assert_eq!(sweep.log(0), "args \nvariable 0.5\nscore=1\n");
}

#[test]
fn a_placeholder_in_the_command_takes_the_parameter() {
    let sweep = TestSweep::new("", GRID);
    let manifest = fs::read_to_string(sweep.path().join("cudock.toml")).unwrap();
    let command = r#"["sh", "-c", "echo $0 $*; echo score={lr}", "{lr}/{name}"]"#;
    fs::write(sweep.path().join("cudock.toml"), manifest.replace(r#"["sh", "trial.sh"]"#, command)).unwrap();
    assert!(sweep.run(&[]).status.success());
    assert_eq!(sweep.log(1), "2.0/a b\nscore=2.0\n");
}

#[test]
fn metrics_come_from_lines_json_files_and_mlflow() {
    let mlflow = r#"mkdir -p "$CUDOCK_TRIAL_DIR/mlruns/0/run/metrics"; cd "$CUDOCK_TRIAL_DIR/mlruns/0/run/metrics"
        echo "1700000000000 0.25 1" > score; sleep 0.3; echo "1700000000001 0.5 2" >> score"#;
    for (script, metrics) in [
        ("echo epoch=1 score=0.25; echo noise; printf 'epoch=2 score=0.5'", ""),
        (
            "echo '{\"step\": 1, \"score\": 0.25}'; echo score=9; echo '{\"step\": 2, \"score\": 0.5}'",
            "metrics = { format = \"json\" }",
        ),
        (
            "echo '1: got 0.25' >&2; echo '2: got 0.5'",
            "metrics = { format = \"regex\", pattern = '(?<step>\\d+): got (?<value>\\S+)' }",
        ),
        (
            "echo score=9; echo step=1 score=0.25 >> $CUDOCK_TRIAL_DIR/m; sleep 0.3; echo step=2 score=0.5 >> $CUDOCK_TRIAL_DIR/m",
            "metrics = { from = \"file\", path = \"m\" }",
        ),
        (mlflow, "metrics = { from = \"mlflow\" }"),
    ] {
        let sweep = TestSweep::new(script, &one_trial(metrics));
        assert!(sweep.run(&[]).status.success(), "{metrics}");
        let replayed = sweep.sweep();
        let points = &replayed.trials()[0].attempts[0].curves["score"];
        let points: Vec<_> = points.iter().map(|point| (point.step, point.value)).collect();
        assert_eq!(points, [(Some(1), 0.25), (Some(2), 0.5)], "{metrics}");
    }
}

#[test]
fn every_failure_has_its_reason() {
    for (script, ending) in [
        ("exit 3", "trial 0 failed: exit code 3"),
        ("echo done", "trial 0 failed: metric `score` was never reported"),
        ("echo score=nan", "trial 0 failed: metric `score` has no finite value"),
        ("kill -9 $$", "trial 0 failed: killed by signal 9"),
    ] {
        let sweep = TestSweep::new(script, &one_trial(""));
        assert!(sweep.run(&[]).status.success(), "{script}");
        assert!(sweep.endings()[0].starts_with(ending), "{script}: {:?}", sweep.endings());
    }
    let sweep = TestSweep::new("", &one_trial(""));
    let manifest = fs::read_to_string(sweep.path().join("cudock.toml")).unwrap();
    fs::write(sweep.path().join("cudock.toml"), manifest.replace("\"sh\"", "\"/nonexistent/sh\"")).unwrap();
    sweep.run(&[]);
    assert!(
        sweep.endings()[0].contains("cannot start /nonexistent/sh: No such file"),
        "{:?}",
        sweep.endings()
    );
}

#[test]
fn a_trial_that_forks_daemonizes_and_ignores_signals_ends_as_a_whole() {
    let script = "trap '' TERM; (setsid sh -c 'trap \"\" TERM; sleep 1000 & sleep 1001') & sleep 1002 & echo score=1; sleep 1003";
    let sweep = TestSweep::new(script, &one_trial("limits = { trial_timeout = \"1s\" }"));
    assert!(sweep.run(&["--grace", "100ms"]).status.success());
    assert_eq!(sweep.processes(), [0; 0]);
    assert_eq!(sweep.sweep().trials()[0].status, TrialStatus::Stopped, "{:?}", sweep.endings());

    // The program ends by itself, and leaves others.
    let sweep = TestSweep::new("setsid sleep 1000 & sleep 1001 & echo score=1", &one_trial(""));
    assert!(sweep.run(&[]).status.success());
    assert_eq!(sweep.processes(), [0; 0]);
    assert_eq!(sweep.sweep().trials()[0].status, TrialStatus::Succeeded);
    assert!(
        sweep.result(0)["notes"][0].as_str().unwrap().contains("left running were killed"),
        "{}",
        sweep.result(0)
    );
}

#[test]
fn output_and_reports_without_end_take_bounded_space() {
    let script =
        "head -c 200000000 /dev/zero | tr '\\0' x; echo; yes score=0.5 | head -n 300000; echo score=2";
    let sweep = TestSweep::new(script, &one_trial(""));
    let output = sweep.run(&[]);
    assert!(output.status.success());
    let warnings = String::from_utf8_lossy(&output.stderr);
    assert!(warnings.contains("of its output were dropped"), "{warnings}");
    assert!(warnings.contains("reported more than 100000 times; later reports are ignored"), "{warnings}");
    assert_eq!(sweep.sweep().trials()[0].attempts[0].reports("score"), 100_000);
    let files = fs::read_dir(sweep.dir().trial(TrialId(0)).path()).unwrap().flatten();
    let logs = files.filter(|file| file.file_name().to_str().unwrap().contains(".log"));
    assert!(logs.map(|file| file.metadata().unwrap().len()).sum::<u64>() < 40 << 20);
    assert!(sweep.log(0).ends_with("score=2\n"));
}

#[test]
fn other_commands_pause_stop_and_extend_a_running_sweep() {
    let script =
        "echo score=1; touch $CUDOCK_TRIAL_DIR/up; while [ ! -e $CUDOCK_TRIAL_DIR/go ]; do sleep 0.02; done";
    let keys = "parameters = { x = { uniform = [0.0, 1.0] } }\nlimits = { trials = 2 }";
    let sweep = TestSweep::new(script, keys);
    let mut process = sweep.start(&["--concurrent", "1"]);
    let command = ProjectSweep::open(sweep.path(), Some("test")).unwrap();
    sweep.wait_for(0, "up");
    assert!(
        command.ask(SweepRequest::Stop { trial: TrialId(5) }).unwrap_err().to_string().contains("no trial 5")
    );
    assert!(command.add(1).unwrap());
    assert_eq!(sweep.sweep().trial_limit(), Some(3));
    assert!(command.ask(SweepRequest::Stop { trial: TrialId(0) }).unwrap());
    sweep.wait_for(1, "up");
    assert!(command.ask(SweepRequest::Pause).unwrap());
    fs::write(sweep.dir().trial(TrialId(1)).path().join("go"), "").unwrap();
    assert!(process.wait().unwrap().success());
    let paused = sweep.sweep();
    assert!(paused.is_paused() && paused.end().is_none());
    assert_eq!(sweep.endings(), ["trial 0 stopped: stopped by the user", "trial 1 succeeded"]);

    // Without a process that runs it, a request changes the journal.
    assert!(command.ask(SweepRequest::Cancel).unwrap());
    assert!(sweep.run(&[]).status.success());
    assert_eq!(sweep.sweep().end(), Some(SweepEnd::Canceled));
    assert_eq!(sweep.sweep().trials().len(), 2);
}

#[test]
fn an_interrupt_ends_the_trials_and_the_same_command_resumes() {
    let script = r#"trap 'touch "$CUDOCK_CHECKPOINT_DIR/saved"; exit 0' TERM
        touch "$CUDOCK_TRIAL_DIR/up"; echo "score=$CUDOCK_ATTEMPT"
        [ -e "$CUDOCK_CHECKPOINT_DIR/saved" ] || while :; do sleep 0.02; done"#;
    let sweep = TestSweep::new(script, &one_trial("").replace("retries = 0", "retries = 1"));
    let mut process = sweep.start(&[]);
    sweep.wait_for(0, "up");
    kill_process(Pid::from_raw(process.id().try_into().unwrap()).unwrap(), Signal::INT).unwrap();
    assert!(process.wait().unwrap().success());
    assert_eq!(sweep.processes(), [0; 0]);
    assert_eq!(sweep.sweep().trials()[0].status, TrialStatus::Waiting);
    assert!(sweep.run(&[]).status.success());
    let resumed = sweep.sweep();
    assert_eq!(
        (resumed.trials()[0].attempts.len(), resumed.trials()[0].result.clone()),
        (2, Some(vec![2.0]))
    );
}

#[test]
fn a_sweep_runs_once_at_a_time_and_a_finished_one_is_not_run_again() {
    let script =
        "touch $CUDOCK_TRIAL_DIR/up; while [ ! -e $CUDOCK_TRIAL_DIR/go ]; do sleep 0.02; done; echo score=1";
    let sweep = TestSweep::new(script, &one_trial(""));
    let mut process = sweep.start(&[]);
    let up = sweep.wait_for(0, "up");
    let second = sweep.run(&[]);
    assert!(!second.status.success());
    fs::write(up.with_file_name("go"), "").unwrap();
    assert!(process.wait().unwrap().success());
    let records = sweep.records().len();
    assert!(sweep.run(&[]).status.success());
    assert_eq!(sweep.records().len(), records);
    assert!(sweep.run(&["--seed", "7"]).stderr.windows(6).any(|text| text == b"--seed"));
    wait_until("no process is left", || sweep.processes().is_empty());
}
