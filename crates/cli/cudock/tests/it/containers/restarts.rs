//! Restart policies of containers.

use super::machine::{machine, until};

#[test]
fn without_a_policy_an_end_is_the_end() {
    let Some(machine) = machine() else { return };
    machine.start("once", &[], "echo begun; exit 3");
    assert_eq!(machine.good(&["wait", "once"]), "3\n");
    let status = machine.status("once");
    assert_eq!((&status["restarts"], &status["state"]), (&0.into(), &"exited".into()), "{status:#}");
    assert_eq!(machine.logs("once"), "begun\n");
}

#[test]
fn a_failure_is_retried_as_often_as_the_policy_allows() {
    let Some(machine) = machine() else { return };
    machine.start("failing", &["--restart", "on-failure:2"], "echo begun; exit 3");
    assert_eq!(machine.good(&["wait", "failing"]), "3\n");
    let status = machine.status("failing");
    assert_eq!((&status["restarts"], &status["exit_code"]), (&2.into(), &3.into()), "{status:#}");
    assert_eq!(machine.logs("failing"), "begun\n".repeat(3));
}

#[test]
fn a_success_is_not_tried_again_after_failures() {
    let Some(machine) = machine() else { return };
    let script = "test -e /tried && exit 0; touch /tried; exit 1";
    machine.start("learning", &["--restart", "on-failure"], script);
    assert_eq!(machine.good(&["wait", "learning"]), "0\n", "what it wrote is there when it is started again");
    assert_eq!(machine.status("learning")["restarts"], 1);
}

#[test]
fn always_is_until_it_is_stopped() {
    let Some(machine) = machine() else { return };
    machine.start("always", &["--restart", "always"], "echo begun; exit 0");
    until("it was started again", || machine.status("always")["restarts"].as_u64().unwrap() >= 1);
    machine.good(&["stop", "always"]);
    let status = machine.status("always");
    assert_eq!(status["state"], "exited", "{status:#}");
    let restarts = status["restarts"].clone();
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert_eq!(machine.status("always")["restarts"], restarts, "it stays stopped");
}

#[test]
fn one_that_runs_can_be_stopped_whatever_its_policy() {
    let Some(machine) = machine() else { return };
    machine.start(
        "service",
        &["--restart", "always"],
        "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done",
    );
    machine.until_logged("service", "ready");
    machine.good(&["stop", "service"]);
    assert_eq!(machine.status("service")["state"], "exited");
    assert_eq!(machine.status("service")["restarts"], 0);
}

#[test]
fn waiting_to_be_started_again_is_a_state_that_ps_shows() {
    let Some(machine) = machine() else { return };
    machine.start("pausing", &["--restart", "always"], "exit 1");
    until("it waits", || machine.good(&["ps"]).contains("restarting (1)"));
    machine.good(&["rm", "--force", "pausing"]);
    assert_eq!(machine.list().len(), 0);
}
