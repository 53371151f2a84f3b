//! Helpers that tests of several crates share; never part of the program.
//!
//! A test that needs something a machine may lack requires it by name. If it is missing, the test
//! is skipped with a reason, or fails if `CUDOCK_TEST_REQUIRE` lists that name
//! (`CUDOCK_TEST_REQUIRE=root,podman,onnxruntime`), as CI does for everything it installs.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::new_without_default,
    reason = "callers are tests, which fail by panicking"
)]

pub mod ambiguous;
pub mod client;
pub mod disk;
pub mod docker_lines;
pub mod driver_tree;
pub mod host_tree;
pub mod http;
pub mod otlp;
pub mod packages;
pub mod process;
pub mod random;
pub mod registry;
pub mod tar;
mod tree;

pub mod onnx;

use std::env;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The variable that lists the prerequisites that must not be missing, separated by commas.
pub const REQUIRE: &str = "CUDOCK_TEST_REQUIRE";

/// Reports that a test cannot run because a prerequisite is missing.
///
/// # Panics
///
/// If [`REQUIRE`] lists the prerequisite.
#[track_caller]
pub fn missing(prerequisite: &str, reason: impl Display) {
    let required = env::var(REQUIRE).unwrap_or_default();
    assert!(
        !required.split(',').any(|name| name.trim() == prerequisite),
        "`{prerequisite}` is required by {REQUIRE}: {reason}"
    );
    eprintln!("skipped: {reason}");
}

/// The path of a program, which is also the prerequisite's name.
#[track_caller]
pub fn require_program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file());
    if found.is_none() {
        missing(name, format_args!("no {name} in PATH"));
    }
    found
}

/// The library of ONNX Runtime that `CUDOCK_ONNXRUNTIME` names.
#[track_caller]
pub fn require_onnxruntime() -> Option<PathBuf> {
    let library = env::var_os("CUDOCK_ONNXRUNTIME").map(PathBuf::from).filter(|library| library.is_file());
    if library.is_none() {
        missing("onnxruntime", "CUDOCK_ONNXRUNTIME does not name a library of ONNX Runtime");
    }
    library
}

/// Azure's specifications, samples and recorded responses next to the repository; they are not part
/// of it.
#[track_caller]
pub fn require_azure_specs() -> Option<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/facts/azure/specs");
    if !directory.is_dir() {
        missing("azure-specs", format_args!("{} not found", directory.display()));
        return None;
    }
    Some(directory)
}

/// A Python with pytest-lsp, the client that `cudock lsp` is tested with.
#[track_caller]
pub fn require_pytest_lsp() -> Option<PathBuf> {
    require_python("pytest-lsp", "pytest_lsp")
}

/// A Python that can check descriptions of servers.
#[track_caller]
pub fn require_openapi_validator() -> Option<PathBuf> {
    require_python("openapi-spec-validator", "openapi_spec_validator")
}

/// A Python with numpy, which every Python model needs.
#[track_caller]
pub fn require_numpy() -> Option<PathBuf> {
    require_python("numpy", "numpy")
}

/// A Python with Optuna and its dashboard.
#[track_caller]
pub fn require_optuna() -> Option<PathBuf> {
    require_python("optuna", "optuna_dashboard")
}

/// A Python with playwright (`CUDOCK_BROWSER_PYTHON`), and Chromium on the path or at `CUDOCK_BROWSER`.
#[track_caller]
pub fn require_browser() -> Option<(PathBuf, PathBuf)> {
    let Some(python) = env::var_os("CUDOCK_BROWSER_PYTHON") else {
        missing("playwright", "CUDOCK_BROWSER_PYTHON does not name a Python with playwright");
        return None;
    };
    let chromium = env::var_os("CUDOCK_BROWSER").map(PathBuf::from).or_else(|| {
        let path = env::var_os("PATH")?;
        let names = ["chromium", "chromium-browser", "google-chrome"];
        env::split_paths(&path)
            .flat_map(|directory| names.map(|name| directory.join(name)))
            .find(|file| file.is_file())
    });
    if chromium.is_none() {
        missing("chromium", "no Chromium in PATH, and CUDOCK_BROWSER does not name one");
    }
    Some((python.into(), chromium?))
}

#[track_caller]
fn require_python(package: &str, module: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let pythons =
        env::split_paths(&path).map(|directory| directory.join("python3")).filter(|python| python.is_file());
    let found = pythons.into_iter().find(|python| {
        let import = Command::new(python).args(["-c", &format!("import {module}")]).output();
        import.is_ok_and(|output| output.status.success())
    });
    if found.is_none() {
        missing(package, format_args!("no python3 in PATH has {package}"));
    }
    found
}

/// Runs the tests of a binary without the standard harness, for tests that start their own binary as a helper. Takes
/// the harness's arguments: parts of names, and `--list`.
pub fn run_tests(tests: &[(&str, &dyn Fn())]) -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--list") {
        for (name, _) in tests {
            println!("{name}: test");
        }
        return ExitCode::SUCCESS;
    }
    let filters: Vec<_> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let is_selected =
        |name: &str| filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str()));
    for (name, test) in tests.iter().filter(|(name, _)| is_selected(name)) {
        eprintln!("test {name}");
        test();
    }
    ExitCode::SUCCESS
}
