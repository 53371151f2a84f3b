//! Credential helpers: programs named `docker-credential-…` that answer for a host.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use cudock_base::files::is_executable;
use cudock_base::{Secret, bounded_output};
use serde::Deserialize;

use super::credential::Credential;

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
    /// The helper's credential for this host; none if it has none. Errors never quote its output.
    pub(crate) fn ask(&self, name: &str, host: &str) -> Result<Option<Credential>, String> {
        if !name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.')) {
            return Err("its name is not one of a program".to_owned());
        }
        let program = self.program(name).ok_or_else(|| "it is not on PATH".to_owned())?;
        let mut command = Command::new(program);
        let output = bounded_output(command.arg("get"), host.as_bytes(), self.timeout, LARGEST_ANSWER)
            .map_err(|error| error.to_string())?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stdout).to_ascii_lowercase();
            return if text.contains("credentials not found") || text.contains("no credentials") {
                Ok(None)
            } else {
                Err(format!("it ended with {}", output.status))
            };
        }
        let answer: Answer = serde_json::from_slice(&output.stdout)
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
        let mut candidates =
            self.directories.iter().map(|directory| directory.join(format!("{PREFIX}{name}")));
        candidates.find(|path| is_executable(path))
    }
}
