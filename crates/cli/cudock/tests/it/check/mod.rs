//! `cudock check` as a user types it: here the text, and in the modules the formats for programs.

mod declared;
mod images;
mod layout;
mod libcuda;
mod packages;
mod programs;
mod real;
mod registries;
mod sarif;
mod subjects;
mod targets;
mod workdir;

use crate::support::{self, code, run, shown};
use layout::{Image, directory_with, torch};
use workdir::Directory;

#[test]
fn gpu_code_on_two_cards() {
    let directory = Directory::with_fixture("default.fatbin");
    insta::assert_snapshot!(directory.report_text(&[
        "default.fatbin",
        "--gpu",
        "T4",
        "--gpu",
        "V100",
        "--driver",
        "580.95.05"
    ]));
}

#[test]
fn several_targets_are_a_table_with_each_reason_once() {
    let directory = Directory::with("requirements.txt", "torch==2.5.1\ntorchvision==0.20.1\nacme-tools\n");
    insta::assert_snapshot!(directory.report_text(&[
        "requirements.txt",
        "--gpu",
        "A100",
        "--gpu",
        "T4",
        "--gpu",
        "RTX 5090",
        "--gpu",
        "B200",
        "--driver",
        "580.95.05"
    ]));
}

#[test]
fn several_targets_with_an_assumed_driver() {
    let directory = Directory::with("requirements.txt", "torch==2.15.0\n");
    insta::assert_snapshot!(directory.report_text(&[
        "requirements.txt",
        "--size",
        "Standard_NC4as_T4_v3",
        "--gpu",
        "A100",
        "--gpu",
        "V100"
    ]));
}

#[test]
fn packages_that_cannot_be_installed_together() {
    let directory = Directory::with("requirements.txt", "torch==2.0.1+cu118\ntorchvision==0.16.0+cu121\n");
    insta::assert_snapshot!(directory.report_text(&[
        "requirements.txt",
        "--gpu",
        "A100",
        "--driver",
        "R525"
    ]));
}

#[test]
fn a_driver_branch_whose_releases_differ() {
    let directory = Directory::with("requirements.txt", "torch==2.1.0\n");
    insta::assert_snapshot!(directory.report_text(&[
        "requirements.txt",
        "--gpu",
        "A100",
        "--driver",
        "R525"
    ]));
}

#[test]
fn a_container_group_points_to_the_verb_that_runs_it() {
    let group =
        "name: g\nproperties:\n  containers:\n  - name: a\n    properties:\n      image: team/app:1\n";
    let directory = Directory::with("group.yaml", group);
    let shown = directory.refused(&["group.yaml", "--gpu", "T4"]);
    assert!(shown.contains("hint: this is a container group: `cudock up -f group.yaml`"), "{shown}");
    directory.write("train.py", "vm_size = 'Standard_NC6s_v3'\n");
    let shown = directory.refused(&["train.py", "--gpu", "T4"]);
    assert!(shown.contains("`cudock migrate train.py`"), "{shown}");
    for file in ["group.yaml", "train.py"] {
        let output = support::cudock(&["plan", file]).current_dir(directory.path()).output().unwrap();
        let shown = support::shown(&output);
        assert_eq!(code(&output), 2, "{shown}");
        assert!(shown.contains("not a project file (cudock.toml)"), "{shown}");
        assert!(shown.contains("cudock up -f") || shown.contains("cudock migrate"), "{shown}");
    }
}

#[test]
fn a_size_is_named_by_one_word_in_check_and_plan() {
    let directory = Directory::with("requirements.txt", "torch==2.5.1\n");
    let arguments = |flag| ["requirements.txt", flag, "Standard_NC4as_T4_v3", "--driver", "580.95.05"];
    assert_eq!(
        directory.result(&arguments("--size"))["target"],
        directory.result(&arguments("--sku"))["target"]
    );
    let plan = |flag| {
        let arguments =
            ["plan", "--gpu", "T4", "--duration", "1h", flag, "Standard_NC4as_T4_v3", "--format", "json"];
        run(&arguments).stdout
    };
    assert_eq!(plan("--size"), plan("--sku"));
}

#[test]
fn the_rules_behind_a_verdict() {
    let directory = Directory::with_fixture("default.fatbin");
    insta::assert_snapshot!(directory.report_text(&[
        "default.fatbin",
        "--gpu",
        "B200",
        "--driver",
        "580",
        "--explain"
    ]));
}

#[test]
fn an_image_with_torch_that_works() {
    let directory = directory_with(Image::new().layer(torch("2.15.0", Some("13.2"))));
    insta::assert_snapshot!(directory.report_text(&["oci:image", "--gpu", "H100", "--driver", "595.91.07"]));
}

#[test]
fn a_directory_without_anything_for_a_gpu() {
    let directory = Directory::with("site/readme.md", "Nothing here.\n");
    insta::assert_snapshot!(directory.report_text(&["site", "--gpu", "T4", "--driver", "580"]));
}

#[test]
fn a_card_that_does_not_exist() {
    let directory = Directory::with_fixture("library.so");
    insta::assert_snapshot!(directory.report_text(&["library.so", "--gpu", "T5"]));
}

#[test]
fn a_size_that_does_not_exist() {
    let directory = Directory::with_fixture("library.so");
    insta::assert_snapshot!(directory.report_text(&["library.so", "--sku", "Standard_NC4as_T4_v2"]));
}

#[test]
fn a_text_of_no_kind() {
    let directory = Directory::with("notes.md", "# Notes\n");
    insta::assert_snapshot!(directory.report_text(&["notes.md", "--gpu", "T4"]));
}

#[test]
fn an_image_that_is_not_in_the_cache() {
    let directory = Directory::new();
    insta::assert_snapshot!(directory.report_text(&[
        "registry.example/team/app:1.4",
        "--gpu",
        "T4",
        "--offline"
    ]));
}

#[test]
fn every_code_that_is_reported_has_a_page() {
    let (own, host) = (cudock_compat::codes::ALL, cudock_host::checks::codes::ALL);
    let target = cudock_target::codes::ALL;
    assert!(own.len() > 30 && host.len() > 30);
    for finding in own.iter().chain(host).chain(target) {
        let output = run(&["explain", finding]);
        let page = shown(&output);
        assert_eq!(code(&output), 0, "{finding}: {page}");
        assert!(page.contains(finding), "{finding}: {page}");
    }
}
