//! A root file system of one static busybox.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::OnceLock;

use crate::containers::busybox;

/// Answers with the response of localhost:8081, as a gateway does.
const ASK: &str =
    "#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\n'\nwget -qO- http://127.0.0.1:8081/hello\n";

/// The directory, created once for all tests; the reason, where it cannot be created.
pub fn rootfs() -> Result<&'static Path, &'static str> {
    static MADE: OnceLock<Result<tempfile::TempDir, String>> = OnceLock::new();
    match MADE.get_or_init(make) {
        Ok(directory) => Ok(directory.path()),
        Err(why) => Err(why),
    }
}

fn make() -> Result<tempfile::TempDir, String> {
    let busybox = busybox::find()?;
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    fs::set_permissions(root, fs::Permissions::from_mode(0o755)).unwrap();
    for name in ["bin", "dev", "etc", "proc", "sys", "tmp", "www/cgi-bin"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    fs::copy(&busybox, root.join("bin/busybox")).unwrap();
    for name in busybox::applets(&busybox) {
        symlink("busybox", root.join("bin").join(name)).unwrap();
    }
    fs::write(root.join("etc/passwd"), "root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n")
        .unwrap();
    fs::write(root.join("etc/group"), "root:x:0:\nnogroup:x:65534:\n").unwrap();
    fs::write(root.join("www/hello"), "hello from the service\n").unwrap();
    let ask = root.join("www/cgi-bin/ask");
    fs::write(&ask, ASK).unwrap();
    fs::set_permissions(ask, fs::Permissions::from_mode(0o755)).unwrap();
    Ok(directory)
}
