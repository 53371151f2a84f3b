//! Runs the command as a user types it.

pub mod schema;
mod turn;

use std::io::Write;
use std::process::{Command, Output, Stdio};

pub use turn::Turn;

/// The command with nothing of the caller's environment that could change its answers.
pub fn cudock(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cudock"));
    command
        .args(arguments)
        .env_remove("CUDOCK_FACTS")
        // Tables of whoever runs the tests must not change the answers.
        .env("XDG_CONFIG_HOME", "/nonexistent")
        // Neither must deployments.
        .env("CUDOCK_STATE", "/nonexistent")
        .env("CUDOCK_TODAY", "2026-11-15")
        .env("NO_COLOR", "1")
        .stdin(Stdio::null());
    command
}

pub fn run(arguments: &[&str]) -> Output {
    schema::output(&mut cudock(arguments))
}

pub fn run_with_input(arguments: &[&str], input: &[u8]) -> Output {
    let mut command = cudock(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The command may refuse its input and close it: that is for the test to judge.
    child.stdin.take().unwrap().write_all(input).ok();
    let output = child.wait_with_output().unwrap();
    schema::check(&command, &output);
    output
}

/// Exit code, standard output and standard error in one text, as a terminal would show them.
pub fn shown(output: &Output) -> String {
    let code = output.status.code().map_or_else(|| "none".to_owned(), |code| code.to_string());
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let talk = if err.is_empty() { String::new() } else { format!("----- stderr -----\n{err}") };
    format!("exit code {code}\n----- stdout -----\n{out}{talk}")
}

pub fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}\n{}", shown(output)))
}

pub fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}

/// A zip file of stored members.
pub fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    let number = |value: usize, size: usize| value.to_le_bytes()[..size].to_vec();
    let crc = |bytes: &[u8]| {
        !bytes.iter().fold(!0_u32, |sum, byte| {
            (0..8).fold(
                sum ^ u32::from(*byte),
                |sum, _| if sum & 1 == 1 { sum >> 1 ^ 0xEDB8_8320 } else { sum >> 1 },
            )
        })
    };
    let (mut bytes, mut table) = (Vec::new(), Vec::new());
    for (name, content) in members {
        let common = [
            vec![20, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            crc(content).to_le_bytes().to_vec(),
            number(content.len(), 4),
            number(content.len(), 4),
            number(name.len(), 2),
            vec![0, 0],
        ]
        .concat();
        table.extend(
            [
                b"PK\x01\x02".to_vec(),
                vec![20, 0],
                common.clone(),
                vec![0; 10],
                number(bytes.len(), 4),
                name.as_bytes().to_vec(),
            ]
            .concat(),
        );
        bytes.extend([b"PK\x03\x04".to_vec(), common, name.as_bytes().to_vec(), content.to_vec()].concat());
    }
    let end = [
        b"PK\x05\x06\0\0\0\0".to_vec(),
        number(members.len(), 2),
        number(members.len(), 2),
        number(table.len(), 4),
        number(bytes.len(), 4),
        vec![0, 0],
    ];
    [bytes, table, end.concat()].concat()
}
