//! TLS.

use std::path::Path;
use std::process::Command;

use cudock_server::{ServerError, TlsError, TlsFiles};
use cudock_testkit::client::{self, eventually, get};

use crate::support::{TestServer, bind_error};

/// Creates a certificate for localhost in the directory.
fn certificate(directory: &Path, name: &str) -> TlsFiles {
    let (certificate, key) = client::certificate(directory, name);
    TlsFiles { certificate, key }
}

fn has_tools() -> bool {
    ["openssl", "curl"].into_iter().all(|name| cudock_testkit::require_program(name).is_some())
}

#[test]
fn both_protocols_work_over_tls_and_the_certificate_follows_its_file() {
    if !has_tools() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (first, second) = (certificate(directory.path(), "first"), certificate(directory.path(), "second"));
    let files = TlsFiles {
        certificate: directory.path().join("server.pem"),
        key: directory.path().join("server.key"),
    };
    let install = |from: &TlsFiles| {
        std::fs::copy(&from.certificate, &files.certificate).unwrap();
        std::fs::copy(&from.key, &files.key).unwrap();
    };
    install(&first);
    let mut server = TestServer::start(|settings| settings.tls = Some(files.clone()));
    let request = |protocol: &str, trusted: &TlsFiles| {
        let output = Command::new("curl")
            .args(["-sS", protocol, "-d", "over TLS", "-w", " %{http_version}", "--cacert"])
            .arg(&trusted.certificate)
            .arg(format!("https://localhost:{}/", server.address.port()))
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(request("--http1.1", &first), "over TLS 1.1");
    assert_eq!(request("--http2", &first), "over TLS 2");
    assert!(!request("--http2", &second).contains("TLS"));
    install(&second);
    eventually("the new certificate is used", || request("--http2", &second) == "over TLS 2");
    // A client that speaks plain HTTP gets no response, and one that sends nothing does not delay the shutdown.
    let mut plain = server.connect();
    plain.write(&get("/", ""));
    assert!(!plain.rest().starts_with(b"HTTP"));
    let _silent = server.connect();
    server.end().unwrap();
    assert!(server.log().ends_with("ended connections_left=0\n"), "{}", server.log());
}

#[test]
fn a_certificate_must_match_its_key() {
    if !has_tools() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (first, second) = (certificate(directory.path(), "first"), certificate(directory.path(), "second"));
    let mixed = TlsFiles { certificate: first.certificate.clone(), key: second.key.clone() };
    let error = bind_error(|settings| settings.tls = Some(mixed));
    assert!(matches!(error, ServerError::Tls(TlsError::Pair { .. })), "{error}");
    let missing = TlsFiles { certificate: directory.path().join("none"), key: second.key };
    let error = bind_error(|settings| settings.tls = Some(missing));
    assert!(matches!(error, ServerError::Tls(TlsError::Certificate { .. })), "{error}");
}
