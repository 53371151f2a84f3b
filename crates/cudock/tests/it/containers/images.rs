//! Images as OCI layouts, written by the test that uses them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cudock_base::Digest;
use serde_json::{Value, json};

use super::machine::Machine;

const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const BLOCK: usize = 512;

/// An image in the making.
pub(super) struct Image {
    folder: PathBuf,
    config: Value,
    environment: Vec<String>,
    layers: Vec<Vec<u8>>,
}

impl Image {
    /// An image with the machine's folder as its first layer.
    pub(super) fn of(machine: &Machine) -> Self {
        let mut tar = Tar::default();
        tar.folder(&machine.root(), "");
        let path = machine.path().to_owned();
        Self {
            folder: path,
            config: json!({"Cmd": ["sh"]}),
            environment: Vec::new(),
            layers: vec![tar.finish()],
        }
    }

    pub(super) fn variable(mut self, name: &str, value: &str) -> Self {
        self.environment.push(format!("{name}={value}"));
        self
    }

    pub(super) fn entrypoint(self, words: &[&str]) -> Self {
        self.set("Entrypoint", json!(words))
    }

    pub(super) fn command(self, words: &[&str]) -> Self {
        self.set("Cmd", json!(words))
    }

    pub(super) fn user(self, user: &str) -> Self {
        self.set("User", json!(user))
    }

    pub(super) fn workdir(self, folder: &str) -> Self {
        self.set("WorkingDir", json!(folder))
    }

    pub(super) fn stop_signal(self, signal: &str) -> Self {
        self.set("StopSignal", json!(signal))
    }

    fn set(mut self, name: &str, value: Value) -> Self {
        self.config[name] = value;
        self
    }

    /// A layer that says nothing but what the root is like.
    pub(super) fn root_mode(mut self, mode: u32) -> Self {
        let mut tar = Tar::default();
        tar.entry("./", b'5', mode, "", b"");
        self.layers.push(tar.finish());
        self
    }

    /// A layer of files.
    pub(super) fn layer(mut self, files: &[(&str, &str)]) -> Self {
        let mut tar = Tar::default();
        for (path, contents) in files {
            tar.entry(path, b'0', 0o644, "", contents.as_bytes());
        }
        self.layers.push(tar.finish());
        self
    }

    /// Writes the image as a layout beside the machine's other files. Where it is.
    pub(super) fn write(&self, name: &str) -> PathBuf {
        let layout = self.folder.join(name);
        fs::create_dir_all(layout.join("blobs/sha256")).unwrap();
        let layers: Vec<Value> = self.layers.iter().map(|layer| blob(&layout, LAYER, layer)).collect();
        let digests: Vec<&Value> = layers.iter().map(|layer| &layer["digest"]).collect();
        let mut config = self.config.clone();
        config["Env"] = json!(self.environment);
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

/// A tar file in the making.
#[derive(Default)]
struct Tar {
    bytes: Vec<u8>,
}

impl Tar {
    /// Everything in a folder.
    fn folder(&mut self, folder: &Path, below: &str) {
        let mut entries: Vec<_> = fs::read_dir(folder).unwrap().flatten().collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = format!("{below}{}", entry.file_name().to_string_lossy());
            let about = entry.path().symlink_metadata().unwrap();
            let mode = about.permissions().mode() & 0o7777;
            if about.is_symlink() {
                let to = fs::read_link(entry.path()).unwrap();
                self.entry(&path, b'2', 0o777, to.to_str().unwrap(), b"");
            } else if about.is_dir() {
                self.entry(&format!("{path}/"), b'5', mode, "", b"");
                self.folder(&entry.path(), &format!("{path}/"));
            } else {
                self.entry(&path, b'0', mode, "", &fs::read(entry.path()).unwrap());
            }
        }
    }

    fn entry(&mut self, path: &str, kind: u8, mode: u32, link: &str, contents: &[u8]) {
        let mut header = vec![0_u8; BLOCK];
        assert!(path.len() <= 100 && link.len() <= 100, "longer names need extended headers");
        let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, path.as_bytes());
        put(100, format!("{mode:07o}\0").as_bytes());
        put(124, format!("{:011o}\0", contents.len()).as_bytes());
        put(148, b"        ");
        put(156, &[kind]);
        put(157, link.as_bytes());
        put(257, b"ustar\x0000");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.bytes.extend(header);
        self.bytes.extend(contents);
        self.bytes.resize(self.bytes.len().next_multiple_of(BLOCK), 0);
    }

    /// The file, with the two blocks of zeros at its end.
    fn finish(mut self) -> Vec<u8> {
        self.bytes.resize(self.bytes.len() + 2 * BLOCK, 0);
        self.bytes
    }
}
