//! `cudock check` as a user types it: here what is shown, and in the modules what programs read.

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
use layout::{Image, folder_with, torch};
use workdir::Folder;

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
fn several_targets_are_a_table_with_each_reason_once() {
    let folder = Folder::with("requirements.txt", "torch==2.5.1\ntorchvision==0.20.1\nacme-tools\n");
    insta::assert_snapshot!(folder.told(&[
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
    let folder = Folder::with("requirements.txt", "torch==2.15.0\n");
    insta::assert_snapshot!(folder.told(&[
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
    let folder = Folder::with("requirements.txt", "torch==2.0.1+cu118\ntorchvision==0.16.0+cu121\n");
    insta::assert_snapshot!(folder.told(&["requirements.txt", "--gpu", "A100", "--driver", "R525"]));
}

#[test]
fn a_driver_branch_whose_releases_differ() {
    let folder = Folder::with("requirements.txt", "torch==2.1.0\n");
    insta::assert_snapshot!(folder.told(&["requirements.txt", "--gpu", "A100", "--driver", "R525"]));
}

#[test]
fn a_container_group_points_to_the_verb_that_runs_it() {
    let group =
        "name: g\nproperties:\n  containers:\n  - name: a\n    properties:\n      image: team/app:1\n";
    let folder = Folder::with("group.yaml", group);
    let shown = folder.refused(&["group.yaml", "--gpu", "T4"]);
    assert!(shown.contains("hint: this is a container group: `cudock up -f group.yaml`"), "{shown}");
    folder.write("train.py", "vm_size = 'Standard_NC6s_v3'\n");
    let shown = folder.refused(&["train.py", "--gpu", "T4"]);
    assert!(shown.contains("`cudock migrate train.py`"), "{shown}");
    for file in ["group.yaml", "train.py"] {
        let output = support::cudock(&["plan", file]).current_dir(folder.path()).output().unwrap();
        let shown = support::shown(&output);
        assert_eq!(code(&output), 2, "{shown}");
        assert!(shown.contains("not a project file (cudock.toml)"), "{shown}");
        assert!(shown.contains("cudock up -f") || shown.contains("cudock migrate"), "{shown}");
    }
}

#[test]
fn a_size_is_named_by_one_word_in_check_and_plan() {
    let folder = Folder::with("requirements.txt", "torch==2.5.1\n");
    let words = |flag| ["requirements.txt", flag, "Standard_NC4as_T4_v3", "--driver", "580.95.05"];
    assert_eq!(folder.result(&words("--size"))["target"], folder.result(&words("--sku"))["target"]);
    let plan = |flag| {
        let words =
            ["plan", "--gpu", "T4", "--duration", "1h", flag, "Standard_NC4as_T4_v3", "--format", "json"];
        run(&words).stdout
    };
    assert_eq!(plan("--size"), plan("--sku"));
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
    let target = cudock_target::codes::ALL;
    assert!(own.len() > 30 && host.len() > 30);
    for finding in own.iter().chain(host).chain(target) {
        let output = run(&["explain", finding]);
        let page = shown(&output);
        assert_eq!(code(&output), 0, "{finding}: {page}");
        assert!(page.contains(finding), "{finding}: {page}");
    }
}
