//! Images as OCI layouts, written by the test that uses them.

use std::fs;
use std::path::{Path, PathBuf};

use cudock_base::Digest;
use cudock_testkit::tar::Tar;
use serde_json::{Value, json};

use super::machine::Machine;

const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// An image in the making.
pub(crate) struct Image {
    directory: PathBuf,
    config: Value,
    environment: Vec<String>,
    layers: Vec<Vec<u8>>,
}

impl Image {
    /// An image with the machine's directory as its first layer.
    pub(crate) fn of(machine: &Machine) -> Self {
        Self {
            directory: machine.path().to_owned(),
            config: json!({"Cmd": ["sh"]}),
            environment: Vec::new(),
            layers: vec![Tar::default().tree(&machine.root(), "").end()],
        }
    }

    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.environment.push(format!("{name}={value}"));
        self
    }

    pub(crate) fn entrypoint(self, arguments: &[&str]) -> Self {
        self.set("Entrypoint", json!(arguments))
    }

    pub(crate) fn command(self, arguments: &[&str]) -> Self {
        self.set("Cmd", json!(arguments))
    }

    pub(crate) fn user(self, user: &str) -> Self {
        self.set("User", json!(user))
    }

    pub(crate) fn workdir(self, directory: &str) -> Self {
        self.set("WorkingDir", json!(directory))
    }

    pub(crate) fn stop_signal(self, signal: &str) -> Self {
        self.set("StopSignal", json!(signal))
    }

    fn set(mut self, name: &str, value: Value) -> Self {
        self.config[name] = value;
        self
    }

    /// A layer with only the metadata of the root.
    pub(crate) fn root_mode(self, mode: u32) -> Self {
        self.raw_layer(Tar::default().entry_with_mode("./", b'5', mode, b""))
    }

    /// A layer of files.
    pub(crate) fn layer(self, files: &[(&str, &str)]) -> Self {
        let tar = files.iter().fold(Tar::default(), |tar, (path, contents)| tar.file(path, contents));
        self.raw_layer(tar)
    }

    /// Any layer.
    pub(crate) fn raw_layer(mut self, layer: Tar) -> Self {
        self.layers.push(layer.end());
        self
    }

    /// Replaces the whole configuration.
    pub(crate) fn config(mut self, config: Value) -> Self {
        self.config = config;
        self
    }

    /// Writes the image as a layout beside the machine's other files. Returns its path.
    pub(crate) fn write(&self, name: &str) -> PathBuf {
        let layout = self.directory.join(name);
        fs::create_dir_all(layout.join("blobs/sha256")).unwrap();
        let layers: Vec<Value> = self.layers.iter().map(|layer| blob(&layout, LAYER, layer)).collect();
        let digests: Vec<&Value> = layers.iter().map(|layer| &layer["digest"]).collect();
        let mut config = self.config.clone();
        if !self.environment.is_empty() {
            config["Env"] = json!(self.environment);
        }
        let whole = json!({
            "architecture": if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" },
            "os": "linux",
            "config": config,
            "rootfs": {"type": "layers", "diff_ids": digests},
        });
        let config = blob(&layout, CONFIG, whole.to_string().as_bytes());
        let manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers});
        let manifest = blob(&layout, MANIFEST, manifest.to_string().as_bytes());
        fs::write(layout.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
        let index = json!({"schemaVersion": 2, "manifests": [manifest]});
        fs::write(layout.join("index.json"), index.to_string()).unwrap();
        layout
    }
}

fn blob(layout: &Path, media_type: &str, bytes: &[u8]) -> Value {
    let digest = Digest::sha256_of(bytes);
    fs::write(layout.join("blobs/sha256").join(digest.hex()), bytes).unwrap();
    json!({"mediaType": media_type, "digest": digest.to_string(), "size": bytes.len()})
}
