//! Terminals in a container over web sockets: where they are, and what their messages mean.

use cudock_base::Secret;
use serde_json::{Value, json};

use crate::call::Call;
use crate::deployment::DeploymentIdentity;

/// The size of a terminal in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalSize {
    pub columns: u16,
    pub rows: u16,
}

/// The terminal of a program that was started next to a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terminal {
    /// Address of the web socket. It may grant access by itself.
    pub address: Secret,
    /// Token for the request.
    pub token: Option<Secret>,
    /// Password, sent as the first message.
    pub password: Option<Secret>,
    pub protocol: TerminalProtocol,
}

/// The form of a terminal's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalProtocol {
    /// Container Instances: bytes as they are. The size is that of the request, and cannot be changed.
    Plain,
    /// Container Apps: two bytes identify the type of the rest.
    Channels,
}

/// A message from a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalOutput<'m> {
    Bytes(&'m [u8]),
    /// A notice from the service, such as that it is connecting.
    Info(String),
    /// Why the program could not be started.
    Error(String),
    /// The program has ended.
    End,
}

impl TerminalProtocol {
    /// The message for what was typed.
    pub fn input(self, typed: &[u8]) -> Vec<u8> {
        match self {
            Self::Plain => typed.to_vec(),
            Self::Channels => [&[0, 0], typed].concat(),
        }
    }

    /// The message for another size, where there is one.
    pub fn resize(self, size: TerminalSize) -> Option<Vec<u8>> {
        let TerminalSize { columns, rows } = size;
        match self {
            Self::Plain => None,
            Self::Channels => {
                Some([&[0, 4], json!({"Width": columns, "Height": rows}).to_string().as_bytes()].concat())
            }
        }
    }

    pub fn output(self, message: &[u8]) -> TerminalOutput<'_> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        match (self, message) {
            (Self::Plain, bytes) | (Self::Channels, [0, 1 | 2, bytes @ ..]) => TerminalOutput::Bytes(bytes),
            (Self::Channels, []) => TerminalOutput::End,
            (Self::Channels, [1, bytes @ ..]) => TerminalOutput::Info(text(bytes)),
            (Self::Channels, [2, bytes @ ..]) => TerminalOutput::Error(reason(&text(bytes))),
            // A channel of a newer version.
            (Self::Channels, [..]) => TerminalOutput::Bytes(&[]),
        }
    }
}

/// The message in `{"Error":{"Code":…,"Message":…}}`, or without the outer object.
fn reason(text: &str) -> String {
    let error: Value = serde_json::from_str(text).unwrap_or_default();
    let message = error.pointer("/Error/Message").or_else(|| error.get("Message")).and_then(Value::as_str);
    message.unwrap_or(text).to_owned()
}

impl DeploymentIdentity {
    /// The requests that start a program with a terminal, or find out where one can be started. Services take the name of
    /// the program and no arguments.
    pub fn terminal_calls(&self, program: &str, size: TerminalSize) -> Vec<Call> {
        self.backend().terminal_calls(self, program, size)
    }

    /// The terminal according to the responses to [`Self::terminal_calls`] and
    /// [`Self::log_follow_up_calls`]; none if the container does not run.
    pub fn terminal(&self, program: &str, responses: &[Option<Value>]) -> Option<Terminal> {
        self.backend().terminal(program, responses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_container_apps_have_channels() {
        let protocol = TerminalProtocol::Channels;
        assert_eq!(protocol.input(b"ls\n"), b"\0\0ls\n");
        let resize = protocol.resize(TerminalSize { columns: 80, rows: 24 }).unwrap();
        assert_eq!(resize.split_at(2).0, [0, 4]);
        let size: Value = serde_json::from_slice(resize.split_at(2).1).unwrap();
        assert_eq!(size, json!({"Width": 80, "Height": 24}));
        let cases: [(&[u8], TerminalOutput<'_>); 9] = [
            (b"\0\x01out", TerminalOutput::Bytes(b"out")),
            (b"\0\x02err", TerminalOutput::Bytes(b"err")),
            (b"\x01Connecting...\n", TerminalOutput::Info("Connecting...".to_owned())),
            (
                b"\x02{\"Error\":{\"Code\":\"C\",\"Message\":\"why\"}}",
                TerminalOutput::Error("why".to_owned()),
            ),
            (b"\x02{\"Code\":\"C\",\"Message\":\"why\"}", TerminalOutput::Error("why".to_owned())),
            (b"\x02not JSON", TerminalOutput::Error("not JSON".to_owned())),
            (b"", TerminalOutput::End),
            (b"\0", TerminalOutput::Bytes(b"")),
            (b"\0\x07new", TerminalOutput::Bytes(b"")),
        ];
        for (message, output) in cases {
            assert_eq!(protocol.output(message), output, "{message:?}");
        }
    }

    #[test]
    fn messages_of_container_instances_are_bytes() {
        let protocol = TerminalProtocol::Plain;
        assert_eq!(protocol.input(b"ls\n"), b"ls\n");
        assert_eq!(protocol.resize(TerminalSize { columns: 80, rows: 24 }), None);
        assert_eq!(protocol.output(b"\0\x01"), TerminalOutput::Bytes(b"\0\x01"));
    }
}
