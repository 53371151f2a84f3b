//! Images: the files in their layers, the requirements of their configuration, and their processor.

use cudock_testkit::tar::Tar;

use super::layout::{Image, SITE, directory_with, package, torch, write};
use super::workdir::{Directory, codes, finding};
use crate::support::{code, shown};

const GB200: &str = "Standard_ND128isr_NDR_GB200_v6";

#[test]
fn torch_is_judged_by_the_tables_where_its_libraries_are_not_in_the_image() {
    let directory = directory_with(Image::new().layer(torch("2.15.0", Some("13.2"))));
    let works = directory.result(&["oci:image", "--gpu", "H100", "--driver", "595"]);
    assert_eq!(works["verdict"], "works", "{works:#}");
    assert_eq!(works["artifacts"][0]["name"], "torch 2.15.0+cu132");
    assert!(
        works["artifacts"][0]["path"].as_str().unwrap().starts_with(&format!("/{SITE}/torch-2.15.0")),
        "{works:#}"
    );
    let fails = directory.result(&["oci:image", "--gpu", "V100", "--driver", "580"]);
    assert_eq!((&fails["verdict"], &fails["error"]["code"]), (&"fails".into(), &209.into()));
    assert!(finding(&fails, "CD0501")["fix"].as_str().unwrap().contains("cu126"), "{fails:#}");
}

#[test]
fn the_build_and_not_the_release_decides() {
    let directory = directory_with(Image::new().layer(torch("2.15.0", Some("12.6"))));
    assert_eq!(directory.result(&["oci:image", "--gpu", "V100", "--driver", "580"])["verdict"], "works");
    let new = directory.result(&["oci:image", "--gpu", "B200", "--driver", "580"]);
    assert_eq!(new["error"]["code"], 209, "{new:#}");
}

#[test]
fn a_driver_below_the_floor_of_torch_is_error_35() {
    let directory = directory_with(Image::new().layer(torch("2.15.0", Some("13.2"))));
    let result = directory.result(&["oci:image", "--gpu", "H100", "--driver", "535.161.08"]);
    assert_eq!(result["error"]["name"], "cudaErrorInsufficientDriver");
    assert_eq!(codes(&result), ["CD0402"]);
}

#[test]
fn a_cpu_build_of_torch_leaves_the_work_to_the_cpu() {
    let directory = directory_with(Image::new().layer(torch("2.15.0", None)));
    let result = directory.result(&["oci:image", "--gpu", "H100", "--driver", "595"]);
    assert_eq!((&result["verdict"], codes(&result)), (&"cpu".into(), vec!["CD0401"]));
}

#[test]
fn onnxruntime_without_its_libraries_uses_the_cpu_and_names_them() {
    let layer = package(Tar::default(), "onnxruntime-gpu", "1.22.0");
    let result =
        directory_with(Image::new().layer(layer)).result(&["oci:image", "--gpu", "T4", "--driver", "580"]);
    assert_eq!(result["verdict"], "cpu", "{result:#}");
    let finding = finding(&result, "CD0403");
    let seen = finding["evidence"].to_string();
    assert!(seen.contains("libcudnn.so.9") && seen.contains("libcublas.so.12"), "{finding:#}");
    assert!(finding["fix"].as_str().unwrap().contains("onnxruntime-gpu[cuda,cudnn]==1.22.0"), "{finding:#}");
}

#[test]
fn what_a_later_layer_deletes_is_gone() {
    let deleted = Tar::default()
        .file(&format!("{SITE}/.wh.torch"), "")
        .file(&format!("{SITE}/.wh.torch-2.15.0+cu132.dist-info"), "");
    let directory = directory_with(Image::new().layer(torch("2.15.0", Some("13.2"))).layer(deleted));
    let result = directory.result(&["oci:image", "--gpu", "H100", "--driver", "595"]);
    assert_eq!((&result["verdict"], codes(&result)), (&"cpu".into(), vec!["CD0609"]), "{result:#}");
}

#[test]
fn a_requirement_that_does_not_hold_stops_the_start_by_the_hook_and_not_by_cdi() {
    let image =
        Image::new().variable("NVIDIA_REQUIRE_CUDA", "cuda>=13.0").layer(torch("2.6.0", Some("12.4")));
    let directory = directory_with(image);
    let arguments = ["oci:image", "--gpu", "T4", "--driver", "535"];
    let with = |more: &[&str]| directory.result(&[arguments.as_slice(), more].concat());
    let hook = with(&[]);
    assert_eq!((&hook["verdict"], codes(&hook)), (&"fails".into(), vec!["CD0602"]));
    assert!(hook["error"]["code"].is_null(), "the error is the container runtime's: {hook:#}");
    assert!(
        hook["error"]["message"].as_str().unwrap().contains("unsatisfied condition: cuda>=13.0"),
        "{hook:#}"
    );
    let cdi = with(&["--start", "cdi"]);
    assert_eq!(cdi["verdict"], "works", "{cdi:#}");
    assert_eq!(finding(&cdi, "CD0611")["severity"], "warning");
    let disabled = with(&["--env", "NVIDIA_DISABLE_REQUIRE=1"]);
    assert_eq!(disabled["verdict"], "works", "{disabled:#}");
    assert!(!codes(&disabled).contains(&"CD0602"), "{disabled:#}");
    let newer = directory.result(&["oci:image", "--gpu", "T4", "--driver", "580"]);
    assert_eq!(newer["verdict"], "works", "{newer:#}");
}

#[test]
fn a_variable_of_the_start_wins_over_the_image_s_own() {
    let image = Image::new().variable("NVIDIA_VISIBLE_DEVICES", "void").layer(torch("2.6.0", Some("12.4")));
    let directory = directory_with(image);
    let arguments = ["oci:image", "--gpu", "T4", "--driver", "535"];
    let own = directory.result(&arguments);
    assert_eq!((&own["verdict"], codes(&own)), (&"fails".into(), vec!["CD0604"]));
    let given = directory.result(&[arguments.as_slice(), &["-e", "NVIDIA_VISIBLE_DEVICES=all"]].concat());
    assert_eq!(given["verdict"], "works", "{given:#}");
}

#[test]
fn an_image_for_another_processor_does_not_start() {
    let directory = directory_with(Image::new().layer(torch("2.15.0", Some("13.2"))));
    let result = directory.result(&["oci:image", "--sku", GB200, "--driver", "595"]);
    assert_eq!((&result["verdict"], codes(&result)), (&"fails".into(), vec!["CD0601"]));
    assert_eq!(result["error"]["name"], "exec format error");
    assert!(finding(&result, "CD0601")["fix"].as_str().unwrap().contains("linux/arm64"), "{result:#}");
}

#[test]
fn of_several_platforms_each_target_gets_its_own() {
    let directory = Directory::new();
    let amd64 = Image::new().layer(torch("2.15.0", Some("13.2")));
    // The builds differ, so that the verdict shows which image was read.
    let arm64 = Image::new().architecture("arm64").layer(torch("2.15.0", None));
    write(&directory, "image", &[amd64, arm64]);
    let arguments = ["oci:image", "--gpu", "H100", "--sku", GB200, "--driver", "595"];
    let report = directory.report(&[arguments.as_slice(), &["--platform", "linux/amd64"]].concat());
    assert_eq!(codes(&report["results"][1]), ["CD0601"], "the choice is the user's: {report:#}");
    let alone = directory.result(&["oci:image", "--sku", GB200, "--driver", "595"]);
    assert_eq!((&alone["verdict"], codes(&alone)), (&"cpu".into(), vec!["CD0401"]));
    let message = directory.refused(&["oci:image", "--gpu", "H100", "--platform", "linux/riscv64"]);
    assert!(
        message.contains("has no image for linux/riscv64; available: linux/amd64, linux/arm64"),
        "{message}"
    );
    assert!(message.contains("--platform linux/amd64"), "{message}");
}

#[test]
fn targets_with_different_processors_are_answered_together() {
    let directory = Directory::new();
    let amd64 = Image::new().layer(torch("2.15.0", Some("13.2")));
    let arm64 = Image::new().architecture("arm64").layer(torch("2.15.0", None));
    write(&directory, "image", &[amd64, arm64]);
    let arguments = ["oci:image", "--sku", "Standard_NC40ads_H100_v5", "--sku", GB200, "--driver", "595"];
    let report = directory.report(&arguments);
    let verdicts: Vec<&str> = report["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["verdict"].as_str().unwrap())
        .collect();
    assert_eq!(verdicts, ["works", "cpu"]);
}

#[test]
fn a_layout_in_a_tar_file_is_the_same_image() {
    let directory = directory_with(Image::new().layer(torch("2.15.0", Some("13.2"))));
    let mut archive = Tar::default();
    for name in files_below(&directory.path().join("image")) {
        archive = archive.file(&name, std::fs::read(directory.path().join("image").join(&name)).unwrap());
    }
    directory.write("image.tar", archive.end());
    for subject in ["image.tar", "oci-archive:image.tar", "image"] {
        let output = directory.check(&[subject, "--gpu", "H100", "--driver", "595"]);
        assert_eq!(code(&output), 0, "{subject}: {}", shown(&output));
        assert!(shown(&output).contains("its sm_90 code runs"), "{subject}: {}", shown(&output));
    }
}

fn files_below(directory: &std::path::Path) -> Vec<String> {
    let blobs = std::fs::read_dir(directory.join("blobs/sha256")).unwrap();
    let blobs = blobs.map(|entry| format!("blobs/sha256/{}", entry.unwrap().file_name().to_str().unwrap()));
    blobs.chain(["oci-layout".to_owned(), "index.json".to_owned()]).collect()
}
