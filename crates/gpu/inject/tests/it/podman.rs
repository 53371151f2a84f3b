//! A container that podman and runc start with a specification written here, hooks and all.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cudock_inject::cdi::{CdiOptions, specification};
use cudock_testkit::driver_tree::{DEBIAN, VERSION, can_make_devices, debian};
use cudock_testkit::process;

use crate::support::DriverOf;

fn works(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}

#[test]
fn podman_gives_a_container_the_gpu_of_our_specification() {
    if !can_make_devices() {
        return;
    }
    let busybox = ["/bin/busybox", "/usr/bin/busybox"].into_iter().find(|path| Path::new(path).exists());
    let (Some(busybox), true, true) =
        (busybox, works("podman", &["--version"]), works("runc", &["--version"]))
    else {
        cudock_testkit::missing("podman", "podman, runc or busybox is missing");
        return;
    };
    let work = tempfile::tempdir().unwrap();
    let root = work.path().join("root");
    for directory in ["proc", "dev", "sys", "etc", "tmp", "run", "bin", "lib", "usr"] {
        fs::create_dir_all(root.join(directory)).unwrap();
    }
    fs::copy(busybox, root.join("bin/busybox")).unwrap();
    let driver = debian();
    let mut options = CdiOptions::new(process::example("cdi_hook"));
    // Two test runs at once must not meet in /etc/cdi.
    options.class = format!("gpu-{}", std::process::id());
    options.vendor = "cudock.test".to_owned();
    let (spec, _) = specification(&driver.driver(), &options).unwrap();
    let Some(_file) = Installed::new(&spec.to_yaml().unwrap()) else { return };
    let questions = format!(
        "busybox ls -l /dev | busybox grep nvidia; echo visible: $NVIDIA_VISIBLE_DEVICES; \
         busybox ls -l {DEBIAN}/libcuda.so.{VERSION} {DEBIAN}/libcuda.so.1 {DEBIAN}/libcuda.so; \
         busybox grep -c libcuda.so.1 /etc/ld.so.cache && echo cache is written; \
         busybox cat /etc/nvidia/nvidia-application-profiles-rc.d/10-container.conf"
    );
    let output = Command::new("podman")
        .arg("--root")
        .arg(work.path().join("state"))
        .arg("--runroot")
        .arg(work.path().join("run"))
        .args([
            "--runtime",
            "runc",
            "--cgroup-manager",
            "cgroupfs",
            "--storage-driver",
            "vfs",
            "--events-backend",
            "none",
        ])
        .args(["run", "--rm", "--network", "host", "--log-driver", "none"])
        .args(["--ulimit", "nofile=1024:4096", "--ulimit", "nproc=1024:1024"])
        .arg(format!("--device=cudock.test/{}=0", options.class))
        .arg("--rootfs")
        .arg(&root)
        .args(["/bin/busybox", "sh", "-c", &questions])
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let ours = ["cdi", "CDI", "hook", "nvidia"].iter().any(|word| err.contains(word));
    if !output.status.success() && !ours {
        cudock_testkit::missing("podman", format_args!("podman cannot start containers here: {err}"));
        return;
    }
    assert!(output.status.success(), "{out}\n{err}");
    for expected in [
        "195, 255",
        "nvidiactl",
        "507,",
        "nvidia1",
        "visible: void",
        &format!("libcuda.so.1 -> libcuda.so.{VERSION}"),
        "libcuda.so -> libcuda.so.1",
        "cache is written",
        "EGLVisibleDGPUDevices\", 0x2",
    ] {
        assert!(out.contains(expected), "`{expected}` is missing in:\n{out}\n{err}");
    }
    assert!(!out.contains(" nvidia0"), "that GPU was not requested:\n{out}");
}

/// A specification where engines look, for as long as a test needs it.
struct Installed(PathBuf);

impl Installed {
    fn new(text: &str) -> Option<Self> {
        let path = PathBuf::from(format!("/etc/cdi/cudock-test-{}.yaml", std::process::id()));
        let written = fs::create_dir_all("/etc/cdi").and_then(|()| fs::write(&path, text));
        if let Err(error) = written {
            cudock_testkit::missing("root", format_args!("{} cannot be written: {error}", path.display()));
            return None;
        }
        Some(Self(path))
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        fs::remove_file(&self.0).ok();
    }
}
