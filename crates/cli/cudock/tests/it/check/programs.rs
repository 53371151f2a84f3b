//! Programs and GPU code by itself, on cards and drivers that fit and that do not.

use super::workdir::{Directory, codes, finding};
use crate::support;

/// Fixture, arguments for the target, verdict, CUDA's error, the code of the first finding.
type Case = (&'static str, &'static [&'static str], &'static str, Option<u16>, Option<&'static str>);

const CASES: [Case; 18] = [
    // Machine code for 7.5 and 9.0, no PTX.
    ("library.so", &["--gpu", "T4", "--driver", "580"], "works", None, None),
    ("library.so", &["--gpu", "H100", "--driver", "580"], "works", None, None),
    ("library.so", &["--gpu", "RTX 4090", "--driver", "580"], "fails", Some(209), Some("CD0501")),
    ("library.so", &["--gpu", "V100", "--driver", "580"], "fails", Some(209), Some("CD0501")),
    ("library.so", &["--gpu", "B200", "--driver", "580"], "fails", Some(209), Some("CD0501")),
    // Cards that the driver does not know yet, or no longer.
    ("library.so", &["--gpu", "B200", "--driver", "535"], "fails", Some(100), Some("CD0216")),
    ("library.so", &["--gpu", "V100", "--driver", "595"], "fails", Some(100), Some("CD0209")),
    // The same, linked on the device side: what is missing is a symbol.
    ("device-linked.so", &["--gpu", "H100", "--driver", "580"], "works", None, None),
    ("device-linked.so", &["--gpu", "B200", "--driver", "580"], "fails", Some(500), Some("CD0501")),
    // PTX 9.4 for 8.0 and nothing else.
    ("ptx-options.fatbin", &["--gpu", "H100", "--driver", "615"], "jit", None, Some("CD0502")),
    ("ptx-options.fatbin", &["--gpu", "H100", "--driver", "535"], "fails", Some(222), Some("CD0503")),
    ("ptx-options.fatbin", &["--gpu", "T4", "--driver", "615"], "fails", Some(209), Some("CD0501")),
    (
        "ptx-options.fatbin",
        &["--gpu", "H100", "--driver", "615", "--env", "CUDA_DISABLE_PTX_JIT=1"],
        "fails",
        Some(223),
        Some("CD0505"),
    ),
    // Machine code for 9.0 beside PTX for later cards.
    ("default.fatbin", &["--gpu", "H200", "--driver", "535"], "works", None, None),
    ("default.fatbin", &["--gpu", "RTX 5090", "--driver", "615"], "jit", None, Some("CD0502")),
    ("default.fatbin", &["--gpu", "RTX 5090", "--driver", "610"], "fails", Some(222), Some("CD0503")),
    // Code for one card alone.
    ("sm_90a.cubin", &["--gpu", "H200", "--driver", "580"], "works", None, None),
    ("sm_90a.cubin", &["--gpu", "B200", "--driver", "580"], "fails", Some(209), Some("CD0501")),
];

#[test]
fn machine_code_and_ptx_are_judged_by_card_and_driver() {
    for (name, arguments, verdict, error, code) in CASES {
        let result = Directory::with_fixture(name).result(&[&[name], arguments].concat());
        let place = format!("{name} {arguments:?}: {result:#}");
        assert_eq!(result["verdict"], verdict, "{place}");
        assert_eq!(result["error"]["code"].as_u64(), error.map(u64::from), "{place}");
        assert_eq!(codes(&result).first().copied(), code, "{place}");
    }
}

#[test]
fn code_in_groups_needs_a_driver_that_opens_them() {
    let directory = Directory::with_fixture("concat.fatbin");
    let verdict =
        |driver| directory.result(&["concat.fatbin", "--gpu", "H100", "--driver", driver])["verdict"].clone();
    assert_eq!(verdict("615"), "works");
    assert_eq!(verdict("580"), "fails");
}

#[test]
fn what_fails_names_its_error_its_file_and_a_fix() {
    let directory = Directory::with_fixture("library.so");
    let result = directory.result(&["library.so", "--gpu", "V100", "--driver", "580"]);
    assert_eq!(result["error"]["name"], "cudaErrorNoKernelImageForDevice");
    let finding = finding(&result, "CD0501");
    assert_eq!(finding["severity"], "error");
    assert!(finding["evidence"][0]["path"].as_str().unwrap().ends_with("/library.so"), "{finding}");
    assert_eq!(finding["evidence"][0]["detail"], "has sm_75 sm_90");
    assert!(finding["fix"].as_str().unwrap().contains("arch=compute_70,code=sm_70"), "{finding}");
}

#[test]
fn json_has_the_shape_that_others_rely_on() {
    let directory = Directory::with_fixture("default.fatbin");
    let arguments = ["default.fatbin", "--gpu", "H200", "--gpu", "V100", "--driver", "580.159.04"];
    let report = directory.report(&arguments);
    assert_eq!(report["schema"], 1);
    assert_eq!(report["subject"], "default.fatbin");
    let results = report["results"].as_array().unwrap();
    assert_eq!(
        results[0]["target"],
        serde_json::json!({"gpu": "H200", "capability": "9.0", "driver": "580.159.04", "cuda": "13.0", "sku": null})
    );
    assert!(results[0].as_object().unwrap()["error"].is_null(), "the key is there, and holds nothing");
    assert_eq!(results[0]["findings"], serde_json::json!([]));
    let error = &results[1]["error"];
    assert_eq!((&error["code"], &error["name"]), (&209.into(), &"cudaErrorNoKernelImageForDevice".into()));
    for finding in results[1]["findings"].as_array().unwrap() {
        for key in ["code", "severity", "message", "fix"] {
            assert!(finding[key].as_str().is_some_and(|text| !text.is_empty()), "{key}: {finding}");
        }
        for seen in finding["evidence"].as_array().unwrap() {
            assert!(seen["path"].is_string() && seen["detail"].is_string(), "{finding}");
        }
    }
    assert!(results.iter().all(|result| result.get("rules").is_none()), "rules are for --explain");
}

#[test]
fn rules_are_explained_with_the_option_explain() {
    let directory = Directory::with_fixture("default.fatbin");
    let arguments = ["default.fatbin", "--gpu", "T4", "--driver", "580"];
    let result = directory.result(&[arguments.as_slice(), &["--explain"]].concat());
    let rules: Vec<&str> =
        result["rules"].as_array().unwrap().iter().map(|used| used["rule"].as_str().unwrap()).collect();
    assert_eq!(rules, ["Q2", "L1", "S1"]);
    assert!(!directory.report_text(&arguments).contains("rules applied"));
}

#[test]
fn a_library_and_a_variable_that_hides_every_card() {
    let directory = Directory::with_fixture("library.so");
    let arguments = ["library.so", "--gpu", "T4", "--driver", "580", "--env", "CUDA_VISIBLE_DEVICES=-1"];
    let result = directory.result(&arguments);
    assert_eq!((&result["verdict"], &result["error"]["code"]), (&"fails".into(), &100.into()));
    assert_eq!(codes(&result), ["CD0109"]);
}

#[test]
fn the_variables_of_the_caller_count_on_this_machine_only() {
    let directory = Directory::with_fixture("library.so");
    let mut command =
        directory.command(&["library.so", "--gpu", "T4", "--driver", "580", "--format", "json"]);
    let output = support::schema::output(command.env("CUDA_VISIBLE_DEVICES", "-1"));
    assert_eq!(support::json(&output)["results"][0]["verdict"], "works");
}
