//! A group by its name, where a container could be named.

use super::machine::{container, group, machine, until};
use crate::support::shown;

#[test]
fn logs_wait_and_exec_take_a_groups_name() {
    let Some(machine) = machine() else { return };
    let both = [
        container("first", "echo one; sleep 0.5; echo three >&2; sleep 1", ""),
        container("second", "sleep 0.2; echo two; sleep 1; exit 7", ""),
    ];
    machine.up_well(&group("pair", "  restartPolicy: Never\n", &both));
    let output = machine.run(&["exec", "pair", "true"]);
    assert_eq!(output.status.code(), Some(2), "{}", shown(&output));
    assert!(shown(&output).contains("hint: pair/first, pair/second"), "{}", shown(&output));
    let followed = machine.run(&["logs", "-f", "pair"]);
    let stdout = String::from_utf8_lossy(&followed.stdout).into_owned();
    assert_eq!(stdout, "first  | one\nsecond | two\n", "{}", shown(&followed));
    assert_eq!(String::from_utf8_lossy(&followed.stderr), "first  | three\n");
    assert_eq!(machine.good(&["wait", "pair"]), "7\n");
    assert_eq!(machine.good(&["logs", "--tail", "1", "pair"]).lines().count(), 1);

    machine.up_well(&group("alone", "", &[container("only", "echo here; sleep 1000", "")]));
    assert_eq!(machine.good(&["exec", "alone", "echo", "inside"]), "inside\n");
    until("it spoke", || machine.good(&["logs", "alone"]) == "only | here\n");
    for verb in ["stop", "kill", "top", "inspect-container"] {
        let output = machine.run(&[verb, "alone"]);
        assert_eq!(output.status.code(), Some(2), "{}", shown(&output));
        assert!(shown(&output).contains("alone is a group"), "{}", shown(&output));
        assert!(shown(&output).contains("cudock down alone"), "{}", shown(&output));
    }
    let output = machine.run(&["wait", "nobody"]);
    assert!(shown(&output).contains("no container `nobody`"), "{}", shown(&output));
}
