//! `cudock inspect` and `cudock slim` as a user types them.

use crate::support::{code, json, run, shown, zip};

fn fixture(name: &str) -> String {
    format!("{}/../../gpu/fatbin/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// The text of the report, without the directory of the fixtures.
fn report_text(arguments: &[&str]) -> String {
    shown(&run(arguments)).replace(&fixture(""), "")
}

#[test]
fn a_library() {
    insta::assert_snapshot!(report_text(&["inspect", &fixture("library.so")]));
}

#[test]
fn ptx_of_device_linked_parts_is_in_the_summary() {
    insta::assert_snapshot!(report_text(&["inspect", &fixture("device-linked-ptx.so")]));
    let report = json(&run(&["inspect", &fixture("device-linked-ptx.so"), "--format", "json"]));
    assert_eq!(report["files"][0]["gpu_code"]["device_link_ptx"], serde_json::json!(["compute_75"]));
}

#[test]
fn kernels() {
    insta::assert_snapshot!(report_text(&["inspect", "--kernels", &fixture("sm_90a.cubin")]));
}

#[test]
fn a_directory() {
    let report = json(&run(&["inspect", &fixture(""), "--format", "json"]));
    assert_eq!(report["schema"], 1);
    assert_eq!(report["files"].as_array().unwrap().len(), 19, "the text file is passed over");
    assert!(report["errors"].as_array().unwrap().is_empty());
}

#[test]
fn json_has_the_shape_that_others_rely_on() {
    let report = json(&run(&["inspect", &fixture("default.fatbin"), "--format", "json"]));
    let file = &report["files"][0];
    assert_eq!(file["size"], 20032);
    assert_eq!(file["gpu_code"]["modules"], 1);
    let entries = file["gpu_code"]["entries"].as_array().unwrap();
    assert_eq!(entries[0]["kind"], "sass");
    assert_eq!(entries[0]["arch"], "sm_75");
    assert_eq!(entries[0]["count"], 1);
    assert_eq!(entries[3]["arch"], "compute_90");
    assert_eq!(entries[3]["ptx_isa"], "9.4");
}

#[test]
fn a_wheel_is_listed_without_being_unpacked() {
    // Two files stored one after the other and a directory of them, as the zip format has it.
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("code-1.0-py3-none-any.whl");
    std::fs::write(
        &path,
        zip(&[("code/lib.so", &std::fs::read(fixture("library.so")).unwrap()), ("code/x.py", b"x=1")]),
    )
    .unwrap();
    let report = json(&run(&["inspect", path.to_str().unwrap(), "--format", "json"]));
    let files = report["files"].as_array().unwrap();
    assert_eq!(files.len(), 1, "what holds no code is passed over");
    assert!(files[0]["path"].as_str().unwrap().ends_with("code-1.0-py3-none-any.whl!/code/lib.so"));
    assert_eq!(files[0]["soname"], "library.so.1");
}

#[test]
fn a_file_of_another_kind() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes.txt");
    std::fs::write(&path, "text").unwrap();
    let output = run(&["inspect", path.to_str().unwrap()]);
    assert_eq!(code(&output), 2);
    assert!(
        shown(&output).contains("not an ELF file, an archive, a fat binary or a cubin"),
        "{}",
        shown(&output)
    );
}

#[test]
fn a_truncated_file_is_reported_with_its_position() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cut.fatbin");
    let bytes = std::fs::read(fixture("default.fatbin")).unwrap();
    std::fs::write(&path, &bytes[..1000]).unwrap();
    let output = run(&["inspect", path.to_str().unwrap()]);
    assert_eq!(code(&output), 2);
    assert!(
        shown(&output).contains("at offset 0x8: container claims 20016 bytes, but 984 are left"),
        "{}",
        shown(&output)
    );
}

#[test]
fn a_file_that_does_not_exist() {
    insta::assert_snapshot!(shown(&run(&["inspect", "/nowhere/lib.so"])));
}

#[test]
fn slim_keeps_what_the_card_needs() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("slim.fatbin");
    let out = out.to_str().unwrap();
    let report =
        json(&run(&["slim", &fixture("default.fatbin"), "-o", out, "--for", "T4", "--format", "json"]));
    assert_eq!(report["targets"]["T4"], "7.5");
    assert_eq!(report["files"][0]["bytes_after"], report["files"][0]["bytes_before"]);
    assert!(report["total"]["gpu_code_after"].as_u64() < report["total"]["gpu_code_before"].as_u64());
    assert_eq!(report["no_longer_runs_on"]["9.0"], 1);
    let listed = json(&run(&["inspect", out, "--format", "json"]));
    let entries = listed["files"][0]["gpu_code"]["entries"].as_array().unwrap();
    assert_eq!((entries.len(), &entries[0]["arch"]), (1, &"sm_75".into()));
}

#[test]
fn slim_takes_sizes_of_azure_and_targets_too() {
    for target in ["Standard_NC4as_T4_v3", "sm_75", "NVIDIA T4"] {
        let report = json(&run(&[
            "slim",
            &fixture("default.fatbin"),
            "--dry-run",
            "--for",
            target,
            "--format",
            "json",
        ]));
        assert_eq!(report["targets"][target], "7.5");
    }
}

#[test]
fn a_dry_run_writes_nothing_and_reports_everything() {
    let before = std::fs::read(fixture("default.fatbin")).unwrap();
    insta::assert_snapshot!(report_text(&[
        "slim",
        &fixture("default.fatbin"),
        "--dry-run",
        "--for",
        "T4,H100"
    ]));
    assert!(std::fs::read(fixture("default.fatbin")).unwrap() == before);
}

#[test]
fn slim_replaces_its_input_only_with_in_place() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("code.fatbin");
    std::fs::copy(fixture("default.fatbin"), &path).unwrap();
    let path = path.to_str().unwrap();
    assert_eq!(code(&run(&["slim", path, "-o", path, "--for", "T4"])), 2);
    assert_eq!(code(&run(&["slim", path, "--for", "T4"])), 2, "neither output nor in place");
    assert!(std::fs::read(path).unwrap() == std::fs::read(fixture("default.fatbin")).unwrap());
    assert_eq!(code(&run(&["slim", path, "--in-place", "--for", "T4"])), 0);
    assert!(std::fs::read(path).unwrap() != std::fs::read(fixture("default.fatbin")).unwrap());
}

#[test]
fn a_target_that_does_not_exist() {
    insta::assert_snapshot!(report_text(&["slim", &fixture("default.fatbin"), "--dry-run", "--for", "T5"]));
}

#[test]
fn a_card_of_another_maker() {
    let output = run(&["slim", &fixture("default.fatbin"), "--dry-run", "--for", "MI300X"]);
    assert_eq!(code(&output), 2);
    assert!(shown(&output).contains("not an NVIDIA GPU"));
}

#[test]
fn slim_for_a_card_the_file_has_no_code_for_is_refused_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("code.fatbin");
    std::fs::copy(fixture("default.fatbin"), &path).unwrap();
    let output = run(&["slim", path.to_str().unwrap(), "--in-place", "--for", "T4,K80"]);
    assert_eq!(code(&output), 2);
    assert!(shown(&output).contains("runs on K80 (3.7): no file was changed"), "{}", shown(&output));
    assert!(std::fs::read(&path).unwrap() == std::fs::read(fixture("default.fatbin")).unwrap());
}

#[test]
fn slim_for_a_target_that_no_gpu_has_is_refused() {
    for target in ["sm_999", "sm_74"] {
        let output = run(&["slim", &fixture("default.fatbin"), "--dry-run", "--for", target]);
        assert_eq!(code(&output), 2);
        assert!(shown(&output).contains(&format!("unknown target `{target}`")), "{}", shown(&output));
    }
}

#[test]
fn slim_drops_machine_code_that_a_closer_target_dominates() {
    let report = json(&run(&[
        "slim",
        &fixture("variants.fatbin"),
        "--dry-run",
        "--for",
        "sm_103",
        "--format",
        "json",
    ]));
    let removed = report["files"][0]["removed"].as_object().unwrap();
    assert!(removed.contains_key("sm_100f"), "sm_103 code is closer: {report:#}");
    assert!(!removed.keys().any(|target| target.starts_with("sm_103")), "{report:#}");
}

#[test]
fn slim_reports_a_full_disk_as_such() {
    // A file system of its own, smaller than the result.
    let directory = tempfile::tempdir().unwrap();
    let wheel = directory.path().join("code-1.0-py3-none-any.whl");
    let noise: Vec<u8> = (0..900_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let library = std::fs::read(fixture("library.so")).unwrap();
    std::fs::write(&wheel, zip(&[("code/lib.so", &library), ("code/data.bin", &noise)])).unwrap();
    let script = format!(
        "mkdir {0}/small && mount -t tmpfs -o size=256k none {0}/small && exec {1} slim {2} -o {0}/small/out.whl --for T4",
        directory.path().display(),
        env!("CARGO_BIN_EXE_cudock"),
        wheel.display(),
    );
    let output =
        std::process::Command::new("unshare").args(["-m", "-r", "sh", "-c", &script]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("No space left on device"), "{text}");
    assert!(!text.contains("ZipWriter") && !text.contains("StorageFull"), "{text}");
}
