//! Targets, and messages for names that are not targets.

use std::collections::BTreeSet;

use super::workdir::{Directory, codes, finding};
use crate::support::{code, json, run, shown};

#[test]
fn each_target_has_its_result_in_the_order_of_the_arguments() {
    let directory = Directory::with_fixture("library.so");
    let arguments = [
        "library.so",
        "--gpu",
        "B200",
        "--gpu",
        "T4",
        "--sku",
        "Standard_NC40ads_H100_v5",
        "--driver",
        "580",
    ];
    let report = directory.report(&arguments);
    let answers: Vec<(&str, &str)> = report["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| (result["target"]["gpu"].as_str().unwrap(), result["verdict"].as_str().unwrap()))
        .collect();
    assert_eq!(answers, [("B200", "fails"), ("T4", "works"), ("H100-NVL", "works")]);
    assert_eq!(code(&directory.check(&arguments)), 1, "one that fails is enough");
    assert_eq!(code(&directory.check(&["library.so", "--gpu", "T4", "--gpu", "H100"])), 0);
}

#[test]
fn a_size_brings_its_card_and_its_name() {
    let directory = Directory::with_fixture("library.so");
    let result = directory.result(&["library.so", "--sku", "Standard_NC4as_T4_v3", "--driver", "580"]);
    assert_eq!(result["target"]["sku"], "Standard_NC4as_T4_v3");
    assert_eq!((&result["target"]["gpu"], &result["verdict"]), (&"T4".into(), &"works".into()));
}

#[test]
fn a_size_that_is_no_longer_on_sale_is_judged_with_a_warning() {
    let directory = Directory::with_fixture("library.so");
    let result = directory.result(&["library.so", "--sku", "Standard_NC6s_v3", "--driver", "580"]);
    assert_eq!(finding(&result, "CD0801")["severity"], "warning");
    assert_eq!(result["error"]["code"], 209);
}

#[test]
fn a_driver_that_was_not_named_is_assumed_and_reported() {
    let directory = Directory::with_fixture("default.fatbin");
    let assumed = directory.result(&["default.fatbin", "--gpu", "T4"]);
    assert_eq!(finding(&assumed, "CD0218")["severity"], "note");
    assert!(assumed["target"]["driver"].is_string());
    let named = directory.result(&["default.fatbin", "--gpu", "T4", "--driver", "580"]);
    assert_eq!(codes(&named), [""; 0]);
}

#[test]
fn a_card_of_another_maker_is_a_no_and_not_a_bad_call() {
    let result = Directory::with_fixture("library.so").result(&["library.so", "--gpu", "MI300X"]);
    assert_eq!((&result["verdict"], codes(&result)), (&"fails".into(), vec!["CD0105"]));
    assert!(result["error"]["code"].is_null());
}

#[test]
fn all_sizes_on_sale_are_judged_one_by_one() {
    let directory = Directory::with_fixture("library.so");
    let report = directory.report(&["library.so", "--all-skus", "--driver", "580"]);
    let results = report["results"].as_array().unwrap();
    let sizes: BTreeSet<&str> =
        results.iter().map(|result| result["target"]["sku"].as_str().unwrap()).collect();
    assert_eq!(sizes.len(), results.len(), "no size twice");
    assert!(sizes.contains("Standard_NC4as_T4_v3") && !sizes.contains("Standard_NC6s_v3"), "{sizes:?}");
    for result in results {
        let runs = matches!(result["verdict"].as_str().unwrap(), "works" | "jit");
        let gpu = result["target"]["gpu"].as_str().unwrap();
        // Of its code for 7.5 and 9.0 nothing runs on 7.0, 8.x and later cards, and nothing at all on AMD's.
        assert_eq!(runs, gpu == "T4" || gpu.starts_with("H100") || gpu == "H200", "{result:#}");
    }
}

#[test]
fn the_matrix_of_all_sizes_puts_those_alike_together_and_counts_them() {
    let directory = Directory::with_fixture("library.so");
    let arguments = ["library.so", "--all-skus", "--driver", "580"];
    let report = directory.report(&arguments);
    let results = report["results"].as_array().unwrap();
    let can =
        results.iter().filter(|result| matches!(result["verdict"].as_str(), Some("works" | "jit"))).count();
    let output = directory.check(&arguments);
    let text = shown(&output);
    assert_eq!(code(&output), 0, "one size that runs it is enough");
    assert!(text.ends_with(&format!("\n{can} of {} sizes can run it\n", results.len())), "{text}");
    // A block for each verdict: the verdict first, the sizes last.
    let blocks: Vec<&str> = text.split("\n\n").collect();
    for result in results {
        let size = result["target"]["sku"].as_str().unwrap();
        let named = |block: &&&str| block.split([',', ' ', '\n']).any(|word| word == size);
        let block = blocks.iter().find(named).unwrap_or_else(|| panic!("{size} is missing: {text}"));
        assert_eq!(block.split_whitespace().next(), result["verdict"].as_str(), "{block}");
    }
    let verdicts = blocks.iter().filter(|block| block.contains("Standard_"));
    let first = verdicts.clone().next().unwrap();
    assert!(first.starts_with("works"), "what runs comes first: {first}");
}

#[test]
fn all_sizes_are_a_no_where_none_can_run_it() {
    let directory = Directory::with("requirements.txt", "torch==2.6.0+cpu\n");
    let output = directory.check(&["requirements.txt", "--all-skus"]);
    assert_eq!(code(&output), 1);
    assert!(shown(&output).contains("\n0 of "), "{}", shown(&output));
}

#[test]
fn names_that_are_no_targets_are_refused_with_what_is_near() {
    let directory = Directory::with_fixture("library.so");
    for (arguments, expected) in [
        (["--gpu", "T5"], "did you mean `T4`"),
        (["--gpu", "H1000"], "H100"),
        (["--sku", "Standard_NC4as_T4_v2"], "`Standard_NC4as_T4_v3`"),
        (["--sku", "Standard_D4s_v5"], "cudock facts size"),
        (["--driver", "latest"], "`latest` is not a driver version"),
        (["--env", "CUDA_VISIBLE_DEVICES"], "--env NAME=VALUE"),
        (["--start", "magic"], "cdi"),
    ] {
        let shown = directory.refused(&[&["library.so", "--all-skus"], arguments.as_slice()].concat());
        assert!(shown.contains(expected), "{arguments:?}: {shown}");
    }
}

/// `cudock doctor` shows whether this machine has a card; where it has none, a target must be named.
#[test]
fn without_a_target_this_machine_is_meant_and_must_have_a_card() {
    let directory = Directory::with_fixture("library.so");
    let doctor = json(&run(&["doctor", "--format", "json"]));
    let has_card = !doctor["gpus"].as_array().unwrap().is_empty();
    let output = directory.check(&["library.so"]);
    if has_card {
        assert!(matches!(code(&output), 0 | 1), "{}", shown(&output));
        return;
    }
    let message = directory.refused(&["library.so"]);
    assert!(message.contains("no target was named, and this machine has no GPU"), "{message}");
    assert!(message.contains("hint: name one: --gpu T4"), "{message}");
    let result = directory.result(&["library.so", "--host"]);
    assert_eq!(result["verdict"], "fails");
    assert!(result["target"]["gpu"].is_null());
}
