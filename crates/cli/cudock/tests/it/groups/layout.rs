//! Groups of images: an OCI layout, unpacked once for all who use it.

use std::fs;
use std::path::Path;

use cudock_base::Digest;
use cudock_testkit::tar::Tar;
use serde_json::{Value, json};

use super::machine::{machine, until};
use super::rootfs::rootfs;

/// A layout with one image: busybox, an entry point that the group's command takes the place of, and a variable.
fn write(directory: &Path) {
    let busybox = fs::read(rootfs().unwrap().join("bin/busybox")).unwrap();
    let mut layer = Tar::default().program("bin/busybox", busybox).file("etc/greeting", "from the image\n");
    for name in ["cat", "sh", "sleep"] {
        layer = layer.symlink(&format!("bin/{name}"), "busybox");
    }
    let layer = blob(directory, "application/vnd.oci.image.layer.v1.tar", &layer.end());
    let config = json!({
        "architecture": if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" },
        "os": "linux",
        "config": {
            "Env": ["PATH=/bin", "WHO=image", "ALSO=image"],
            "Entrypoint": ["sh", "-c", "echo by the entry point of the $WHO; sleep 1000"],
        },
        "rootfs": {"type": "layers", "diff_ids": [&layer["digest"]]},
    });
    let config = blob(directory, "application/vnd.oci.image.config.v1+json", config.to_string().as_bytes());
    let media_type = "application/vnd.oci.image.manifest.v1+json";
    let manifest = json!({"schemaVersion": 2, "mediaType": media_type, "config": config, "layers": [layer]});
    let manifest = blob(directory, media_type, manifest.to_string().as_bytes());
    fs::write(directory.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
    let index = json!({"schemaVersion": 2, "manifests": [manifest]});
    fs::write(directory.join("index.json"), index.to_string()).unwrap();
}

fn blob(directory: &Path, media_type: &str, bytes: &[u8]) -> Value {
    let digest = Digest::sha256_of(bytes);
    let blobs = directory.join("blobs/sha256");
    fs::create_dir_all(&blobs).unwrap();
    fs::write(blobs.join(digest.hex()), bytes).unwrap();
    json!({"mediaType": media_type, "digest": digest.to_string(), "size": bytes.len()})
}

#[test]
fn a_command_takes_the_place_of_the_images_and_variables_come_over_its_own() {
    let Some(machine) = machine() else { return };
    write(&machine.path().join("layout"));
    // The layout's path is relative to the file's directory.
    let text = "name: made
properties:
  containers:
  - name: own
    properties:
      image: oci:./layout
      command: [sh, -c, 'cat /etc/greeting; echo $WHO $ALSO; sleep 1000']
      environmentVariables: [{name: WHO, value: group}]
  - name: images
    properties: {image: 'oci:./layout'}
";
    let file = machine.write(text);
    let mut command = machine.command(&["up", "-f", &file, "--detach", "--network", "none"]);
    let output = command.current_dir("/").output().unwrap();
    assert!(output.status.success(), "{}", crate::support::shown(&output));
    until("both have spoken", || {
        machine.logs("made/own") == "from the image\ngroup image\n"
            && machine.logs("made/images") == "by the entry point of the image\n"
    });
}
