//! A real registry, Debian's `docker-registry`.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::client::eventually;
use crate::process::ChildGuard;
use crate::require_program;

/// Starts a registry on a free port of 127.0.0.1 that keeps its data below `directory`; returns its process and port.
#[track_caller]
pub fn start_registry(directory: &Path) -> Option<(ChildGuard, u16)> {
    let program = require_program("docker-registry")?;
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let config = directory.join("registry.yml");
    let text = format!(
        "version: 0.1\nstorage:\n  filesystem:\n    rootdirectory: {}\nhttp:\n  addr: 127.0.0.1:{port}\n",
        directory.join("registry").display()
    );
    fs::write(&config, text).unwrap();
    let child =
        Command::new(program).arg("serve").arg(config).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let child = ChildGuard(child.unwrap());
    eventually("the registry listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    Some((child, port))
}
