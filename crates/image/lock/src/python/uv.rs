//! Runs uv, which chooses the versions of Python packages.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use cudock_base::{Arch, Environment, FileError, Secret, bounded_output, files, text};
use cudock_facts::Facts;
use cudock_http::RetryPolicy;
use cudock_pypi::runtime::Installer;
use cudock_pypi::url::PackageSource;

use super::tags::{PythonPlatform, normalized};
use crate::{LockError, PackageFetcher, Upgrade};

/// The newest glibc that uv knows by a name of its own.
const MAX_GLIBC: u32 = 40;
const TIMEOUT: Duration = Duration::from_secs(600);
const MAX_OUTPUT: u64 = 64 << 20;
/// Lines of uv's explanation that are shown.
const MAX_LINES: usize = 12;

/// A version that uv chose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pin {
    pub(super) name: String,
    pub(super) version: String,
    /// Hashes of all its files.
    pub(super) hashes: Vec<String>,
    /// The packages and files that require it.
    pub(super) reason: String,
}

pub(super) struct Uv<'a> {
    program: PathBuf,
    fetcher: &'a PackageFetcher,
}

impl<'a> Uv<'a> {
    /// The uv in `PATH`, else the pinned one, which is installed from the index.
    pub(super) fn find(
        environment: &Environment,
        facts: &Facts,
        fetcher: &'a PackageFetcher,
    ) -> Result<Self, LockError> {
        let directories = environment.program_directories();
        let found = directories.iter().map(|directory| directory.join("uv"));
        if let Some(program) = found.into_iter().find(|path| files::is_executable(path)) {
            return Ok(Self { program, fetcher });
        }
        let cpu = Arch::CURRENT;
        let wheel = facts.runtimes().newest("uv", cpu).ok_or_else(|| LockError::Uv {
            action: "is not in PATH",
            reason: format!("no pinned wheel for {cpu}"),
        })?;
        let installer = Installer {
            settings: fetcher.settings().clone(),
            store: fetcher.store().clone(),
            offline: false,
            progress: Arc::clone(fetcher.progress()),
            retries: RetryPolicy::default(),
        };
        let program = installer.install(wheel)?.found.library;
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&program, mode).map_err(FileError::at("make executable", &program))?;
        Ok(Self { program, fetcher })
    }

    /// The versions for requirement files, with those of `known` where they still fit.
    pub(super) fn compile(
        &self,
        directory: &Path,
        sources: &[PathBuf],
        platform: PythonPlatform,
        known: &BTreeMap<String, String>,
        upgrade: &Upgrade,
    ) -> Result<Vec<Pin>, LockError> {
        let temporary = self.fetcher.scratch()?;
        let output = temporary.path().join("pinned.txt");
        let pins: String = known.iter().map(|(name, version)| format!("{name}=={version}\n")).collect();
        std::fs::write(&output, pins).map_err(FileError::at("write", &output))?;
        let mut command = self.command(directory);
        command.args(["pip", "compile", "--no-header", "--generate-hashes", "--only-binary", ":all:"]);
        command.args(["--annotation-style", "split", "--no-strip-extras"]);
        command.arg("--python-version").arg(format!("3.{}", platform.python));
        let glibc = platform.glibc.min(MAX_GLIBC);
        command.arg("--python-platform").arg(format!("{}-manylinux_2_{glibc}", platform.arch.name()));
        match upgrade {
            Upgrade::No => {}
            Upgrade::All => {
                command.arg("--upgrade");
            }
            Upgrade::Packages(names) => {
                for name in names {
                    command.args(["--upgrade-package", name]);
                }
            }
        }
        command.arg("--output-file").arg(&output).args(sources);
        self.run(&mut command)?;
        let text = std::fs::read_to_string(&output).map_err(FileError::at("read", &output))?;
        Ok(parse(&text))
    }

    /// The requirements of a `uv.lock`, as a requirement file.
    pub(super) fn export(&self, directory: &Path) -> Result<String, LockError> {
        let mut command = self.command(directory);
        command.args(["export", "--frozen", "--no-dev", "--no-emit-project", "--no-header", "--no-annotate"]);
        command.args(["--format", "requirements-txt"]);
        self.run(&mut command)
    }

    fn command(&self, directory: &Path) -> Command {
        let settings = self.fetcher.settings();
        let mut command = Command::new(&self.program);
        command.current_dir(directory).args(["--no-progress", "--color", "never", "--no-python-downloads"]);
        for name in ["UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_INDEX", "UV_DEFAULT_INDEX", "UV_FIND_LINKS"] {
            command.env_remove(name);
        }
        // URLs may have passwords, which arguments would show to other users.
        let text = |source: &PackageSource| match source {
            PackageSource::Remote(url) => url.with_credentials().expose().clone(),
            PackageSource::Local(path) => path.display().to_string(),
        };
        match settings.indexes.split_last() {
            Some((default, others)) => {
                command.env("UV_DEFAULT_INDEX", text(default));
                if !others.is_empty() {
                    command.env("UV_INDEX", others.iter().map(text).collect::<Vec<_>>().join(" "));
                }
            }
            None => {
                command.env("UV_NO_INDEX", "1");
            }
        }
        if !settings.find_links.is_empty() {
            let links: Vec<String> = settings.find_links.iter().map(text).collect();
            command.env("UV_FIND_LINKS", links.join(","));
        }
        if let Some(certificates) = &settings.certificates {
            command.env("SSL_CERT_FILE", certificates);
        }
        if !settings.trusted_hosts.is_empty() {
            command.env("UV_INSECURE_HOST", settings.trusted_hosts.join(" "));
        }
        if let Some(proxy) = &settings.proxy {
            command.env("HTTPS_PROXY", proxy.expose()).env("HTTP_PROXY", proxy.expose());
        }
        command.env("UV_HTTP_TIMEOUT", settings.timeout.as_secs().max(1).to_string());
        command
    }

    fn run(&self, command: &mut Command) -> Result<String, LockError> {
        let output = bounded_output(command, b"", TIMEOUT, MAX_OUTPUT)
            .map_err(|error| LockError::Uv { action: "failed", reason: error.to_string() })?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let settings = self.fetcher.settings();
        let urls = settings.indexes.iter().chain(&settings.find_links).filter_map(|source| match source {
            PackageSource::Remote(url) => {
                Some(url.with_credentials()).filter(|url| url.expose().contains('@'))
            }
            PackageSource::Local(_) => None,
        });
        let secrets: Vec<Secret> = urls.collect();
        let stderr = cudock_http::redact(&String::from_utf8_lossy(&output.stderr), &secrets);
        let lines = stderr
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with("warning:") && !line.starts_with("Using "));
        let reason: Vec<String> = lines.take(MAX_LINES).map(|line| text::truncate(line, 400)).collect();
        let reason = reason.join(" ");
        Err(if reason.contains("No solution found") || reason.contains("not found in the package registry") {
            LockError::Unresolved { reason }
        } else {
            LockError::Uv { action: "failed", reason }
        })
    }
}

/// Reads the requirement file that uv writes.
fn parse(text: &str) -> Vec<Pin> {
    let mut pins: Vec<Pin> = Vec::new();
    for line in text.lines() {
        let trimmed = line.trim().trim_end_matches('\\').trim();
        if let Some(hash) = trimmed.strip_prefix("--hash=sha256:") {
            if let Some(pin) = pins.last_mut() {
                pin.hashes.push(hash.trim().to_owned());
            }
        } else if let Some(comment) = trimmed.strip_prefix('#') {
            let reason = comment.trim().strip_prefix("via").unwrap_or(comment).trim();
            if let Some(pin) = pins.last_mut().filter(|_| !reason.is_empty() && line.starts_with(' ')) {
                pin.reason =
                    [pin.reason.as_str(), reason].join(if pin.reason.is_empty() { "" } else { ", " });
            }
        } else if let Some((name, rest)) = trimmed.split_once("==") {
            let version = rest.split([' ', ';']).next().unwrap_or_default().to_owned();
            let name = normalized(name.split('[').next().unwrap_or(name).trim());
            pins.push(Pin { name, version, hashes: Vec::new(), reason: String::new() });
        }
    }
    pins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_hashes_and_reasons_are_read() {
        let text = "# header\nrequests[socks]==2.34.2 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n    # via\n    \
                    #   -r r.txt\n    #   other\nIdna==3.20 ; python_version < '4' \\\n    --hash=sha256:cc\n    # via requests\n";
        let pins = parse(text);
        let [one, two] = pins.as_slice() else { panic!("{pins:?}") };
        assert_eq!((one.name.as_str(), one.version.as_str()), ("requests", "2.34.2"));
        assert_eq!((one.hashes.len(), one.reason.as_str()), (2, "-r r.txt, other"));
        assert_eq!(
            (two.name.as_str(), two.version.as_str(), two.reason.as_str()),
            ("idna", "3.20", "requests")
        );
    }
}
