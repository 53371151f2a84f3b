//! `cudock check` as a user types it: here what is shown, and in the modules what programs read.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail loudly"
)]

mod check_support;
mod support;

#[path = "check_support/declared.rs"]
mod declared;
#[path = "check_support/images.rs"]
mod images;
#[path = "check_support/libcuda.rs"]
mod libcuda;
#[path = "check_support/packages.rs"]
mod packages;
#[path = "check_support/programs.rs"]
mod programs;
#[path = "check_support/real.rs"]
mod real;
#[path = "check_support/registries.rs"]
mod registries;
#[path = "check_support/sarif.rs"]
mod sarif;
#[path = "check_support/subjects.rs"]
mod subjects;
#[path = "check_support/targets.rs"]
mod targets;

use check_support::Folder;
use check_support::layout::{Image, folder_with, torch};
use support::{code, run, shown};

#[test]
fn gpu_code_on_two_cards() {
    let folder = Folder::with_fixture("default.fatbin");
    insta::assert_snapshot!(folder.told(&[
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
fn the_rules_behind_a_verdict() {
    let folder = Folder::with_fixture("default.fatbin");
    insta::assert_snapshot!(folder.told(&[
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
    let folder = folder_with(Image::new().layer(torch("2.15.0", Some("13.2"))));
    insta::assert_snapshot!(folder.told(&["oci:image", "--gpu", "H100", "--driver", "595.91.07"]));
}

#[test]
fn a_folder_without_anything_for_a_gpu() {
    let folder = Folder::with("site/readme.md", "Nothing here.\n");
    insta::assert_snapshot!(folder.told(&["site", "--gpu", "T4", "--driver", "580"]));
}

#[test]
fn a_card_that_does_not_exist() {
    let folder = Folder::with_fixture("library.so");
    insta::assert_snapshot!(folder.told(&["library.so", "--gpu", "T5"]));
}

#[test]
fn a_size_that_does_not_exist() {
    let folder = Folder::with_fixture("library.so");
    insta::assert_snapshot!(folder.told(&["library.so", "--sku", "Standard_NC4as_T4_v2"]));
}

#[test]
fn a_text_of_no_kind() {
    let folder = Folder::with("notes.md", "# Notes\n");
    insta::assert_snapshot!(folder.told(&["notes.md", "--gpu", "T4"]));
}

#[test]
fn an_image_that_is_not_in_the_cache() {
    let folder = Folder::new();
    insta::assert_snapshot!(folder.told(&["registry.example/team/app:1.4", "--gpu", "T4", "--offline"]));
}

#[test]
fn every_code_that_is_reported_has_a_page() {
    let (own, host) = (cudock_compat::codes::ALL, cudock_host::checks::codes::ALL);
    assert!(own.len() > 30 && host.len() > 30);
    for finding in own.iter().chain(host) {
        let output = run(&["explain", finding]);
        let page = shown(&output);
        assert_eq!(code(&output), 0, "{finding}: {page}");
        assert!(page.contains(finding), "{finding}: {page}");
    }
}
