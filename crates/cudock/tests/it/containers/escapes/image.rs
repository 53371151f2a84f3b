//! Images that no honest tool writes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use cudock_base::Digest;
use serde_json::{Value, json};

use crate::containers::machine::Machine;

const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const BLOCK: usize = 512;

/// A tar file in the making, with any names, links and kinds.
#[derive(Default, Clone)]
pub(super) struct Tar {
    bytes: Vec<u8>,
}

impl Tar {
    pub(super) fn file(self, path: &str, contents: &str) -> Self {
        self.entry(path, b'0', 0o644, "", contents.as_bytes(), (0, 0))
    }

    pub(super) fn symlink(self, path: &str, to: &str) -> Self {
        self.entry(path, b'2', 0o777, to, b"", (0, 0))
    }

    pub(super) fn hard_link(self, path: &str, to: &str) -> Self {
        self.entry(path, b'1', 0o666, to, b"", (0, 0))
    }

    pub(super) fn folder(self, path: &str, mode: u32) -> Self {
        self.entry(path, b'5', mode, "", b"", (0, 0))
    }

    pub(super) fn device(self, path: &str, kind: u8, major: u32, minor: u32) -> Self {
        self.entry(path, kind, 0o666, "", b"", (major, minor))
    }

    /// Everything in a folder of this machine.
    pub(super) fn tree(mut self, folder: &Path, below: &str) -> Self {
        let mut entries: Vec<_> = fs::read_dir(folder).unwrap().flatten().collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = format!("{below}{}", entry.file_name().to_string_lossy());
            let about = entry.path().symlink_metadata().unwrap();
            let mode = about.permissions().mode() & 0o7777;
            self = if about.is_symlink() {
                self.symlink(&path, fs::read_link(entry.path()).unwrap().to_str().unwrap())
            } else if about.is_dir() {
                self.folder(&format!("{path}/"), mode).tree(&entry.path(), &format!("{path}/"))
            } else {
                self.entry(&path, b'0', mode, "", &fs::read(entry.path()).unwrap(), (0, 0))
            };
        }
        self
    }

    fn entry(
        mut self,
        path: &str,
        kind: u8,
        mode: u32,
        link: &str,
        contents: &[u8],
        device: (u32, u32),
    ) -> Self {
        let mut header = vec![0_u8; BLOCK];
        assert!(path.len() <= 100 && link.len() <= 100, "{path} {link}: longer names need extended headers");
        let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, path.as_bytes());
        put(100, format!("{mode:07o}\0").as_bytes());
        put(124, format!("{:011o}\0", contents.len()).as_bytes());
        put(148, b"        ");
        put(156, &[kind]);
        put(157, link.as_bytes());
        put(257, b"ustar\x0000");
        put(329, format!("{:07o}\0{:07o}\0", device.0, device.1).as_bytes());
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.bytes.extend(header);
        self.bytes.extend(contents);
        self.bytes.resize(self.bytes.len().next_multiple_of(BLOCK), 0);
        self
    }

    fn finish(mut self) -> Vec<u8> {
        self.bytes.resize(self.bytes.len() + 2 * BLOCK, 0);
        self.bytes
    }
}

/// Writes an image of the machine's folder with these layers above it, and with this configuration. Its name for `run`.
pub(super) fn write(machine: &Machine, name: &str, layers: &[Tar], config: &Value) -> String {
    let layout = machine.path().join(name);
    fs::create_dir_all(layout.join("blobs/sha256")).unwrap();
    let base = Tar::default().tree(&machine.root(), "");
    let all = [&[base], layers].concat();
    let layers: Vec<Value> = all.into_iter().map(|layer| blob(&layout, LAYER, &layer.finish())).collect();
    let digests: Vec<&Value> = layers.iter().map(|layer| &layer["digest"]).collect();
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
    fs::write(layout.join("index.json"), json!({"schemaVersion": 2, "manifests": [manifest]}).to_string())
        .unwrap();
    format!("oci:{name}")
}

fn blob(layout: &Path, media_type: &str, bytes: &[u8]) -> Value {
    let digest = Digest::sha256_of(bytes);
    fs::write(layout.join("blobs/sha256").join(digest.hex()), bytes).unwrap();
    json!({"mediaType": media_type, "digest": digest.to_string(), "size": bytes.len()})
}
