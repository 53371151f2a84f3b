//! Subjects that are broken, hostile or missing: refused with a message, never with a crash.

use cudock_testkit::tar::Tar;

use super::layout::{Image, directory_with, write};
use super::workdir::{Directory, codes, finding, fixture};
use crate::support::zip;

const T4: [&str; 4] = ["--gpu", "T4", "--driver", "580"];

fn refused(directory: &Directory, subject: &str) -> String {
    directory.refused(&[&[subject], T4.as_slice()].concat())
}

#[test]
fn a_program_that_is_cut_off_is_refused_wherever_it_ends() {
    let whole = fixture("library.so");
    for length in [5, 40, 64, 1000, whole.len() / 2, whole.len() - 1] {
        let message = refused(&Directory::with("cut.so", &whole[..length]), "cut.so");
        assert!(message.contains("error: cut.so"), "{length}: {message}");
    }
}

#[test]
fn a_fat_binary_that_is_cut_off_is_refused_with_its_place() {
    let message = refused(&Directory::with("cut.fatbin", &fixture("default.fatbin")[..1000]), "cut.fatbin");
    assert!(message.contains("cut.fatbin: at offset 0x8: container claims 20016 bytes"), "{message}");
}

#[test]
fn files_of_no_kind_are_refused_with_what_can_be_checked() {
    for (name, contents) in [("empty", ""), ("notes.md", "# Notes\n"), ("data.json", "{}")] {
        let message = refused(&Directory::with(name, contents), &format!("./{name}"));
        assert!(message.contains(&format!("cannot check ./{name}: unsupported file type")), "{message}");
        assert!(message.contains("hint: give an image, a program, a library, a wheel"), "{message}");
    }
}

#[test]
fn a_missing_file_is_not_requested_from_a_registry() {
    for subject in ["./app", "/nowhere/app", "libapp.so", "requirements.txt", "image.tar", "rootfs:nowhere"] {
        let message = refused(&Directory::new(), subject);
        assert!(message.contains(" not found"), "{subject}: {message}");
    }
}

#[test]
fn a_layout_that_is_not_there_is_refused_with_its_path() {
    let message = refused(&Directory::new(), "oci:nowhere");
    assert!(message.contains("cannot read nowhere/index.json"), "{message}");
}

#[test]
fn directories_without_anything_for_a_gpu_leave_the_work_to_the_cpu() {
    let directory = Directory::new();
    std::fs::create_dir(directory.path().join("empty")).unwrap();
    directory.write("texts/readme.md", "Nothing here.\n");
    for subject in ["empty", "texts"] {
        let result = directory.result(&[&[subject], T4.as_slice()].concat());
        assert_eq!((&result["verdict"], codes(&result)), (&"cpu".into(), vec!["CD0609"]), "{subject}");
        assert!(result["error"].is_null(), "{subject}");
    }
}

#[test]
fn a_damaged_library_among_others_is_reported_and_does_not_end_the_check() {
    let (directory, whole) = (Directory::new(), fixture("library.so"));
    directory.write("lib/whole.so", &whole);
    directory.write("lib/cut.so", &whole[..whole.len() / 2]);
    let result = directory.result(&[&["lib"], T4.as_slice()].concat());
    assert_eq!(result["verdict"], "works", "{result:#}");
    let damage = finding(&result, "CD0507");
    assert_eq!(damage["severity"], "warning");
    assert!(damage["evidence"][0]["path"].as_str().unwrap().ends_with("/lib/cut.so"), "{damage}");
}

#[test]
fn a_broken_zip_is_refused() {
    for contents in [b"PK\x03\x04".as_slice(), b"PK\x03\x04 and then nothing that a zip file has"] {
        let message =
            refused(&Directory::with("app-1.0-py3-none-any.whl", contents), "app-1.0-py3-none-any.whl");
        assert!(message.contains("app-1.0-py3-none-any.whl: invalid zip file"), "{message}");
    }
}

#[test]
fn a_layer_that_leads_out_of_the_image_is_refused_with_its_number() {
    let hostile = Tar::default().file("app/../../etc/passwd", "root::0:0::/:/bin/sh\n");
    let message = refused(&directory_with(Image::new().layer(hostile)), "oci:image");
    assert!(message.contains("error: layer 2 (sha256:"), "{message}");
    assert!(message.contains("`app/../../etc/passwd` points outside the image"), "{message}");
}

#[test]
fn a_layer_that_is_no_tar_file_is_refused_with_its_number() {
    let directory = Directory::new();
    let image = Image::new().layer(Tar::default().file("app/a", "a")).raw_layer(vec![b'x'; 2048]);
    write(&directory, "image", &[image]);
    let message = refused(&directory, "oci:image");
    assert!(message.contains("error: layer 3 (sha256:"), "{message}");
    assert!(message.contains("invalid tar header"), "{message}");
}

#[test]
fn a_layer_that_ends_inside_a_file_is_refused_with_its_number() {
    let mut layer = Tar::default().file("app/model.bin", vec![1; 4096]).end();
    layer.truncate(1024);
    let directory = Directory::new();
    write(&directory, "image", &[Image::new().raw_layer(layer)]);
    let message = refused(&directory, "oci:image");
    assert!(message.contains("error: layer 2 (sha256:"), "{message}");
}

#[test]
fn a_document_that_was_altered_is_refused() {
    let directory = directory_with(Image::new());
    let index = std::fs::read_to_string(directory.path().join("image/index.json")).unwrap();
    let index: serde_json::Value = serde_json::from_str(&index).unwrap();
    let hex = index["manifests"][0]["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap().to_owned();
    let name = format!("image/blobs/sha256/{hex}");
    let manifest = std::fs::read_to_string(directory.path().join(&name)).unwrap();
    directory.write(&name, manifest.replace("\"schemaVersion\":2", "\"schemaVersion\":3"));
    let message = refused(&directory, "oci:image");
    assert!(message.contains("digest mismatch"), "{message}");
}

#[test]
fn an_archive_that_is_no_image_is_refused() {
    let directory = Directory::with("backup.tar", Tar::default().file("notes.md", "# Notes\n").end());
    let message = refused(&directory, "backup.tar");
    assert!(message.contains("backup.tar is not an image"), "{message}");
}

#[test]
fn a_directory_of_packages_is_an_environment_whether_or_not_it_is_below() {
    let directory = Directory::new();
    for site in ["packages", "venv/lib/python3.12/site-packages"] {
        directory
            .write(&format!("{site}/torch-2.15.0.dist-info/METADATA"), "Name: torch\nVersion: 2.15.0\n\n");
        directory.write(
            &format!("{site}/torch/version.py"),
            "__version__ = '2.15.0+cu132'\ncuda = '13.2'\nhip = None\n",
        );
    }
    for subject in ["packages", "venv"] {
        let result = directory.result(&[subject, "--gpu", "V100", "--driver", "580"]);
        assert_eq!(result["error"]["code"], 209, "{subject}: {result:#}");
        assert_eq!(result["artifacts"][0]["name"], "torch 2.15.0+cu132", "{subject}: {result:#}");
    }
}

#[test]
fn a_wheel_is_judged_by_the_code_in_it() {
    let metadata = "Metadata-Version: 2.1\nName: kernels\nVersion: 1.0\n\n";
    let library = fixture("library.so");
    let members: [(&str, &[u8]); 2] =
        [("kernels/library.so", &library), ("kernels-1.0.dist-info/METADATA", metadata.as_bytes())];
    let wheel = "kernels-1.0-py3-none-manylinux_2_28_x86_64.whl";
    let directory = Directory::with(wheel, zip(&members));
    let by_directory = Directory::with_fixture("library.so");
    // The same code has the same result in a wheel and by itself.
    for gpu in ["T4", "A100", "H100", "B200"] {
        let arguments = ["--gpu", gpu, "--driver", "615"];
        let in_wheel = directory.result(&[&[wheel], arguments.as_slice()].concat());
        let by_itself = by_directory.result(&[&["library.so"], arguments.as_slice()].concat());
        assert_eq!(in_wheel["verdict"], by_itself["verdict"], "{gpu}: {in_wheel:#}\n{by_itself:#}");
        assert_eq!(in_wheel["artifacts"][0]["name"], "kernels", "{gpu}: {in_wheel:#}");
    }
}
