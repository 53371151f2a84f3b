//! Probes: who is killed, and who is ready.

use super::machine::{container, group, machine, until};

const NOTES: &str = "      volumeMounts: [{name: notes, mountPath: /notes}]\n";
const VOLUME: &str = "  volumes: [{name: notes, emptyDir: {}}]\n";

#[test]
fn a_container_whose_liveness_probe_fails_is_restarted() {
    let Some(machine) = machine() else { return };
    // Its first run passes one probe and then fails; the second passes.
    let main = "echo x >> /notes/runs; rm -f /notes/sick; \
                test $(wc -l < /notes/runs) -gt 1 || { sleep 1; touch /notes/sick; }; trap 'exit 0' TERM; \
                while true; do sleep 0.1; done";
    let probe = "      livenessProbe: {exec: {command: [test, '!', -e, /notes/sick]}, periodSeconds: 1, \
                 timeoutSeconds: 30, failureThreshold: 2}\n";
    machine.up_well(&group("sick", VOLUME, &[container("a", main, &format!("{NOTES}{probe}"))]));
    until("it was started again", || {
        let container = machine.container("sick", "a");
        container["restarts"] == 1 && container["phase"] == "running"
    });
    let runs = machine.data().join("groups/sick/volumes/notes/runs");
    until("it runs again", || std::fs::read_to_string(&runs).unwrap() == "x\nx\n");
}

#[test]
fn a_container_that_answers_with_an_error_is_started_again() {
    let Some(machine) = machine() else { return };
    let main = "echo x >> /notes/runs; mkdir -p /tmp/w; touch /tmp/w/health; \
                test $(wc -l < /notes/runs) -gt 1 || (sleep 1; rm /tmp/w/health) & exec httpd -f -p 8000 -h /tmp/w";
    let probe = "      livenessProbe: {httpGet: {path: /health, port: 8000}, initialDelaySeconds: 1, \
                 periodSeconds: 1, timeoutSeconds: 20, failureThreshold: 3}\n";
    machine.up_well(&group("http", VOLUME, &[container("a", main, &format!("{NOTES}{probe}"))]));
    until("it was started again", || {
        let container = machine.container("http", "a");
        container["restarts"] == 1 && container["phase"] == "running"
    });
}

#[test]
fn a_command_that_does_not_answer_in_time_is_killed_and_counts_as_no() {
    let Some(machine) = machine() else { return };
    let main = "trap 'exit 0' TERM; while true; do sleep 0.1; done";
    let probe = "      livenessProbe: {exec: {command: [sleep, '987']}, initialDelaySeconds: 5, failureThreshold: 1}\n";
    let output = machine.up(&group("slow", "  restartPolicy: Never\n", &[container("a", main, probe)]));
    assert!(output.status.success(), "{}", crate::support::shown(&output));
    until("it was killed", || machine.group("slow")["state"] == "failed");
    let container = machine.container("slow", "a");
    assert_eq!(container["reason"], "not alive: timed out waiting for a response", "{container}");
    let commands = std::fs::read_dir("/proc").unwrap().flatten();
    let asleep = commands.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    assert_eq!(
        asleep.filter(|line| line.starts_with(b"sleep\x00987\0")).count(),
        0,
        "no question is left over"
    );
}

#[test]
fn up_comes_back_when_all_are_ready_and_readiness_can_be_lost() {
    let Some(machine) = machine() else { return };
    let main = "sleep 2; touch /notes/ready; sleep 1000";
    let probe = "      readinessProbe: {exec: {command: [test, -e, /notes/ready]}, periodSeconds: 1, \
                 timeoutSeconds: 30, failureThreshold: 1}\n";
    machine.up_well(&group("calm", VOLUME, &[container("a", main, &format!("{NOTES}{probe}"))]));
    let ready = machine.data().join("groups/calm/volumes/notes/ready");
    assert!(ready.exists(), "up came back before it was ready");
    assert_eq!(machine.container("calm", "a")["ready"], true);
    std::fs::remove_file(&ready).unwrap();
    until("it is not ready any more", || machine.container("calm", "a")["ready"] == false);
    let container = machine.container("calm", "a");
    assert_eq!((&container["phase"], &container["restarts"]), (&"running".into(), &0.into()), "{container}");
    assert!(container["reason"].as_str().unwrap().starts_with("not ready: "), "{container}");
    let listed = crate::support::json(&machine.run(&["ps", "--format", "json"]));
    assert_eq!(listed["containers"][0]["ready"], false, "{listed}");
}

#[test]
fn up_comes_back_from_a_readiness_probe_that_never_succeeds() {
    let Some(machine) = machine() else { return };
    let probes = [
        ("exec: {command: [test, -e, /never]}", "readiness probe `test -e /never`: the command failed"),
        ("httpGet: {path: /health, port: 8000}", "readiness probe GET /health on port 8000: "),
    ];
    for (action, expected) in probes {
        let probe = format!("      readinessProbe: {{{action}, periodSeconds: 1, timeoutSeconds: 30}}\n");
        let file = machine.write(&group("never", "", &[container("a", "echo started; sleep 1000", &probe)]));
        let up = |more: &[&str]| {
            machine.run(&[&["up", "-f", &file, "-d", "--network", "none", "--timeout", "3s"], more].concat())
        };
        let output = up(&[]);
        let message = crate::support::shown(&output);
        assert_eq!(output.status.code(), Some(1), "{message}");
        assert!(message.contains("group never is not ready after 3s: container a: "), "{message}");
        assert!(message.contains(expected), "{message}");
        assert!(message.contains("a | started"), "its last lines are shown: {message}");
        assert!(!machine.data().join("groups/never").exists(), "nothing of it is left");
        let listed = crate::support::json(&machine.run(&["ps", "--all", "--format", "json"]));
        assert_eq!(listed["containers"].as_array().unwrap().len(), 0, "{listed}");

        let output = up(&["--keep"]);
        assert_eq!(output.status.code(), Some(1), "{}", crate::support::shown(&output));
        assert_eq!(machine.group("never")["state"], "running", "--keep leaves it running");
        machine.good(&["down", "never", "--time", "0"]);
    }
    let text = group(
        "slow",
        "  initContainers: [{name: i, properties: {image: ROOT, command: [sleep, '1000']}}]\n",
        &[container("a", "sleep 1000", "")],
    );
    let output =
        machine.run(&["up", "-f", &machine.write(&text), "-d", "--network", "none", "--timeout", "2s"]);
    let message = crate::support::shown(&output);
    assert!(message.contains("init container i is running"), "{message}");
    let output = machine.run(&["up", "-f", &machine.write(&text), "--timeout", "2s"]);
    assert_eq!(output.status.code(), Some(2), "{}", crate::support::shown(&output));
}

#[test]
fn a_group_that_keeps_failing_is_removed_with_its_last_lines_unless_it_is_to_be_kept() {
    let Some(machine) = machine() else { return };
    let file = machine.write(&group("failing", "", &[container("a", "echo why; exit 3", "")]));
    let up = |more: &[&str]| machine.run(&[&["up", "-f", &file, "-d", "--network", "none"], more].concat());
    let output = up(&[]);
    let message = crate::support::shown(&output);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(
        message.contains("group failing is not ready: a: exited with code 3; it restarts in"),
        "{message}"
    );
    assert!(
        message.contains("a | why")
            && message.contains("hint: the group was removed; --keep leaves it running"),
        "{message}"
    );
    assert!(!machine.data().join("groups/failing").exists(), "nothing of it is left");
    let output = up(&["--keep"]);
    let message = crate::support::shown(&output);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(
        message.contains("`cudock logs failing/a`") && message.contains("`cudock down failing`"),
        "{message}"
    );
    assert_eq!(machine.group("failing")["state"], "running", "--keep leaves it running");
    machine.good(&["down", "failing", "--time", "0"]);
    // One that has ended does nothing any more, and keeps its logs.
    let text = group("over", "  restartPolicy: Never\n", &[container("a", "echo why; exit 3", "")]);
    let output = machine.up(&text);
    assert_eq!(output.status.code(), Some(1), "{}", crate::support::shown(&output));
    assert_eq!(machine.group("over")["state"], "failed");
    assert_eq!(machine.logs("over/a"), "why\n");
}
