//! `cudock build --dockerfile`, with a builder of this machine.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::Value;

use crate::support::{code, cudock, shown};

#[test]
fn a_dockerfile_is_built_pruned_and_compressed_as_requested() {
    let Some(podman) = cudock_testkit::require_program("podman") else { return };
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let text = |name: &str| path(name).display().to_string();
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../gpu/fatbin/tests/fixtures/default.fatbin");
    fs::copy(fixture, path("app.fatbin")).unwrap();
    fs::write(path("Dockerfile"), "FROM scratch\nCOPY app.fatbin /app/\n").unwrap();
    // No other builder is found, and images of others are neither seen nor changed.
    fs::create_dir(path("bin")).unwrap();
    symlink(podman, path("bin/podman")).unwrap();
    let (root, run) = (text("storage"), text("run"));
    let storage = format!("[storage]\ndriver = \"vfs\"\ngraphroot = \"{root}\"\nrunroot = \"{run}\"\n");
    fs::write(path("storage.conf"), storage).unwrap();

    let (project, output) = (text(""), format!("oci:{}", text("layout")));
    let mut command = cudock(&["build", &project, "--dockerfile", "-o", &output, "--for", "T4"]);
    command.args(["--compression", "zstd"]).env("PATH", path("bin"));
    let output = command.env("CONTAINERS_STORAGE_CONF", path("storage.conf")).output().unwrap();
    assert_eq!(code(&output), 0, "{}", shown(&output));
    let manifest = linked(&path("layout"), &read(&path("layout/index.json"))["manifests"][0]);
    let layers = manifest["layers"].as_array().unwrap();
    assert_eq!(layers.len(), 1, "{manifest:#}");
    assert_eq!(layers[0]["mediaType"], "application/vnd.oci.image.layer.v1.tar+zstd");
    let whole = fs::metadata(fixture).unwrap().len();
    assert!(layers[0]["size"].as_u64().unwrap() < whole / 2, "{whole} bytes before: {manifest:#}");
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The document of a layout that a descriptor names.
fn linked(layout: &Path, descriptor: &Value) -> Value {
    let digest = descriptor["digest"].as_str().unwrap();
    read(&layout.join("blobs").join(digest.replace(':', "/")))
}
