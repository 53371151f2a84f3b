//! Input and output of a container.

use std::io::{Read, Write};
use std::process::Stdio;

use cudock_base::Digest;

use super::machine::{machine, run_arguments};
use crate::support::{code, shown};

#[test]
fn both_outputs_come_out_apart() {
    let Some(machine) = machine() else { return };
    let output = machine.sh(&[], "echo data; echo talk >&2");
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b"data\n"[..], &b"talk\n"[..]));
}

#[test]
fn standard_input_goes_in_only_with_interactive() {
    let Some(machine) = machine() else { return };
    for (options, expected) in [(&["--rm", "-i"][..], "typed\n"), (&["--rm"], "")] {
        let mut command = machine.command(&run_arguments(options, &["cat"]));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // Without -i nobody may be there to read it.
        child.stdin.take().unwrap().write_all(b"typed\n").ok();
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{options:?}: {}", shown(&output));
    }
}

#[test]
fn a_hundred_megabytes_come_through_unchanged() {
    let Some(machine) = machine() else { return };
    let bytes = noise(100 << 20);
    let expected = Digest::sha256_of(&bytes).to_string();
    let mut command = machine.command(&run_arguments(&["--rm", "-i"], &["cat"]));
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(&bytes));
    let mut came = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut came).unwrap();
    writer.join().unwrap().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), 0, "{}", shown(&output));
    assert_eq!(came.len(), 100 << 20);
    assert_eq!(Digest::sha256_of(&came).to_string(), expected);
}

#[test]
fn the_last_output_of_a_program_is_not_lost() {
    let Some(machine) = machine() else { return };
    for _ in 0..10 {
        let output = machine.sh(&[], "seq 1 20000; echo last >&2; exit 4");
        assert_eq!(code(&output), 4);
        assert!(output.stdout.ends_with(b"\n19999\n20000\n"), "{} bytes", output.stdout.len());
        assert_eq!(output.stderr, b"last\n");
    }
}

#[test]
fn outputs_to_dev_null_can_be_written_to() {
    let Some(machine) = machine() else { return };
    let mut command = machine.command(&run_arguments(&["--rm"], &["sh", "-c", "echo out && echo err >&2"]));
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn a_program_finds_no_descriptor_but_its_own_three() {
    let Some(machine) = machine() else { return };
    // The fourth is the directory that `ls` reads.
    assert_eq!(machine.says(&[], "ls /proc/self/fd"), "0\n1\n2\n3\n");
    machine.start("open", &[], "sleep 1000");
    assert_eq!(machine.good(&["exec", "open", "ls", "/proc/self/fd"]), "0\n1\n2\n3\n");
}

/// Bytes in no order, with line ends and without, the same at every run.
fn noise(count: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut bytes = Vec::with_capacity(count + 8);
    while bytes.len() < count {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend(state.to_le_bytes());
    }
    bytes.truncate(count);
    bytes
}
