//! Checkpoints in real blob storage: Azure's emulator.

use cudock_facts::services::AzureService;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cudock_azure::{BlobContainer, Checkpoints};
use cudock_base::text::percent;
use cudock_http::{Client, ClientOptions, Method, Request};
use cudock_testkit::client::eventually;
use ring::hmac;

use crate::scripts::{RECORD, machine_scripts, run, stub};
use crate::specs;
use crate::support::{azure, client};

const ACCOUNT: &str = "devstoreaccount1";
/// The emulator's key, which is public. In parts, so that no scanner takes it for a real one.
const KEY: [&str; 4] =
    ["Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1", "OUzFT50uSRZ6IFsuFq2UVErCz4I6tq", "/K1SZFPTOtr/KBHBeksoGMGw", "=="];

struct Emulator {
    process: Child,
    port: u16,
}

impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Emulator {
    /// None if it is not installed.
    #[track_caller]
    fn start() -> Option<Self> {
        let program = cudock_testkit::require_program("azurite")?.with_file_name("azurite-blob");
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let process = Command::new(program)
            .args([
                "--silent",
                "--inMemoryPersistence",
                "--disableTelemetry",
                "--blobPort",
                &port.to_string(),
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let emulator = Self { process, port };
        eventually("the emulator answers", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        Some(emulator)
    }

    /// The URL of a container with a signature for everything in the account.
    fn container(&self, name: &str) -> String {
        let (permissions, version, expiry) = ("rwdlac", "2020-08-04", "2099-01-01T00:00:00Z");
        let text = format!("{ACCOUNT}\n{permissions}\nb\nsco\n\n{expiry}\n\nhttps,http\n{version}\n");
        let key = hmac::Key::new(hmac::HMAC_SHA256, &STANDARD.decode(KEY.concat()).unwrap());
        let signature = percent::encode(&STANDARD.encode(hmac::sign(&key, text.as_bytes())));
        format!(
            "http://127.0.0.1:{}/{ACCOUNT}/{name}?sv={version}&ss=b&srt=sco&sp={permissions}&se={}&spr=https,http&sig={signature}",
            self.port,
            percent::encode(expiry)
        )
    }
}

/// Runs the start script of a machine whose program adds a line to its checkpoints, and returns what it found there.
fn machine(bash: &Path, storage: &BlobContainer) -> String {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let state = root.join("state");
    let kept = state.join("checkpoints/epochs");
    stub(
        root,
        "docker",
        &format!(
            "{RECORD}\n[ $1 != run ] || {{ cat {0} >> {1}; echo epoch >> {0}; }}",
            kept.display(),
            root.join("found").display()
        ),
    );
    let mut spec = specs::spec(AzureService::Vm, specs::job(0));
    (spec.size, spec.gpus) = (Some("Standard_D4s_v5".to_owned()), 0);
    spec.checkpoints =
        Some(Checkpoints { directory: "/checkpoints".to_owned(), storage: Some(storage.clone()) });
    let script = machine_scripts(&spec)[0]
        .replace("/var/lib/cudock", state.to_str().unwrap())
        .replace("/dev/ttyS0", root.join("console").to_str().unwrap());
    let output = run(bash, &script, root, &[]);
    let log = fs::read_to_string(state.join("log")).unwrap_or_default();
    assert_eq!(output.status.code(), Some(0), "{log}");
    assert!(log.contains("checkpoints saved"), "{log}");
    let calls = fs::read_to_string(root.join("calls")).unwrap();
    assert!(calls.contains("|--volume|") && calls.contains(":/checkpoints|"), "{calls}");
    fs::read_to_string(root.join("found")).unwrap_or_default()
}

#[test]
fn a_machine_goes_on_with_the_checkpoints_of_the_one_before_and_their_time_is_known() {
    let (Some(bash), Some(_)) =
        (cudock_testkit::require_program("bash"), cudock_testkit::require_program("curl"))
    else {
        return;
    };
    let Some(emulator) = Emulator::start() else { return };
    let url = emulator.container("runs");
    let http =
        Client::new(&ClientOptions { timeout: Duration::from_secs(10), ..ClientOptions::default() }).unwrap();
    let created = http.send(&Request::new(Method::PUT, format!("{url}&restype=container")));
    assert_eq!(created.unwrap().status(), 201);
    let storage = BlobContainer::parse("CUDOCK_CHECKPOINTS", &url).unwrap();
    let checkpoints = Checkpoints { directory: "/checkpoints".to_owned(), storage: Some(storage.clone()) };

    let server = azure(|_| cudock_testkit::http::Reply::new(500, ""));
    let client = client(&server);
    let list =
        |is_mounted| client.download(&checkpoints.question("digits", is_mounted).unwrap(), None).unwrap();
    assert_eq!(Checkpoints::last_written(&list(false)), None, "nothing was kept yet");
    assert_eq!(machine(&bash, &storage), "");
    assert_eq!(machine(&bash, &storage), "epoch\n");
    assert_eq!(machine(&bash, &storage), "epoch\nepoch\n");
    for is_mounted in [false, true] {
        let written = Checkpoints::last_written(&list(is_mounted)).unwrap();
        assert!(cudock_base::Timestamp::now().since(written) < Duration::from_secs(600));
    }
    let other = client.download(&checkpoints.question("other", false).unwrap(), None).unwrap();
    assert_eq!(Checkpoints::last_written(&other), None, "blobs of other names do not count");
}
