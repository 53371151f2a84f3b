//! Invalid files and arguments: all faults are reported at once, each with its position. These need no rights.

use std::fs;

use crate::support::{cudock, shown};

fn up(text: &str, arguments: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("group.yaml"), text).unwrap();
    let mut command = cudock(&["up"]);
    command.args(arguments).current_dir(directory.path()).env("CUDOCK_DATA", directory.path().join("data"));
    let output = command.output().unwrap();
    assert!(!directory.path().join("data").exists(), "nothing was made");
    shown(&output)
}

#[test]
fn all_faults_of_a_file_are_reported_at_once_each_with_its_position() {
    let text = "name: bad
properties:
  restartPolicy: Sometimes
  containers:
  - name: a
    properties:
      imgae: x
      ports: [{port: 0}]
      volumeMounts: [{name: nosuch, mountPath: data}]
      environmentVariables: [{name: TOKEN, secureValue: [hidden]}]
";
    insta::assert_snapshot!(up(text, &["-f", "group.yaml"]));
}

#[test]
fn a_file_that_is_not_yaml_is_reported_with_its_line() {
    insta::assert_snapshot!(up("name: bad\nproperties:\n  containers: [{\n", &["."]));
}

#[test]
fn a_directory_with_nothing_to_run_and_meaningless_arguments_are_bad_calls() {
    let good = "name: good\nproperties:\n  containers:\n  - {name: a, properties: {image: x}}\n";
    insta::assert_snapshot!(
        [
            up(good, &["nosuch"]),
            up(good, &["--name", "a/b"]),
            up(good, &["--volume", "x"]),
            up(good, &["--volume", "x=."]),
            up(good, &["--publish", "80:x"]),
            up(good, &["--network", "host", "--publish", "80:80"]),
        ]
        .join("\n")
    );
}

#[test]
fn the_port_of_a_project_is_no_word_for_a_group() {
    let good = "name: good\nproperties:\n  containers:\n  - {name: a, properties: {image: x}}\n";
    let message = up(good, &[".", "--port", "8000"]);
    assert!(message.contains("exit code 2") && message.contains("-p HOST:CONTAINER"), "{message}");
}
