//! Newer tables laid over the embedded ones, and what happens to broken ones.

use std::fs;

use crate::support::{self, code, json, run, shown};

fn overlay(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(directory.path().join(name), text).unwrap();
    }
    directory
}

const NEW_GPU: &str = r#"
[table]
as_of = "2027-01-10"
[table.sources]
A = "https://example.org/announcement"

[[gpu]]
id = "R100"
names = ["NVIDIA R100"]
vendor = "nvidia"
capability = "10.7"
architecture = "Rubin"
class = "datacenter"
memory_gb = [288]
forward_compat = "yes"
pci_ids = []
source = ["A"]
"#;

fn facts(directory: &tempfile::TempDir, arguments: &[&str]) -> std::process::Output {
    let path = directory.path().to_str().unwrap();
    run(&[&["--facts", path, "facts"], arguments].concat())
}

/// The text of the report, without the name of the temporary directory.
fn report_text(directory: &tempfile::TempDir, arguments: &[&str]) -> String {
    shown(&facts(directory, arguments)).replace(directory.path().to_str().unwrap(), "DIR")
}

#[test]
fn a_new_row_is_found_and_the_old_ones_stay() {
    let directory = overlay(&[("gpus.toml", NEW_GPU)]);
    assert_eq!(code(&facts(&directory, &["gpu", "R100"])), 0);
    assert_eq!(code(&facts(&directory, &["gpu", "T4"])), 0);
    let report = json(&facts(&directory, &["gpu", "R100", "--format", "json"]));
    assert_eq!(report["tables"][0]["as_of"], "2027-01-10");
}

#[test]
fn the_variable_does_what_the_option_does() {
    let directory = overlay(&[("gpus.toml", NEW_GPU)]);
    let output =
        support::cudock(&["facts", "gpu", "R100"]).env("CUDOCK_FACTS", directory.path()).output().unwrap();
    assert_eq!(code(&output), 0, "{}", shown(&output));
}

#[test]
fn a_table_that_replaces_leaves_the_old_rows_out() {
    let text = NEW_GPU.replace("as_of =", "replace = true\nas_of =");
    // Sizes and profiles name GPUs that are now gone: the error blames the overlay.
    let directory = overlay(&[("gpus.toml", &text)]);
    let output = facts(&directory, &["gpu", "R100"]);
    assert_eq!(code(&output), 0, "{}", shown(&output));
    assert_eq!(code(&facts(&directory, &["gpu", "T4"])), 2);
}

#[test]
fn newer_prices_take_the_place_of_all_older_ones() {
    let prices = "# as_of: 2027-01-01\n# source refresh = https://example.org/prices\n\
                  size,region,price,spot,price_source,price_date,spot_source,spot_date\n\
                  Standard_NC4as_T4_v3,westeurope,0.7,,refresh,2027-01-01,,\n";
    let directory = overlay(&[("azure_prices.csv", prices)]);
    let report = json(&facts(&directory, &["size", "Standard_NC4as_T4_v3", "--format", "json"]));
    assert_eq!(report["rows"][0]["prices"].as_array().unwrap().len(), 1);
    assert_eq!(report["rows"][0]["prices"][0]["price"], 0.7);
}

#[test]
fn a_value_that_does_not_fit_is_shown_in_its_place() {
    let directory = overlay(&[("gpus.toml", &NEW_GPU.replace("\"10.7\"", "\"10.x\""))]);
    insta::assert_snapshot!(report_text(&directory, &["gpu"]));
}

#[test]
fn an_unknown_field_is_shown_in_its_place() {
    let directory = overlay(&[("gpus.toml", &NEW_GPU.replace("class =", "clas = 1\nclass ="))]);
    insta::assert_snapshot!(report_text(&directory, &["gpu"]));
}

#[test]
fn toml_that_breaks_off_is_shown_in_its_place() {
    let directory = overlay(&[("drivers.toml", "[table]\nas_of = \"2027-01-01\"\n[[branch]]\nbranch = [\n")]);
    insta::assert_snapshot!(report_text(&directory, &["gpu"]));
}

#[test]
fn a_row_without_a_source_is_shown_in_its_place() {
    let directory = overlay(&[("gpus.toml", &NEW_GPU.replace("[\"A\"]", "[]"))]);
    insta::assert_snapshot!(report_text(&directory, &["gpu"]));
}

#[test]
fn a_size_with_a_gpu_that_does_not_exist_is_shown_in_its_place() {
    let text = "[table]\nas_of = \"2027-01-01\"\n[[size]]\nname = \"Standard_X\"\ngpu = \"T44\"\ncpu_arch = \"x86_64\"\n\
                lifecycle = \"available\"\ndocumented = false\nsource = [\"https://example.org\"]\n";
    let directory = overlay(&[("azure_sizes.toml", text)]);
    insta::assert_snapshot!(report_text(&directory, &["gpu"]));
}

#[test]
fn a_broken_price_is_shown_in_its_place() {
    let prices = "# as_of: 2027-01-01\n# source refresh = https://example.org/prices\n\
                  size,region,price,spot,price_source,price_date,spot_source,spot_date\n\
                  Standard_NC4as_T4_v3,westeurope,NaN,,refresh,2027-01-01,,\n";
    let directory = overlay(&[("azure_prices.csv", prices)]);
    insta::assert_snapshot!(report_text(&directory, &["gpu"]));
}

#[test]
fn a_file_that_is_no_table_is_named() {
    let directory = overlay(&[("gpu.toml", NEW_GPU)]);
    insta::assert_snapshot!(report_text(&directory, &["gpu"]));
}

#[test]
fn a_pattern_that_cannot_be_searched_for_is_named() {
    let text = "[table]\nas_of = \"2027-01-01\"\n[[message]]\nid = \"mine\"\npattern = '\\d+'\nsample = \"1\"\nlayer = \"driver\"\n\
                phase = \"run\"\ntitle = \"t\"\ncause = \"c\"\nfix = [\"f\"]\nsource = [\"https://example.org\"]\n";
    let directory = overlay(&[("messages.toml", text)]);
    let path = directory.path().to_str().unwrap();
    let output = run(&["--facts", path, "explain", "some text"]);
    assert_eq!(code(&output), 2);
    assert!(String::from_utf8_lossy(&output.stderr).contains("message mine"), "{}", shown(&output));
}

#[test]
fn bytes_that_are_not_text_are_refused() {
    let directory = overlay(&[]);
    fs::write(directory.path().join("gpus.toml"), [0xff, 0xfe, 0x00, 0x80]).unwrap();
    assert_eq!(code(&facts(&directory, &["gpu"])), 2);
}

#[test]
fn a_directory_that_does_not_exist_is_named() {
    let output = run(&["--facts", "/nowhere/at/all", "facts"]);
    insta::assert_snapshot!(shown(&output));
}
