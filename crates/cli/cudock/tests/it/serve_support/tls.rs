//! Certificates, made with openssl and tried with curl.

use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};

use super::server::Stage;

/// Makes a self-signed certificate for this machine: the files of its chain and its key. `None`, and the reason printed,
/// where openssl or curl is missing.
pub fn certificate(stage: &Stage, name: &str) -> Option<(PathBuf, PathBuf)> {
    let (chain, key) = (stage.path(&format!("{name}.pem")), stage.path(&format!("{name}.key")));
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
        ])
        .args(["-subj", &format!("/CN={name}"), "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&chain)
        .stderr(Stdio::null())
        .status();
    let curl = Command::new("curl").arg("--version").stdout(Stdio::null()).status();
    if [made, curl].iter().any(|status| !status.as_ref().is_ok_and(ExitStatus::success)) {
        cudock_testkit::missing("openssl", "no openssl to make a certificate, or no curl to ask with");
        return None;
    }
    Some((chain, key))
}
