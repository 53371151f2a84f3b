//! GPUs of a group, from a driver that is only files and device nodes.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::machine::{Machine, container, group, machine};
use crate::support::{code, shown};

const VERSION: &str = "580.159.04";
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

/// A driver with two GPUs; `None` where device nodes cannot be created.
fn driver(root: &Path) -> Option<()> {
    let write = |path: String, text: &[u8]| {
        let file = root.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    for stem in ["libcuda", "libnvidia-ml"] {
        write(format!("{LIBRARIES}/{stem}.so.{VERSION}"), b"\x7fELF\x02\x01 a library");
        let link = root.join(LIBRARIES).join(format!("{stem}.so.1"));
        std::os::unix::fs::symlink(format!("{stem}.so.{VERSION}"), link).unwrap();
    }
    let module =
        format!("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {VERSION}  Release Build\n");
    write("proc/driver/nvidia/version".to_owned(), module.as_bytes());
    write("proc/driver/nvidia/params".to_owned(), b"ModifyDeviceFiles: 1\n");
    write("proc/sys/kernel/osrelease".to_owned(), b"6.8.0-90-generic\n");
    fs::create_dir_all(root.join("dev")).unwrap();
    let nodes = [
        ("nvidiactl", "195", "255"),
        ("nvidia0", "195", "0"),
        ("nvidia1", "195", "1"),
        ("nvidia-uvm", "507", "0"),
        ("nvidia-uvm-tools", "507", "1"),
    ];
    for (name, major, minor) in nodes {
        let node = root.join("dev").join(name);
        let made = Command::new("mknod").arg(node).args(["c", major, minor]).status();
        if !made.is_ok_and(|status| status.success()) {
            cudock_testkit::missing("device-nodes", "device nodes cannot be made here");
            return None;
        }
    }
    for minor in 0..2 {
        let text = format!(
            "Model: \t\t NVIDIA H200\nGPU UUID: \t GPU-{minor}aaaaaaa-0000-0000-0000-000000000000\nDevice Minor: \t {minor}\n"
        );
        write(format!("proc/driver/nvidia/gpus/0000:0{minor}:00.0/information"), text.as_bytes());
    }
    Some(())
}

fn with_driver(machine: &Machine, text: &str) -> std::process::Output {
    let root = machine.path().join("driver");
    let file = machine.write(text);
    machine.run(&["up", "-f", &file, "-d", "--network", "none", "--driver-root", root.to_str().unwrap()])
}

fn asking(name: &str, count: u32) -> String {
    let resources = format!(
        "      resources: {{requests: {{cpu: 1, memoryInGB: 1, gpu: {{count: {count}, sku: V100}}}}}}\n"
    );
    container(name, "sleep 1000", &resources)
}

#[test]
fn each_container_gets_gpus_of_its_own_and_one_that_asks_for_none_gets_none() {
    let Some(machine) = machine() else { return };
    let Some(()) = driver(&machine.path().join("driver")) else { return };
    let containers = [asking("a", 1), asking("b", 1), container("c", "sleep 1000", "")];
    let output = with_driver(&machine, &group("cards", "", &containers));
    assert!(output.status.success(), "{}", shown(&output));
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(talk.contains("note: a: the group requests V100, this machine has NVIDIA H200"), "{talk}");
    let nodes = |name: &str| {
        let listed = machine.good(&[
            "exec",
            &format!("cards/{name}"),
            "sh",
            "-c",
            "cd /dev; ls -d nvidia[0-9]* 2>/dev/null; true",
        ]);
        listed.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(nodes("a"), ["nvidia0"]);
    assert_eq!(nodes("b"), ["nvidia1"]);
    assert_eq!(nodes("c"), Vec::<String>::new());
    let library = format!("/{LIBRARIES}/libcuda.so.1");
    let found = machine.good(&["exec", "cards/a", "sh", "-c", "find / -xdev -name 'libcuda.so.1' | head -1"]);
    assert!(!found.trim().is_empty(), "no {library}");
    let created = machine.run(&["exec", "cards/c", "mknod", "/tmp/nvidia0", "c", "195", "0"]);
    let opened = machine.run(&["exec", "cards/c", "cat", "/tmp/nvidia0"]);
    assert!(!created.status.success() || shown(&opened).contains("not permitted"), "{}", shown(&opened));
}

#[test]
fn a_group_that_asks_for_more_gpus_than_there_are_is_refused() {
    let Some(machine) = machine() else { return };
    let Some(()) = driver(&machine.path().join("driver")) else { return };
    let output = with_driver(&machine, &group("greedy", "", &[asking("a", 2), asking("b", 1)]));
    assert_eq!(code(&output), 2, "{}", shown(&output));
    assert!(shown(&output).contains("requests 3 GPUs, but this machine has 2"), "{}", shown(&output));
    assert!(!machine.data().join("groups/greedy").exists());
}

#[test]
fn a_group_that_requests_gpus_runs_without_any_with_gpus_none() {
    let Some(machine) = machine() else { return };
    let root = machine.path().join("no-driver");
    fs::create_dir_all(&root).unwrap();
    let file = machine.write(&group("cards", "", &[asking("a", 1), container("b", "sleep 1000", "")]));
    let arguments = ["up", "-f", &file, "-d", "--network", "none", "--driver-root", root.to_str().unwrap()];
    let output = machine.run(&arguments);
    assert_ne!(code(&output), 0, "{}", shown(&output));
    assert!(shown(&output).contains("a requests a GPU"), "{}", shown(&output));
    assert!(
        shown(&output).contains("hint: run the group without GPUs: `cudock up --gpus none`"),
        "{}",
        shown(&output)
    );
    let output = machine.run(&[&arguments[..], &["--gpus", "none"]].concat());
    assert_eq!(code(&output), 0, "{}", shown(&output));
    assert!(
        shown(&output).contains("note: a: runs without GPUs, although it requests 1"),
        "{}",
        shown(&output)
    );
    assert_eq!(machine.good(&["exec", "cards/a", "sh", "-c", "ls /dev | grep -c nvidia; true"]), "0\n");
}
