//! A driver that is only files and device nodes.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::machine::Machine;

pub(super) const VERSION: &str = "580.159.04";
pub(super) const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

/// The libraries of the driver: file name, the name that programs load them by, their capability.
pub(super) const ALL: [(&str, &str, &str); 6] = [
    ("libcuda", "1", "compute"),
    ("libnvidia-ptxjitcompiler", "1", "compute"),
    ("libnvidia-ml", "1", "utility"),
    ("libnvidia-cfg", "1", "utility"),
    ("libnvidia-encode", "1", "video"),
    ("libnvidia-ngx", "1", "ngx"),
];

/// Puts a driver with two GPUs below `files`, with its nodes below `devices`; `None` where nodes cannot be created.
pub(super) fn install(machine: &Machine, files: &str, devices: &str) -> Option<(PathBuf, PathBuf)> {
    for (stem, soname, _) in ALL {
        machine.write(&format!("{files}/{LIBRARIES}/{stem}.so.{VERSION}"), format!("\x7fELF\x02\x01 {stem}"));
        let link = machine.path().join(format!("{files}/{LIBRARIES}/{stem}.so.{soname}"));
        symlink(format!("{stem}.so.{VERSION}"), link).unwrap();
    }
    let tool = machine.write(&format!("{files}/usr/bin/nvidia-smi"), "#!/bin/sh\necho NVIDIA-SMI $0\n");
    fs::set_permissions(tool, fs::Permissions::from_mode(0o755)).unwrap();
    let module =
        format!("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {VERSION}  Release Build\n");
    machine.write(&format!("{devices}/proc/driver/nvidia/version"), module);
    machine.write(&format!("{devices}/proc/driver/nvidia/params"), "ModifyDeviceFiles: 1\n");
    machine.write(&format!("{devices}/proc/sys/kernel/osrelease"), "6.8.0-90-generic\n");
    for minor in 0..2 {
        let about =
            format!("Model: \t\t NVIDIA H200\nGPU UUID: \t {}\nDevice Minor: \t {minor}\n", uuid(minor));
        machine.write(&format!("{devices}/proc/driver/nvidia/gpus/0000:0{minor}:00.0/information"), about);
    }
    let dev = machine.path().join(devices).join("dev");
    fs::create_dir_all(&dev).unwrap();
    for (name, major, minor) in [
        ("nvidiactl", 195, 255),
        ("nvidia0", 195, 0),
        ("nvidia1", 195, 1),
        ("nvidia-uvm", 510, 0),
        ("nvidia-uvm-tools", 510, 1),
    ] {
        node(&dev.join(name), major, minor)?;
    }
    Some((machine.path().join(files), machine.path().join(devices)))
}

/// The name of one of its GPUs.
pub(super) fn uuid(minor: u32) -> String {
    format!("GPU-{minor}aaaaaaa-0000-0000-0000-000000000000")
}

fn node(path: &Path, major: u32, minor: u32) -> Option<()> {
    let mut command = Command::new("mknod");
    command.args(["-m", "666"]).arg(path).args(["c", &major.to_string(), &minor.to_string()]);
    if command.status().is_ok_and(|status| status.success()) {
        return Some(());
    }
    cudock_testkit::missing("device-nodes", "device nodes cannot be made here");
    None
}

/// Replaces the libcuda that is only a file with one that answers; `None` without a C compiler.
pub(super) fn install_cuda(driver: &Path, definitions: &[&str]) -> Option<()> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../gpu/gpu-test/tests/fake_cuda.c");
    let library = driver.join(LIBRARIES).join(format!("libcuda.so.{VERSION}"));
    let mut compiler = Command::new("cc");
    compiler
        .args(["-std=gnu11", "-O2", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o"])
        .arg(library)
        .arg(source);
    compiler.args(definitions.iter().map(|definition| format!("-D{definition}")));
    match compiler.output() {
        Ok(done) => assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr)),
        Err(error) => {
            cudock_testkit::missing("cc", format_args!("no C compiler (cc: {error})"));
            return None;
        }
    }
    Some(())
}
