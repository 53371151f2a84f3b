//! `cudock cdi` as a user types it, on trees, and its hook as engines call it.

use std::fs;

use cudock_testkit::driver_tree::{DEBIAN, DriverTree, can_make_devices, debian};

use crate::support::{code, json, run, run_with_input, shown};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_driver_is_written_to_standard_output_in_either_form() {
    if !can_make_devices() {
        return;
    }
    let tree = debian();
    let root = tree.path().to_str().unwrap();
    let yaml = run(&["cdi", "--root", root]);
    assert_eq!(code(&yaml), 0, "{}", shown(&yaml));
    assert!(
        text(&yaml.stdout).starts_with("---\ncdiVersion: 0.5.0\nkind: nvidia.com/gpu\n"),
        "{}",
        shown(&yaml)
    );
    let object = json(&run(&["cdi", "--root", root, "--format", "json", "--vendor", "example.org"]));
    assert_eq!(object["kind"], "example.org/gpu");
    assert_eq!(object["devices"][0]["name"], "0");
}

#[test]
fn a_file_is_written_whole_in_the_form_its_name_asks_for() {
    if !can_make_devices() {
        return;
    }
    let tree = debian();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("new/nvidia.json");
    let output = run(&["cdi", "--root", tree.path().to_str().unwrap(), "--output", file.to_str().unwrap()]);
    assert_eq!(code(&output), 0, "{}", shown(&output));
    assert!(output.stdout.is_empty(), "{}", shown(&output));
    serde_json::from_str::<serde_json::Value>(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn no_driver_is_the_outsides_fault_and_a_bad_word_the_callers() {
    let empty = DriverTree::new();
    let root = empty.path().to_str().unwrap();
    let none = run(&["cdi", "--root", root, "--dev-root", root]);
    assert_eq!(code(&none), 3, "{}", shown(&none));
    assert!(text(&none.stderr).contains("no NVIDIA driver found below"), "{}", shown(&none));
    assert!(text(&none.stderr).contains("hint: "), "{}", shown(&none));
    if can_make_devices() {
        let tree = debian();
        let bad = run(&["cdi", "--root", tree.path().to_str().unwrap(), "--capabilities", "computer"]);
        assert_eq!(code(&bad), 2, "{}", shown(&bad));
        assert!(text(&bad.stderr).contains("did you mean `compute`?"), "{}", shown(&bad));
    }
    let missing = run(&["cdi", "--root", "/nowhere/at/all"]);
    assert_eq!(code(&missing), 2, "{}", shown(&missing));
}

#[test]
fn a_stale_file_is_found_and_a_fresh_one_is_not() {
    if !can_make_devices() {
        return;
    }
    let tree = debian();
    let root = tree.path().to_str().unwrap().to_owned();
    let check = |arguments: &[&str]| run(&[&["cdi", "check", "--root", &root], arguments].concat());
    let none = check(&[]);
    assert_eq!(code(&none), 0);
    assert!(
        text(&none.stdout).starts_with("no CDI specification in /etc/cdi, /var/run/cdi"),
        "{}",
        shown(&none)
    );

    let written = text(&run(&["cdi", "--root", &root]).stdout);
    // As it would be on the machine itself, with the command where its hooks look for it.
    let base = tree.at("/").display().to_string();
    let fresh = written.replace(&base, "/").replace(env!("CARGO_BIN_EXE_cudock"), "/usr/bin/cudock");
    let tree = tree.program("/usr/bin/cudock").file("/etc/cdi/nvidia.yaml", &fresh);
    let good = check(&[]);
    assert_eq!((code(&good), text(&good.stdout).as_str()), (0, "ok  /etc/cdi/nvidia.yaml\n"));

    let _tree = tree.without("/usr/bin/nvidia-smi");
    let stale = check(&[]);
    assert_eq!(code(&stale), 1, "{}", shown(&stale));
    assert!(text(&stale.stdout).contains("mounted files not found"), "{}", shown(&stale));
    assert!(text(&stale.stdout).contains("fix: regenerate it: cudock cdi --output /etc/cdi/nvidia.yaml"));
    let object = json(&check(&["--format", "json"]));
    assert_eq!(object["schema"], 1);
    assert_eq!(object["findings"][0]["severity"], "error");
    assert_eq!(object["specifications"][0], "/etc/cdi/nvidia.yaml");
}

#[test]
fn a_file_that_is_not_a_regular_one_is_reported_and_not_waited_for() {
    if !can_make_devices() {
        return;
    }
    let tree = debian().file("/etc/cdi/other.yaml", "");
    let root = tree.path().to_str().unwrap().to_owned();
    let fifo = tree.at("/etc/cdi/pipe.yaml");
    assert!(std::process::Command::new("mkfifo").arg(fifo).status().unwrap().success());
    let output = run(&["cdi", "check", "--root", &root]);
    assert_eq!(code(&output), 1, "{}", shown(&output));
    assert!(text(&output.stdout).contains("cannot be read: not a regular file"), "{}", shown(&output));
}

#[test]
fn the_hook_reads_the_containers_state_from_standard_input() {
    let bundle = DriverTree::new()
        .file("/config.json", r#"{"root": {"path": "rootfs"}}"#)
        .directory(&format!("/rootfs{DEBIAN}"));
    let state = format!(r#"{{"ociVersion": "1.0.2", "id": "x", "bundle": "{}"}}"#, bundle.at("/").display());
    let link = format!("libcuda.so.1::{DEBIAN}/libcuda.so");
    let done = run_with_input(&["cdi-hook", "create-symlinks", "--link", &link], state.as_bytes());
    assert_eq!(code(&done), 0, "{}", shown(&done));
    assert!(bundle.at(&format!("/rootfs{DEBIAN}/libcuda.so")).is_symlink());
    let library = format!("64::libcuda.so.1::{DEBIAN}/libcuda.so.1");
    let arguments = ["cdi-hook", "update-ldcache", "--library", &library, "--driver", "580.159.04"];
    let done = run_with_input(&arguments, state.as_bytes());
    assert_eq!(code(&done), 0, "{}", shown(&done));
    assert!(bundle.at("/rootfs/etc/ld.so.cache").exists());
    let bad = run_with_input(&["cdi-hook", "update-application-profile"], b"no state");
    assert_eq!(code(&bad), 2, "{}", shown(&bad));
}
