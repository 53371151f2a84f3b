//! Images that are hostile to the GPU's files, with a driver that is only files and device nodes.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use super::canary::Canary;
use super::links::{mirror, replace};
use super::run;
use crate::containers::machine::{Machine, machine};
use crate::support::shown;

const VERSION: &str = "580.159.04";
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

/// A driver with one GPU; `None` where device nodes cannot be created.
fn driver(machine: &Machine) -> Option<PathBuf> {
    let root = machine.path().join("driver");
    for stem in ["libcuda", "libnvidia-ml"] {
        machine.write(&format!("driver/{LIBRARIES}/{stem}.so.{VERSION}"), b"\x7fELF\x02\x01 a library");
        symlink(format!("{stem}.so.{VERSION}"), root.join(LIBRARIES).join(format!("{stem}.so.1"))).unwrap();
    }
    let module =
        format!("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {VERSION}  Release Build\n");
    machine.write("driver/proc/driver/nvidia/version", module);
    machine.write("driver/proc/driver/nvidia/params", "ModifyDeviceFiles: 1\n");
    machine.write("driver/proc/sys/kernel/osrelease", "6.8.0-90-generic\n");
    let about = "Model: \t\t NVIDIA H200\nGPU UUID: \t GPU-0aaaaaaa-0000-0000-0000-000000000000\nDevice Minor: \t 0\n";
    machine.write("driver/proc/driver/nvidia/gpus/0000:00:00.0/information", about);
    fs::create_dir_all(root.join("dev")).unwrap();
    for (name, major, minor) in [
        ("nvidiactl", "195", "255"),
        ("nvidia0", "195", "0"),
        ("nvidia-uvm", "510", "0"),
        ("nvidia-uvm-tools", "510", "1"),
    ] {
        let made = Command::new("mknod").arg(root.join("dev").join(name)).args(["c", major, minor]).status();
        if !made.is_ok_and(|status| status.success()) {
            cudock_testkit::missing("device-nodes", "device nodes cannot be made here");
            return None;
        }
    }
    Some(root)
}

fn with_gpu(machine: &Machine, what: &str, more: &[&str], script: &str) -> std::process::Output {
    let options = [&["--gpus", "all", "--driver-root", "driver"], more].concat();
    run::sh(machine, what, &options, script)
}

#[test]
fn links_where_the_drivers_files_go_lead_nowhere_outside() {
    // CVE-2024-0132, CVE-2025-23359, CVE-2025-23267.
    for place in [
        "usr",
        "usr/lib",
        LIBRARIES,
        "usr/lib64",
        "usr/bin",
        "etc/ld.so.cache",
        "etc/ld.so.conf",
        "etc/ld.so.conf.d",
        "usr/local/cuda/compat",
        "usr/local/cuda",
        "lib64",
        "run",
        "var/run",
        "dev/nvidia0",
        "lib/firmware",
        "etc/nvidia",
    ] {
        let Some(machine) = machine() else { return };
        let Some(_) = driver(&machine) else { return };
        let canary = Canary::new();
        mirror(&machine, &canary);
        for to in [
            canary.path().to_owned(),
            canary.victim(),
            format!("../../../../../../../../..{}", canary.path()),
        ] {
            let what = format!("/{place} -> {to}");
            replace(&machine, place, &to);
            let output = with_gpu(&machine, &what, &[], &canary.raid());
            run::ran(&what, &output);
            canary.is_safe(&what, &output);
        }
    }
}

#[test]
fn a_hostile_loader_cache_neither_ends_us_nor_fills_memory() {
    let Some(machine) = machine() else { return };
    let Some(_) = driver(&machine) else { return };
    let canary = Canary::new();
    let head = b"glibc-ld.so.cache1.1";
    let with = |count: u32, size: u32, more: &[u8]| {
        [head.as_slice(), &count.to_le_bytes(), &size.to_le_bytes(), &[0; 20], more].concat()
    };
    for (what, bytes) in [
        ("nothing", Vec::new()),
        ("the head alone", head.to_vec()),
        ("as many entries as there can be", with(u32::MAX, 0, &[])),
        ("as much text as there can be", with(1, u32::MAX, &[0xff; 24])),
        ("entries that point far away", with(4, 16, &[0xff; 96])),
        (
            "noise",
            (0..65_536_u32).flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()).collect(),
        ),
        ("the old form", [b"ld.so-1.7.0\0".as_slice(), &[0xff; 64]].concat()),
    ] {
        machine.write("root/etc/ld.so.cache", bytes);
        let output = with_gpu(&machine, what, &[], "ls /dev/nvidia0");
        assert!(run::ran(what, &output), "{what}: {}", shown(&output));
        canary.is_safe(what, &output);
    }
    let cache = machine.root().join("etc/ld.so.cache");
    fs::remove_file(&cache).unwrap();
    assert!(Command::new("mkfifo").arg(&cache).status().unwrap().success());
    run::ran("a pipe", &with_gpu(&machine, "a pipe", &[], "true"));
    fs::remove_file(&cache).unwrap();
    fs::create_dir(&cache).unwrap();
    run::ran("a directory", &with_gpu(&machine, "a directory", &[], "true"));
    fs::remove_dir(&cache).unwrap();
    fs::File::create(&cache).unwrap().set_len(4 << 30).unwrap();
    assert!(run::ran("four gigabytes", &with_gpu(&machine, "four gigabytes", &[], "true")));
}

/// Runs when it is loaded: looks at every descriptor, and through it outside.
const LIBRARY: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
__attribute__((constructor)) static void begin(void) {
    char path[4200], text[4096];
    puts("loaded");
    for (int number = 3; number < 256; number++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", number);
        ssize_t size = readlink(path, text, sizeof text - 1);
        if (size < 0) continue;
        text[size] = 0;
        if (strncmp(text, "/evil/", 6)) printf("HELD %d %s\n", number, text);
        strcpy(path, ".");
        for (int step = 0; step < 16; step++) {
            strcat(path, "/..");
            strcpy(path + strlen(path), VICTIM);
            int file = openat(number, path, O_RDONLY);
            if (file >= 0 && (size = read(file, text, sizeof text - 1)) > 0) { text[size] = 0; puts(text); }
            path[strlen(path) - strlen(VICTIM)] = 0;
        }
    }
    fflush(stdout);
}
"#;

#[test]
fn the_images_own_libcuda_finds_nothing_open_when_the_gpu_is_verified() {
    // The query runs in a process of ours, inside the container, which does not execute another program.
    let Some(machine) = machine() else { return };
    let Some(_) = driver(&machine) else { return };
    let canary = Canary::new();
    let source = machine.write("evil.c", LIBRARY.replace("VICTIM", &format!("{:?}", canary.victim())));
    fs::create_dir_all(machine.root().join("evil")).unwrap();
    let library = machine.root().join("evil/libcuda.so.1");
    let made = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).output();
    if !made.is_ok_and(|output| output.status.success()) {
        cudock_testkit::missing("cc", "there is no C compiler that makes libraries");
        return;
    }
    let listed = Command::new("ldd").arg(&library).output().unwrap();
    for path in
        String::from_utf8_lossy(&listed.stdout).split_whitespace().filter(|word| word.starts_with('/'))
    {
        machine.write(&format!("root{path}"), fs::read(path).unwrap());
    }
    let options = ["--verify-gpu", "-e", "LD_LIBRARY_PATH=/evil"];
    let output = with_gpu(&machine, "verify", &options, "echo ran");
    assert!(shown(&output).contains("loaded"), "the attack did not begin: {}", shown(&output));
    canary.is_safe("verify", &output);
    assert!(!shown(&output).contains("HELD"), "{}", shown(&output));
}
