//! The status page of the example's server, looked at in headless Chromium. The promises are in
//! `page/look.py`; this starts the server and the browser.
//!
//! Needs `CUDOCK_ONNXRUNTIME` (path of libonnxruntime), `CUDOCK_BROWSER_PYTHON` (a Python with playwright) and Chromium
//! on the path or at `CUDOCK_BROWSER`.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use crate::support::Turn;

const START_PATIENCE: Duration = Duration::from_secs(120);

/// A server of the example, stopped when it goes out of scope.
struct Server {
    process: Child,
    url: String,
    _turn: Turn,
}

impl Server {
    fn start(library: &Path) -> Self {
        let turn = Turn::shared();
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/digits");
        let mut process = Command::new(env!("CARGO_BIN_EXE_cudock"))
            .arg("serve")
            .arg(&example)
            .args(["--port", "0"])
            .env("CUDOCK_ONNXRUNTIME", library)
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = mpsc::channel();
        read_lines(process.stdout.take().unwrap(), sender.clone());
        read_lines(process.stderr.take().unwrap(), sender);
        let url = first_address(&lines);
        Self { process, url, _turn: turn }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SIGTERM first, so that its engine's process ends with it; SIGKILL if `kill` cannot run.
        let signaled = Command::new("kill").arg(self.process.id().to_string()).status();
        if !signaled.is_ok_and(|status| status.success()) {
            self.process.kill().ok();
        }
        self.process.wait().ok();
    }
}

/// Forwards each line until the end, so that a full pipe never blocks the server.
fn read_lines(from: impl Read + Send + 'static, to: Sender<String>) {
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            eprintln!("server: {line}");
            to.send(line).ok();
        }
    });
}

/// The address that the server prints.
fn first_address(lines: &Receiver<String>) -> String {
    loop {
        let line = lines.recv_timeout(START_PATIENCE).expect("the server names its address");
        if let Some(start) = line.find("http://") {
            return line[start..].chars().take_while(|sign| !" ,;)\"'<>".contains(*sign)).collect();
        }
    }
}

#[test]
fn the_status_page_shows_what_happens_and_reads_drawn_digits() {
    let Some(library) = cudock_testkit::require_onnxruntime() else { return };
    let Some((python, chromium)) = cudock_testkit::require_browser() else { return };
    let screenshots = Path::new(env!("CARGO_TARGET_TMPDIR")).join("page");
    fs::create_dir_all(&screenshots).unwrap();

    let server = Server::start(&library);
    let looked = Command::new(python)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/page/look.py"))
        .arg(&server.url)
        .arg(chromium)
        .arg(&screenshots)
        .output()
        .unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&looked.stdout), String::from_utf8_lossy(&looked.stderr));
    assert!(
        looked.status.success(),
        "the page at {} breaks its last promise of\n{stdout}\n{stderr}",
        server.url
    );
    for name in ["page-light.png", "page-dark.png", "page-small.png"] {
        assert!(fs::metadata(screenshots.join(name)).unwrap().len() > 10_000, "{name} shows nothing");
    }
}
