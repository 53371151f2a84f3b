//! Which containers run when, and which run again.

use super::machine::{container, group, machine, until};
use crate::support::{code, shown};

const NOTES: &str = "      volumeMounts: [{name: notes, mountPath: /notes}]\n";
const VOLUME: &str = "  volumes: [{name: notes, emptyDir: {}}]\n";

fn with_inits(name: &str, policy: &str, inits: &[String], containers: &[String]) -> String {
    let more = format!("  restartPolicy: {policy}\n{VOLUME}  initContainers:\n{}", inits.concat());
    group(name, &more, containers)
}

#[test]
fn init_containers_run_in_order_before_the_others() {
    let Some(machine) = machine() else { return };
    let note = |word: &str| format!("sleep 0.2; echo {word} >> /notes/order");
    let inits = [container("first", &note("1"), NOTES), container("second", &note("2"), NOTES)];
    let main = container("main", "echo 3 >> /notes/order; sleep 1000", NOTES);
    machine.up_well(&with_inits("ordered", "Always", &inits, &[main]));
    until("all have written", || {
        machine.run(&["exec", "ordered/main", "cat", "/notes/order"]).stdout == b"1\n2\n3\n"
    });
    assert_eq!(machine.container("ordered", "first")["phase"], "succeeded");
    assert_eq!(machine.container("ordered", "main")["phase"], "running");
}

#[test]
fn a_failing_init_container_fails_the_group_where_nothing_runs_again() {
    let Some(machine) = machine() else { return };
    let inits = [container("breaks", "echo no luck; exit 7", NOTES)];
    let main = container("main", "sleep 1000", NOTES);
    let output = machine.up(&with_inits("unlucky", "Never", &inits, &[main]));
    assert_eq!(code(&output), 1, "{}", shown(&output));
    assert!(shown(&output).contains("breaks: exited with code 7"), "{}", shown(&output));
    until("the group has failed", || machine.group("unlucky")["state"] == "failed");
    assert_eq!(machine.container("unlucky", "main")["phase"], "waiting");
    assert_eq!(machine.logs("unlucky/breaks"), "no luck\n", "what it wrote outlives it");
}

#[test]
fn a_job_that_ends_well_is_not_started_again_and_one_that_fails_is() {
    let Some(machine) = machine() else { return };
    let more = format!("  restartPolicy: OnFailure\n{VOLUME}");
    let done = container("done", "echo x >> /notes/done", NOTES);
    // The second run comes at once and succeeds.
    let again = container("again", "echo x >> /notes/again; test $(wc -l < /notes/again) -ge 2", NOTES);
    machine.up_well(&group("jobs", &more, &[done, again]));
    until("the group has succeeded", || machine.group("jobs")["state"] == "succeeded");
    assert_eq!(machine.container("jobs", "done")["restarts"], 0);
    assert_eq!(machine.container("jobs", "again")["restarts"], 1);
    let notes = machine.data().join("groups/jobs/volumes/notes");
    assert_eq!(std::fs::read_to_string(notes.join("done")).unwrap(), "x\n");
    assert_eq!(std::fs::read_to_string(notes.join("again")).unwrap(), "x\nx\n");
}

#[test]
fn what_keeps_failing_is_delayed_and_up_reports_it() {
    let Some(machine) = machine() else { return };
    let file = machine.write(&group("crashing", "", &[container("a", "exit 3", "")]));
    let output = machine.run(&["up", "-f", &file, "--detach", "--network", "none", "--keep"]);
    assert_eq!(code(&output), 1, "{}", shown(&output));
    let text = shown(&output);
    assert!(text.contains("a: exited with code 3; it restarts in 10 s"), "{text}");
    assert!(text.contains("cudock logs crashing/a"), "{text}");
    let container = machine.container("crashing", "a");
    assert_eq!(
        (&container["phase"], &container["restarts"]),
        (&"restarting".into(), &2.into()),
        "{container}"
    );
    let listed = crate::support::json(&machine.run(&["ps", "--format", "json"]));
    assert_eq!(listed["containers"][0]["state"], "restarting", "{listed}");
}

#[test]
fn a_failed_start_is_reported_with_its_reason() {
    let Some(machine) = machine() else { return };
    let text = group("nothing", "  restartPolicy: Never\n", &[container("a", "true", "")])
        .replace("\"sh\"", "\"nosuch\"");
    let output = machine.up(&text);
    assert_eq!(code(&output), 1, "{}", shown(&output));
    assert!(shown(&output).contains("`nosuch` not found in the container's PATH"), "{}", shown(&output));
}

#[test]
fn a_group_that_runs_is_not_started_over_and_one_that_ended_is() {
    let Some(machine) = machine() else { return };
    let job = group("over", "  restartPolicy: Never\n", &[container("a", "echo one; exit 1", "")]);
    assert_eq!(code(&machine.up(&job)), 1);
    let lasting = group("over", "", &[container("a", "echo two; sleep 1000", "")]);
    machine.up_well(&lasting);
    until("the new one has written", || machine.logs("over/a") == "two\n");
    let output = machine.up(&lasting);
    assert_eq!(code(&output), 2, "{}", shown(&output));
    assert!(shown(&output).contains("group `over` is already running"), "{}", shown(&output));
    assert_eq!(machine.group("over")["state"], "running", "it was not disturbed");
}
