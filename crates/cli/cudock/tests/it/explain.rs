//! `cudock explain` as a user types it.

use crate::support::{code, json, run, run_with_input, shown};

const LOG: &str = "starting worker 0
Traceback (most recent call last):
  File \"train.py\", line 12, in <module>
    x = torch.zeros(1).cuda()
RuntimeError: The NVIDIA driver on your system is too old (found version 12020). Please update your GPU driver
worker 0 exited with 1
torch.cuda.is_available() returns False
";

#[test]
fn a_finding_code() {
    insta::assert_snapshot!(shown(&run(&["explain", "CD0304"])));
}

#[test]
fn a_finding_code_in_lower_case() {
    assert_eq!(run(&["explain", "cd0304"]).stdout, run(&["explain", "CD0304"]).stdout);
}

#[test]
fn a_finding_code_that_does_not_exist() {
    insta::assert_snapshot!(shown(&run(&["explain", "CD0309"])));
}

#[test]
fn a_cuda_error_number() {
    insta::assert_snapshot!(shown(&run(&["explain", "222"])));
}

#[test]
fn a_cuda_error_name() {
    assert_eq!(run(&["explain", "cudaErrorUnsupportedPtxVersion"]).stdout, run(&["explain", "222"]).stdout);
}

#[test]
fn a_message() {
    insta::assert_snapshot!(shown(&run(&[
        "explain",
        "Failed to initialize NVML: Driver/library version mismatch"
    ])));
}

#[test]
fn a_message_in_several_arguments() {
    let whole = run(&["explain", "No CUDA GPUs are available"]);
    assert_eq!(run(&["explain", "No", "CUDA", "GPUs", "are", "available"]).stdout, whole.stdout);
}

#[test]
fn a_log_on_standard_input_ranks_the_cause_before_the_symptom() {
    insta::assert_snapshot!(shown(&run_with_input(&["explain"], LOG.as_bytes())));
}

#[test]
fn a_driver_that_is_too_old_is_advised_what_it_starts() {
    let text =
        "The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver";
    let report = json(&run(&["explain", text, "--format", "json"]));
    let fixes = report["messages"][0]["fix"].as_array().unwrap();
    assert!(fixes[0].as_str().unwrap().contains("/whl/cu118"), "{fixes:?}");
    assert!(!fixes.iter().any(|fix| fix.as_str().unwrap().contains("cu126")), "{fixes:?}");
    let shown = String::from_utf8(run(&["explain", text]).stdout).unwrap();
    assert!(shown.contains("cu118") && !shown.contains("cu126"), "{shown}");
}

#[test]
fn a_table_of_nvidia_smi_is_read() {
    let table = "\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 470.57.02    Driver Version: 470.57.02    CUDA Version: 11.4     |
|-------------------------------+----------------------+----------------------+
|   0  Tesla V100-SXM2...  On   | 00000000:00:1B.0 Off |                    0 |
+-------------------------------+----------------------+----------------------+
";
    insta::assert_snapshot!(shown(&run_with_input(&["explain"], table.as_bytes())));
    let report = json(&run_with_input(&["explain", "--format", "json"], table.as_bytes()));
    assert_eq!(report["nvidia_smi"]["driver"], "470.57.02");
    assert_eq!(report["nvidia_smi"]["gpus"][0], "Tesla V100-SXM2...");
}

#[test]
fn what_people_quote_without_its_surroundings_is_known() {
    for text in [
        "unspecified launch failure",
        "misaligned address",
        "an illegal instruction was encountered",
        "invalid argument",
        "hardware stack error",
        "Xid 94",
        "xid: 119",
        "CUDA Setup failed",
        "no supported devices found",
        "manifest unknown",
        "nvidia-smi: command not found",
    ] {
        assert_eq!(code(&run(&["explain", text])), 0, "{text}");
    }
    assert_eq!(code(&run(&["explain", "Xid 9999"])), 1);
}

#[test]
fn a_cuda_error_without_a_message_of_its_own_has_a_fix() {
    insta::assert_snapshot!(shown(&run(&["explain", "719"])));
}

#[test]
fn a_driver_error_name_is_the_runtime_error_of_its_number() {
    assert_eq!(run(&["explain", "CUDA_ERROR_LAUNCH_FAILED"]).stdout, run(&["explain", "719"]).stdout);
}

#[test]
fn a_log_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("train.log");
    std::fs::write(&path, LOG).unwrap();
    let report = json(&run(&["explain", path.to_str().unwrap(), "--format", "json"]));
    assert_eq!(report["messages"][0]["id"], "torch-driver-too-old");
    assert_eq!(report["messages"][0]["line"], 5);
    assert_eq!(report["messages"][0]["cuda_code"], 35);
    assert_eq!(report["messages"][1]["symptom"], true);
    assert_eq!(report["lines"], 7);
}

#[test]
fn an_unknown_message_is_reported_with_exit_code_1() {
    insta::assert_snapshot!(shown(&run(&["explain", "segmentation fault in my own code"])));
}

#[test]
fn a_file_that_does_not_exist() {
    insta::assert_snapshot!(shown(&run(&["explain", "missing/train.log"])));
}

#[test]
fn a_directory_is_not_a_log() {
    assert_eq!(code(&run(&["explain", "/"])), 2);
}

#[test]
fn an_empty_input() {
    insta::assert_snapshot!(shown(&run_with_input(&["explain"], b"")));
}

#[test]
fn binary_garbage() {
    let garbage: Vec<u8> = (0..200_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let output = run_with_input(&["explain"], &garbage);
    insta::assert_snapshot!(shown(&output));
}

#[test]
fn a_compressed_log() {
    insta::assert_snapshot!(shown(&run_with_input(&["explain"], b"\x1f\x8b\x08\x00\x00\x00\x00\x00")));
}

#[test]
fn text_takes_a_file_name_as_a_message() {
    assert_eq!(code(&run(&["explain", "--text", "missing/train.log"])), 1);
}

#[test]
fn every_code_that_is_reported_has_a_page_and_every_page_a_code() {
    let facts = cudock_facts::Facts::embedded();
    let reported: std::collections::BTreeSet<&str> = [
        cudock_azure::codes::ALL,
        cudock_host::checks::codes::ALL,
        cudock_compat::codes::ALL,
        cudock_target::codes::ALL,
        cudock_plan::codes::ALL,
        cudock_migrate::codes::ALL,
        cudock_lint::codes::ALL,
        cudock_azure::preflight::codes::ALL,
    ]
    .concat()
    .into_iter()
    .chain(cudock_lint::rule_reports().iter().map(|rule| rule.code))
    .collect();
    let pages = facts.findings().finding.iter().map(|page| page.code.as_str()).collect();
    assert_eq!(reported, pages);
}
