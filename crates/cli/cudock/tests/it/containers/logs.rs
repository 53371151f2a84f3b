//! Logs of containers.

use std::io::Read;
use std::process::Stdio;

use super::machine::{machine, run_arguments, until};
use crate::support::{code, shown};

#[test]
fn what_was_written_is_there_after_the_end_and_apart() {
    let Some(machine) = machine() else { return };
    machine.start("dead", &[], "echo data; echo talk >&2; echo -n unfinished; exit 1");
    machine.good(&["wait", "dead"]);
    let output = machine.call(&["logs", "dead"]);
    assert_eq!(
        (output.stdout.as_slice(), output.stderr.as_slice()),
        (&b"data\nunfinished"[..], &b"talk\n"[..])
    );
}

#[test]
fn the_foreground_is_logged_too() {
    let Some(machine) = machine() else { return };
    let output = machine.call(&run_arguments(&["--name", "seen"], &["echo", "twice"]));
    assert_eq!(output.stdout, b"twice\n");
    assert_eq!(machine.logs("seen"), "twice\n");
}

#[test]
fn following_ends_with_the_container_and_misses_nothing() {
    let Some(machine) = machine() else { return };
    machine.start(
        "talker",
        &[],
        "echo first; while test ! -e /go; do sleep 0.05; done; seq 1 5000; echo last >&2; exit 2",
    );
    let mut command = machine.command(&["logs", "--follow", "talker"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 6];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    assert_eq!(&first, b"first\n", "it is seen while it runs");
    assert!(child.try_wait().unwrap().is_none(), "and waits for more");
    machine.good(&["exec", "talker", "touch", "/go"]);
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), 0, "{}", shown(&output));
    let expected: String = (1..=5000).map(|number| format!("{number}\n")).collect();
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    assert_eq!(output.stderr, b"last\n");
}

#[test]
fn only_the_last_lines_with_tail() {
    let Some(machine) = machine() else { return };
    machine.start("counter", &[], "seq 1 100");
    machine.good(&["wait", "counter"]);
    assert_eq!(machine.good(&["logs", "--tail", "3", "counter"]), "98\n99\n100\n");
    assert_eq!(machine.good(&["logs", "--tail", "0", "counter"]), "");
    assert_eq!(machine.good(&["logs", "--tail", "1000", "counter"]).lines().count(), 100);
}

#[test]
fn each_line_has_its_time_with_timestamps() {
    let Some(machine) = machine() else { return };
    machine.start("timed", &[], "echo one; sleep 1; echo two");
    machine.good(&["wait", "timed"]);
    let stdout = machine.good(&["logs", "--timestamps", "timed"]);
    let mut times = Vec::new();
    for (line, word) in stdout.lines().zip(["one", "two"]) {
        let (time, text) = line.split_once(' ').unwrap();
        assert_eq!(text, word);
        assert!(time.len() >= 20 && time.ends_with('Z') && time.as_bytes()[10] == b'T', "{time}");
        times.push(time.to_owned());
    }
    assert!(times.len() == 2 && times[0] < times[1], "{times:?}");
}

#[test]
fn lines_come_out_whole_whatever_the_pieces_they_were_written_in() {
    let Some(machine) = machine() else { return };
    let script = "for i in 1 2 3; do echo -n $i; sleep 0.1; done; echo; head -c 40000 /dev/zero | tr '\\0' x; echo; echo end";
    machine.start("pieces", &[], script);
    machine.good(&["wait", "pieces"]);
    let stdout = machine.good(&["logs", "pieces"]);
    assert_eq!(stdout, format!("123\n{}\nend\n", "x".repeat(40_000)));
    let timed = machine.good(&["logs", "--timestamps", "pieces"]);
    assert_eq!(timed.lines().count(), 3, "a long line has one time: {timed:.300}");
    assert_eq!(machine.good(&["logs", "--tail", "2", "pieces"]).lines().count(), 2);
}

#[test]
fn a_log_that_grew_large_keeps_its_end() {
    let Some(machine) = machine() else { return };
    let script = "yes 'a line of forty letters, to fill the disk.' | head -n 2500000; echo the end";
    machine.start("large", &[], script);
    machine.good(&["wait", "large"]);
    assert_eq!(machine.good(&["logs", "--tail", "1", "large"]), "the end\n");
    let directory = machine.inspect("large")["directory"].as_str().unwrap().to_owned();
    let sizes = std::fs::read_dir(directory)
        .unwrap()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("log.jsonl"));
    let total: u64 = sizes.map(|entry| entry.metadata().unwrap().len()).sum();
    assert!(total < 140 << 20, "{total} bytes are kept");
}

#[test]
fn logs_of_one_that_was_removed_meanwhile_end() {
    let Some(machine) = machine() else { return };
    machine.start("gone", &[], "echo here; sleep 1000");
    machine.until_logged("gone", "here");
    let mut child = machine
        .command(&["logs", "-f", "gone"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 5];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    machine.good(&["rm", "--force", "gone"]);
    until("it ends", || child.try_wait().unwrap().is_some());
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), 0, "{}", shown(&output));
}

#[test]
fn a_log_is_as_large_as_its_options_allow() {
    let Some(machine) = machine() else { return };
    let options = ["--log-driver", "json-file", "--log-opt", "max-size=8k", "--log-opt", "max-file=3"];
    let id = machine.start("talker", &options, "seq 1 2000");
    machine.good(&["wait", "talker"]);
    let directory = machine.data().join("containers").join(&id);
    let sizes: Vec<u64> = std::fs::read_dir(directory)
        .unwrap()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("log.jsonl"))
        .map(|entry| entry.metadata().unwrap().len())
        .collect();
    assert!(sizes.len() == 3 && sizes.iter().all(|size| *size <= 8192), "{sizes:?}");
    let log = machine.logs("talker");
    let lines: Vec<u32> = log.lines().map(|line| line.parse().unwrap()).collect();
    let expected: Vec<u32> = (lines[0]..=2000).collect();
    assert!(lines == expected && lines[0] > 1000, "the last lines, in order: {}", lines[0]);
}

#[test]
fn the_logs_of_a_container_without_a_log_are_an_error() {
    let Some(machine) = machine() else { return };
    let output =
        machine.call(&run_arguments(&["--name", "silent", "--log-driver", "none"], &["echo", "seen"]));
    assert_eq!(output.stdout, b"seen\n", "{}", shown(&output));
    let directory = machine.inspect("silent")["directory"].as_str().unwrap().to_owned();
    assert!(!std::path::Path::new(&directory).join("log.jsonl").exists());
    let message = machine.bad(2, &["logs", "silent"]);
    assert!(
        message.contains("container silent has no log: it was started with --log-driver none"),
        "{message}"
    );
}
