//! A root file system of one static busybox.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

pub(super) const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:100:Ann:/home/ann:/bin/sh\n";
pub(super) const GROUP: &str = "root:x:0:\nusers:x:100:\nvideo:x:44:ann\nrender:x:105:\n";

/// Creates the directory.
pub(super) fn make(busybox: &Path, root: &Path) {
    for name in ["bin", "dev", "etc", "proc", "root", "sys", "tmp", "www"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    fs::set_permissions(root, fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(root.join("tmp"), fs::Permissions::from_mode(0o1777)).unwrap();
    fs::copy(busybox, root.join("bin/busybox")).unwrap();
    for name in applets(busybox) {
        symlink("busybox", root.join("bin").join(name)).unwrap();
    }
    fs::write(root.join("etc/passwd"), PASSWD).unwrap();
    fs::write(root.join("etc/group"), GROUP).unwrap();
    fs::write(root.join("www/hello"), "hello from inside\n").unwrap();
}

/// The programs in busybox.
pub(crate) fn applets(busybox: &Path) -> Vec<String> {
    let list = Command::new(busybox).arg("--list").output().unwrap();
    let names = String::from_utf8(list.stdout).unwrap();
    names.lines().filter(|name| *name != "busybox").map(str::to_owned).collect()
}

/// A busybox that needs no library.
pub(crate) fn find() -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(&path).map(|directory| directory.join("busybox")).find(|file| file.is_file());
    let file = found.ok_or("there is no busybox in PATH (package busybox-static)")?;
    let bytes = fs::read(&file).map_err(|error| error.to_string())?;
    let interpreter = b"/ld-";
    if bytes.windows(interpreter.len()).take(1 << 16).any(|window| window == interpreter) {
        return Err("the busybox in PATH is not static (package busybox-static)".to_owned());
    }
    Ok(file)
}
