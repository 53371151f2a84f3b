//! Containers in lists, by their names, waited for and removed.

use serde_json::json;

use super::images::Image;
use super::machine::{machine, run_arguments, until};
use crate::support::{self, code, shown};

#[test]
fn a_list_for_people() {
    let Some(machine) = machine() else { return };
    Image::of(&machine).write("app");
    let run = |name: &str, more: &[&str]| {
        machine.good(&[&["run", "-d", "--network", "none", "--name", name], more].concat());
    };
    let mut lists = vec![machine.good(&["ps"])];
    run("service", &["--publish", "127.0.0.1:0:80", "oci:app", "sleep", "1000"]);
    run("failed", &["oci:app", "sh", "-c", "exit 3"]);
    machine.good(&["wait", "failed"]);
    lists.push(machine.good(&["ps"]));
    lists.push(machine.good(&["ps", "--all"]));
    insta::with_settings!({filters => vec![
        (r"\b[0-9a-f]{12}\b", "[ID]"),
        (r"127\.0\.0\.1:\d+", "127.0.0.1:[PORT]"),
        (r"running \d+ s", "running [TIME]"),
        // Columns are as wide as the port is long.
        (r" {2,}", "  "),
    ]}, { insta::assert_snapshot!(lists.join("\n")) });
}

#[test]
fn a_list_for_programs() {
    let Some(machine) = machine() else { return };
    assert_eq!(
        support::json(&machine.call(&["ps", "--format", "json"])),
        json!({"schema": 1, "deployments": [], "containers": []})
    );
    let id = machine.start("one", &["--label", "team=vision"], "exit 5");
    machine.good(&["wait", "one"]);
    let listed = machine.list();
    assert_eq!(listed.len(), 1);
    let one = &listed[0];
    assert_eq!((&one["id"], &one["name"], &one["state"]), (&json!(id), &json!("one"), &json!("exited")));
    assert_eq!(
        (&one["exit_code"], &one["restarts"], &one["out_of_memory"]),
        (&json!(5), &json!(0), &json!(false))
    );
    assert_eq!(one["command"], "sh -c exit 5");
    assert!(one["created"].as_u64().unwrap() <= one["started"].as_u64().unwrap());
    assert_eq!(machine.good(&["ps", "--all", "--quiet"]), format!("{id}\n"));
    assert_eq!(machine.good(&["ps", "--quiet"]), "", "one that ended is not listed unasked");
    assert_eq!(machine.inspect("one")["config"]["labels"], json!({"team": "vision"}));
}

#[test]
fn names_lead_to_containers_and_so_do_beginnings_of_ids() {
    let Some(machine) = machine() else { return };
    let id = machine.start("named", &[], "echo spoken; exit 0");
    machine.good(&["wait", "named"]);
    for word in ["named", &id, &id[..12], &id[..6]] {
        assert_eq!(machine.logs(word), "spoken\n", "{word}");
    }
    for verb in ["logs", "stop", "rm", "wait", "inspect-container"] {
        let message = machine.bad(2, &[verb, "nobody"]);
        assert!(message.contains("error: no container `nobody`"), "{verb}: {message}");
        assert!(message.contains("hint: `cudock ps --all` lists them"), "{verb}: {message}");
    }
}

#[test]
fn a_name_is_given_once() {
    let Some(machine) = machine() else { return };
    let id = machine.start("taken", &[], "exit 0");
    machine.good(&["wait", "taken"]);
    for detach in [&["--name", "taken"][..], &["--name", "taken", "-d"], &["--name", "taken", "--rm"]] {
        let message = machine.bad(2, &run_arguments(detach, &["true"]));
        assert!(
            message.contains(&format!("error: the name `taken` is in use by container {}", &id[..12])),
            "{message}"
        );
        assert!(message.contains("hint: cudock rm taken, or choose another name"), "{message}");
    }
    assert_eq!(machine.list().len(), 1);
    machine.good(&["rm", "taken"]);
    machine.start("taken", &[], "exit 0");
}

#[test]
fn one_name_is_given_once_when_many_ask_at_the_same_time() {
    let Some(machine) = machine() else { return };
    let arguments = run_arguments(&["--name", "wanted", "-d"], &["sleep", "1000"]);
    let children: Vec<_> = (0..8)
        .map(|_| {
            let mut command = machine.command(&arguments);
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let codes: Vec<i32> =
        children.into_iter().map(|child| code(&child.wait_with_output().unwrap())).collect();
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1, "{codes:?}");
    assert_eq!(machine.list().len(), 1);
}

#[test]
fn one_that_runs_is_not_removed_unless_forced() {
    let Some(machine) = machine() else { return };
    machine.start("busy", &[], "sleep 1000");
    let message = machine.bad(2, &["rm", "busy"]);
    assert!(message.contains("error: container busy is running, not stopped"), "{message}");
    assert!(message.contains("hint: ") && message.contains("--force"), "{message}");
    assert_eq!(machine.status("busy")["state"], "running");
    assert_eq!(machine.good(&["rm", "-f", "busy"]), "busy\n");
    assert_eq!(machine.list().len(), 0);
}

#[test]
fn all_are_removed_at_once() {
    let Some(machine) = machine() else { return };
    machine.start("a", &[], "exit 0");
    machine.start("b", &[], "sleep 1000");
    machine.good(&["wait", "a"]);
    assert_eq!(machine.good(&["rm", "--all", "--force"]), "a\nb\n");
    assert_eq!(machine.list().len(), 0);
    assert_eq!(machine.good(&["rm", "--all"]), "", "and none is not a fault");
}

#[test]
fn waiting_prints_what_each_ended_with() {
    let Some(machine) = machine() else { return };
    machine.start("a", &[], "sleep 0.5; exit 3");
    machine.start("b", &[], "exit 4");
    assert_eq!(machine.good(&["wait", "a", "b"]), "3\n4\n");
    let known = support::json(&machine.call(&["wait", "a", "b", "--format", "json"]));
    assert_eq!(known, json!({"schema": 1, "exit_codes": {"a": 3, "b": 4}}));
}

#[test]
fn one_that_is_to_be_removed_is_gone_after_its_end() {
    let Some(machine) = machine() else { return };
    machine.sh(&[], "echo x > /new");
    assert_eq!(machine.list().len(), 0);
    machine.start("short", &["--rm"], "sleep 0.3");
    until("it is gone", || machine.list().is_empty());
}

#[test]
fn several_are_inspected_together() {
    let Some(machine) = machine() else { return };
    machine.start("a", &[], "exit 0");
    machine.start("b", &[], "exit 0");
    let both = support::json(&machine.call(&["inspect-container", "a", "b"]))["containers"].clone();
    assert_eq!((&both[0]["config"]["name"], &both[1]["config"]["name"]), (&json!("a"), &json!("b")));
}

#[test]
fn without_a_name_a_container_has_one_of_its_image() {
    let Some(machine) = machine() else { return };
    let output = machine.call(&run_arguments(&["-d"], &["true"]));
    let id = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(machine.list()[0]["name"], format!("root-{}", &id[..6]), "{}", shown(&output));
}

#[test]
fn a_command_forges_no_row_of_a_list_and_no_line_of_an_error() {
    let Some(machine) = machine() else { return };
    let forged = "sleep\n0123456789ab  forged  app  sh  running\u{1b}[2K\u{202e}";
    let config = serde_json::json!({"Entrypoint": ["sh", "-c", "exec sleep 1000", forged]});
    Image::of(&machine).config(config).write("app");
    machine.good(&["run", "-d", "--network", "none", "--name", "real", "oci:app"]);
    until("it sleeps", || machine.good(&["top", "real"]).contains("sleep 1000"));
    for arguments in [&["ps"][..], &["ps", "--all"], &["top", "real"]] {
        let listed = machine.good(arguments);
        assert_eq!(listed.lines().count(), 2, "{arguments:?}: {listed:?}");
        assert!(!listed.contains(['\u{1b}', '\u{202e}']), "{arguments:?}: {listed:?}");
    }
    let config = serde_json::json!({"Entrypoint": ["no\nerror: forged\u{1b}[2K"], "User": "0"});
    Image::of(&machine).config(config).write("bad");
    let message = machine.bad(127, &["run", "--rm", "--network", "none", "oci:bad"]);
    assert!(
        !message.lines().any(|line| line.starts_with("error: forged")) && !message.contains('\u{1b}'),
        "{message:?}"
    );
}
