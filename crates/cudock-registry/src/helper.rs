//! Credential helpers: programs named `docker-credential-…` that answer for a host.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use cudock_base::Secret;
use serde::Deserialize;

use crate::credentials::Credential;

pub(crate) const PREFIX: &str = "docker-credential-";
const LARGEST_ANSWER: u64 = 64 * 1024;
/// The user name by which a helper says that the secret is an identity token.
const TOKEN_USER: &str = "<token>";

/// Where helpers are looked for and how long they may take.
#[derive(Debug, Clone, Default)]
pub(crate) struct Helpers {
    pub(crate) directories: Vec<PathBuf>,
    pub(crate) timeout: Duration,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    username: String,
    secret: Secret,
}

impl Helpers {
    /// What the helper has for this host; nothing if it says that it has nothing. Errors never quote its answer.
    pub(crate) fn ask(&self, name: &str, host: &str) -> Result<Option<Credential>, String> {
        if !name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.')) {
            return Err("its name is not one of a program".to_owned());
        }
        let program = self.program(name).ok_or_else(|| "it is not on PATH".to_owned())?;
        let child = Command::new(program)
            .arg("get")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("it cannot be started: {error}"))?;
        let (status, answer) = self.converse(child, host)?;
        if !status.success() {
            let text = String::from_utf8_lossy(&answer).to_ascii_lowercase();
            return if text.contains("credentials not found") || text.contains("no credentials") {
                Ok(None)
            } else {
                Err(format!("it ended with {status}"))
            };
        }
        let answer: Answer = serde_json::from_slice(&answer)
            .map_err(|_| "its answer is not Username and Secret".to_owned())?;
        if answer.secret.is_empty() {
            return Ok(None);
        }
        Ok(Some(if answer.username == TOKEN_USER {
            Credential::IdentityToken(answer.secret)
        } else {
            Credential::Password { user: answer.username, password: answer.secret }
        }))
    }

    fn program(&self, name: &str) -> Option<PathBuf> {
        self.directories.iter().map(|directory| directory.join(format!("{PREFIX}{name}"))).find(|path| {
            path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
        })
    }

    /// Writes the host, reads a bounded answer and waits a bounded time; a helper that takes longer is ended.
    fn converse(&self, mut child: Child, host: &str) -> Result<(ExitStatus, Vec<u8>), String> {
        let (sender, receiver) = mpsc::channel();
        if let Some(stdout) = child.stdout.take() {
            // The thread ends with the pipe, which a grandchild may hold; nobody waits for it.
            thread::spawn(move || {
                let mut answer = Vec::new();
                let read = stdout.take(LARGEST_ANSWER + 1).read_to_end(&mut answer);
                let _ = sender.send(read.map(|_| answer));
            });
        }
        if let Some(mut stdin) = child.stdin.take() {
            // A helper that answers without reading has closed the pipe, and that is its affair.
            let _ = stdin.write_all(host.as_bytes());
        }
        let deadline = Instant::now() + self.timeout;
        let answer = match receiver.recv_timeout(self.timeout) {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return ended(child, format!("its answer cannot be read: {error}")),
            Err(_) => return ended(child, format!("it did not answer in {} s", self.timeout.as_secs_f32())),
        };
        if u64::try_from(answer.len()).is_ok_and(|length| length > LARGEST_ANSWER) {
            return ended(child, "its answer is too long".to_owned());
        }
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return Ok((status, answer)),
                Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(5)),
                Ok(None) => return ended(child, "it answered and did not end".to_owned()),
                Err(error) => return ended(child, format!("it cannot be waited for: {error}")),
            }
        }
    }
}

fn ended<T>(mut child: Child, reason: String) -> Result<T, String> {
    // It may have ended by itself meanwhile.
    let _ = child.kill();
    let _ = child.wait();
    Err(reason)
}
