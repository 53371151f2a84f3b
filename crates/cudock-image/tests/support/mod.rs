//! Images made of bytes, so that every header and document can lie.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use cudock_base::Digest;
use cudock_image::{Image, ImageError, Limits, NodeKind, OpenOptions, Source, Tree, open};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const BLOCK: usize = 512;
pub(crate) const INDEX: &str = "application/vnd.oci.image.index.v1+json";
pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub(crate) const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
pub(crate) const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// A header block whose checksum fits.
pub(crate) fn header(name: &[u8], kind: u8, size: u64, link: &[u8]) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    block[..name.len()].copy_from_slice(name);
    block[100..107].copy_from_slice(b"0000755");
    block[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
    block[156] = kind;
    block[157..157 + link.len()].copy_from_slice(link);
    block[257..265].copy_from_slice(b"ustar\x0000");
    seal(&mut block);
    block
}

/// Makes the checksum fit what was changed.
pub(crate) fn seal(block: &mut [u8; BLOCK]) {
    block[148..156].fill(b' ');
    let sum: u64 = block.iter().map(|byte| u64::from(*byte)).sum();
    block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
}

/// One pax record.
pub(crate) fn record(key: &str, value: &[u8]) -> Vec<u8> {
    let rest = key.len() + value.len() + 3;
    let mut length = rest + 1;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    [format!("{length} {key}=").as_bytes(), value, b"\n"].concat()
}

/// A tar file in the making.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tar(pub(crate) Vec<u8>);

impl Tar {
    /// Any bytes, filled up to whole blocks.
    pub(crate) fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(BLOCK), 0);
        self
    }

    /// An entry of any kind.
    pub(crate) fn entry(self, name: impl AsRef<[u8]>, kind: u8, link: &str, content: &[u8]) -> Self {
        self.raw(&header(name.as_ref(), kind, content.len() as u64, link.as_bytes())).raw(content)
    }

    pub(crate) fn file(self, name: &str, content: &str) -> Self {
        self.entry(name, b'0', "", content.as_bytes())
    }

    pub(crate) fn directory(self, name: &str) -> Self {
        self.entry(format!("{name}/"), b'5', "", b"")
    }

    pub(crate) fn symlink(self, name: &str, target: &str) -> Self {
        self.entry(name, b'2', target, b"")
    }

    pub(crate) fn hard_link(self, name: &str, target: &str) -> Self {
        self.entry(name, b'1', target, b"")
    }

    /// Removes a name of lower layers.
    pub(crate) fn whiteout(self, path: &str) -> Self {
        let (folder, name) = path.rsplit_once('/').map_or(("", path), |(folder, name)| (folder, name));
        self.file(format!("{folder}/.wh.{name}").trim_start_matches('/'), "")
    }

    /// Removes all that lower layers have in a directory.
    pub(crate) fn opaque(self, folder: &str) -> Self {
        self.file(format!("{folder}/.wh..wh..opq").trim_start_matches('/'), "")
    }

    /// What describes the entry that follows.
    pub(crate) fn pax(self, records: &[(&str, &[u8])]) -> Self {
        let body: Vec<u8> = records.iter().flat_map(|(key, value)| record(key, value)).collect();
        self.entry("PaxHeaders/0", b'x', "", &body)
    }

    /// The bytes, with the end that tar files have.
    pub(crate) fn end(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 2 * BLOCK, 0);
        self.0
    }
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

/// Blobs by digest: what a layout, an archive and a registry have in common.
#[derive(Debug, Clone, Default)]
pub(crate) struct Blobs(pub(crate) BTreeMap<String, Vec<u8>>);

impl Blobs {
    /// Keeps a blob and says what points to it.
    pub(crate) fn add(&mut self, media_type: &str, bytes: Vec<u8>) -> Value {
        let (digest, size) = (Digest::sha256_of(&bytes).to_string(), bytes.len());
        self.0.insert(digest.clone(), bytes);
        json!({"mediaType": media_type, "digest": digest, "size": size})
    }

    pub(crate) fn document(&mut self, media_type: &str, document: &Value) -> Value {
        self.add(media_type, document.to_string().into_bytes())
    }

    /// Adds an image and gives the descriptor of its manifest, with a platform.
    pub(crate) fn image(&mut self, architecture: &str, layers: &[Vec<u8>]) -> Value {
        let layers: Vec<Value> = layers.iter().map(|layer| self.add(LAYER, layer.clone())).collect();
        let config = self.document(CONFIG, &configuration(architecture, layers.len()));
        self.manifest(&config, &layers, architecture)
    }

    pub(crate) fn manifest(&mut self, config: &Value, layers: &[Value], architecture: &str) -> Value {
        let manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers});
        let mut descriptor = self.document(MANIFEST, &manifest);
        descriptor["platform"] = json!({"os": "linux", "architecture": architecture});
        descriptor
    }

    /// Writes a layout into a folder.
    pub(crate) fn write(&self, folder: &Path, index: &Value) {
        fs::create_dir_all(folder.join("blobs/sha256")).unwrap();
        fs::write(folder.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
        fs::write(folder.join("index.json"), index.to_string()).unwrap();
        for (digest, bytes) in &self.0 {
            fs::write(folder.join("blobs").join(digest.replace(':', "/")), bytes).unwrap();
        }
    }

    /// The same as a tar file.
    pub(crate) fn archive(&self, index: &Value) -> Vec<u8> {
        let mut tar = Tar::default()
            .file("oci-layout", r#"{"imageLayoutVersion":"1.0.0"}"#)
            .file("index.json", &index.to_string())
            .directory("blobs")
            .directory("blobs/sha256");
        for (digest, bytes) in &self.0 {
            tar = tar.entry(format!("blobs/{}", digest.replace(':', "/")), b'0', "", bytes);
        }
        tar.end()
    }
}

pub(crate) fn configuration(architecture: &str, layers: usize) -> Value {
    json!({
        "architecture": architecture,
        "os": "linux",
        "config": {"Env": ["PATH=/bin", "PATH=/usr/bin"], "Entrypoint": ["/run"], "Cmd": null},
        "rootfs": {"type": "layers", "diff_ids": vec![Digest::sha256_of(b"").to_string(); layers]},
    })
}

pub(crate) fn index(manifests: &[Value]) -> Value {
    json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests})
}

/// The descriptor with a name, as layouts keep it.
pub(crate) fn named(mut descriptor: Value, name: &str) -> Value {
    descriptor["annotations"] = json!({"org.opencontainers.image.ref.name": name});
    descriptor
}

/// Options that ask no registry and no daemon.
pub(crate) fn options(scratch: &Path) -> OpenOptions {
    let scratch = scratch.join("scratch");
    OpenOptions { platform: None, client: None, sockets: Vec::new(), progress: None, scratch }
}

pub(crate) fn layout(folder: &Path) -> Source {
    Source::Layout { folder: folder.to_owned(), name: None }
}

pub(crate) fn archive(file: &Path) -> Source {
    Source::Archive { file: file.to_owned(), name: None }
}

/// Walks an image and keeps every file's bytes.
pub(crate) fn contents(image: &Image) -> Result<Tree<Vec<u8>>, ImageError> {
    image.walk(Limits::default(), |_, content| Ok(Some(content.all()?.to_vec())))
}

/// An image of these layers in a layout, open.
pub(crate) fn image_of(layers: &[Vec<u8>]) -> (TempDir, Image) {
    let folder = tempfile::tempdir().unwrap();
    let mut blobs = Blobs::default();
    let manifest = blobs.image("amd64", layers);
    blobs.write(folder.path(), &index(&[manifest]));
    let image = open(&layout(folder.path()), &options(folder.path())).unwrap();
    (folder, image)
}

pub(crate) fn try_merge(layers: &[Vec<u8>]) -> Result<Tree<Vec<u8>>, ImageError> {
    let (_folder, image) = image_of(layers);
    contents(&image)
}

pub(crate) fn merge(layers: &[Vec<u8>]) -> Tree<Vec<u8>> {
    try_merge(layers).unwrap()
}

/// Why one layer is refused.
pub(crate) fn refusal(layer: Vec<u8>) -> String {
    try_merge(&[layer]).unwrap_err().to_string()
}

/// The tree as lines: `a/`, `a/file=content`, `link>target`, `pipe?`.
pub(crate) fn lines(tree: &Tree<Vec<u8>>) -> Vec<String> {
    let line = |(path, node): (&str, &cudock_image::Node<Vec<u8>>)| match &node.kind {
        NodeKind::Directory => format!("{path}/"),
        NodeKind::File { kept, .. } => {
            format!("{path}={}", String::from_utf8_lossy(kept.as_deref().unwrap_or_default()))
        }
        NodeKind::Symlink(target) => format!("{path}>{target}"),
        NodeKind::Special => format!("{path}?"),
    };
    tree.iter().map(line).collect()
}

/// What a file holds, links to it followed.
pub(crate) fn text(tree: &Tree<Vec<u8>>, path: &str) -> String {
    let (_, node) = tree.resolve(path).unwrap_or_else(|| panic!("{path} is not there"));
    String::from_utf8(node.kept().unwrap().clone()).unwrap()
}
