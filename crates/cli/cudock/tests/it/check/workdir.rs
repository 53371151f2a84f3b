//! Support for the tests of `cudock check`: a directory of their own, subjects to put into it, and a quiet environment.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::support::{self, schema};

/// Variables of the caller that lead to registries, daemons or libraries, or change what a program would load.
const STEERING: [&str; 17] = [
    "ALL_PROXY",
    "CONDA_PREFIX",
    "CUDA_VISIBLE_DEVICES",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "LD_LIBRARY_PATH",
    "NO_PROXY",
    "NVIDIA_REQUIRE_CUDA",
    "NVIDIA_VISIBLE_DEVICES",
    "REGISTRY_AUTH_FILE",
    "SSL_CERT_FILE",
    "VIRTUAL_ENV",
    "XDG_CACHE_HOME",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// A directory that commands are started in, so that reports name its files without a path.
pub struct Directory {
    directory: tempfile::TempDir,
}

impl Directory {
    pub fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    /// A directory with one file.
    pub fn with(name: &str, contents: impl AsRef<[u8]>) -> Self {
        let directory = Self::new();
        directory.write(name, contents);
        directory
    }

    /// A directory with a copy of a real binary.
    pub fn with_fixture(name: &str) -> Self {
        Self::with(name, fixture(name))
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Writes a file, and the directories it is in.
    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, contents).unwrap();
    }

    /// `cudock check` with these arguments, started here: its cache is empty, no daemon listens, nobody is signed in.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = support::cudock(&[&["check"], arguments].concat());
        for variable in STEERING {
            command.env_remove(variable);
        }
        let own = self.path().join("own");
        std::fs::create_dir_all(&own).unwrap();
        std::fs::write(own.join("registries.conf"), "").unwrap();
        command
            .current_dir(self.path())
            .env("HOME", own.join("home"))
            .env("XDG_CONFIG_HOME", own.join("config"))
            .env("XDG_RUNTIME_DIR", own.join("run"))
            .env("DOCKER_CONFIG", own.join("docker"))
            .env("DOCKER_HOST", format!("unix://{}", own.join("docker.sock").display()))
            .env("CONTAINERS_REGISTRIES_CONF", own.join("registries.conf"))
            .env("CUDOCK_CACHE", own.join("cache"));
        command
    }

    pub fn check(&self, arguments: &[&str]) -> Output {
        schema::output(&mut self.command(arguments))
    }

    /// The JSON report. The exit code is 0 or 1: there is a verdict.
    pub fn report(&self, arguments: &[&str]) -> Value {
        let output = self.check(&[arguments, &["--format", "json"]].concat());
        assert!(matches!(support::code(&output), 0 | 1), "{}", support::shown(&output));
        support::json(&output)
    }

    /// The result for one target. Fails if the exit code differs from it.
    pub fn result(&self, arguments: &[&str]) -> Value {
        let output = self.check(&[arguments, &["--format", "json"]].concat());
        let mut report = support::json(&output);
        let results = report["results"].as_array_mut().unwrap();
        assert_eq!(results.len(), 1, "{results:?}");
        let result = results.remove(0);
        let runs = matches!(result["verdict"].as_str().unwrap(), "works" | "jit");
        assert_eq!(support::code(&output), i32::from(!runs), "{result:#}");
        result
    }

    /// The text of the report, without this directory's own path.
    pub fn report_text(&self, arguments: &[&str]) -> String {
        let real = self.path().canonicalize().unwrap();
        let shown = support::shown(&self.check(arguments));
        shown.replace(real.to_str().unwrap(), "[FOLDER]").replace(self.path().to_str().unwrap(), "[FOLDER]")
    }

    /// The message for a bad call or bad input.
    pub fn refused(&self, arguments: &[&str]) -> String {
        let output = self.check(arguments);
        let shown = support::shown(&output);
        assert_eq!(support::code(&output), 2, "{shown}");
        assert!(output.stdout.is_empty(), "an error is not data: {shown}");
        assert!(shown.contains("error: "), "{shown}");
        shown
    }
}

/// The bytes of a real binary.
pub fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/../../gpu/fatbin/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// The codes of a result's findings, in order. Not those of libraries of the system that a binary needs and that the
/// machine the tests run on may lack.
pub fn codes(result: &Value) -> Vec<&str> {
    let findings = result["findings"].as_array().unwrap().iter();
    let lacks = |finding: &Value| finding["code"] == "CD0607" && finding["severity"] == "note";
    findings.filter(|finding| !lacks(finding)).map(|finding| finding["code"].as_str().unwrap()).collect()
}

/// The finding with that code.
pub fn finding<'r>(result: &'r Value, code: &str) -> &'r Value {
    let findings = result["findings"].as_array().unwrap();
    findings
        .iter()
        .find(|finding| finding["code"] == code)
        .unwrap_or_else(|| panic!("no {code} in {result:#}"))
}
