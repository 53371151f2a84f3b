//! `cudock lsp` with a real client. The promises are in `lsp/test_lsp.py`; this starts it.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use cudock_testkit::require_pytest_lsp;

use crate::support::{code, shown};

#[test]
fn editors_get_diagnostics_pages_and_fixes() {
    let Some(python) = require_pytest_lsp() else { return };
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lsp/test_lsp.py");
    let mut command = Command::new(python);
    command.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "asyncio_mode=auto"]).arg(&tests);
    command.env("CUDOCK", env!("CARGO_BIN_EXE_cudock")).env("PYTHONDONTWRITEBYTECODE", "1");
    let output = command.output().unwrap();
    assert_eq!(code(&output), 0, "{}", shown(&output));
    assert!(shown(&output).contains("4 passed"), "{}", shown(&output));
}

#[test]
fn a_client_that_leaves_without_shutdown_ends_the_server() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cudock"));
    let mut server = command
        .arg("lsp")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}"#;
    let initialized = r#"{"jsonrpc":"2.0","method":"initialized","params":{}}"#;
    let mut input = server.stdin.take().unwrap();
    for message in [body, initialized] {
        write!(input, "Content-Length: {}\r\n\r\n{message}", message.len()).unwrap();
    }
    drop(input);
    let output = server.wait_with_output().unwrap();
    assert_eq!(code(&output), 1, "{}", shown(&output));
}
