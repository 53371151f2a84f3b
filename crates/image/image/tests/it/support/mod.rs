//! Builds images byte by byte, so that every header and document can be wrong.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use cudock_base::Digest;
use cudock_image::write::{Bundle, WriteError};
use cudock_image::{
    Descriptor, FileKind, Image, ImageError, ImageSource, LayerLimits, OpenOptions, Referrer, ResolvedImage,
    Special, Tree, TreeFile,
};
pub(crate) use cudock_testkit::tar::{BLOCK, Tar, header, record, seal, set_number};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const INDEX: &str = "application/vnd.oci.image.index.v1+json";
pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub(crate) const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
pub(crate) const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

/// Blobs by digest, for layouts, archives and registries.
#[derive(Debug, Clone, Default)]
pub(crate) struct Blobs(pub(crate) BTreeMap<String, Vec<u8>>);

impl Blobs {
    /// Adds a blob and returns its descriptor.
    pub(crate) fn add(&mut self, media_type: &str, bytes: Vec<u8>) -> Value {
        let (digest, size) = (Digest::sha256_of(&bytes).to_string(), bytes.len());
        self.0.insert(digest.clone(), bytes);
        json!({"mediaType": media_type, "digest": digest, "size": size})
    }

    pub(crate) fn document(&mut self, media_type: &str, document: &Value) -> Value {
        self.add(media_type, document.to_string().into_bytes())
    }

    /// Adds an image and returns the descriptor of its manifest, with a platform.
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

    /// Writes a layout to a directory.
    pub(crate) fn write(&self, directory: &Path, index: &Value) {
        fs::create_dir_all(directory.join("blobs/sha256")).unwrap();
        fs::write(directory.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
        fs::write(directory.join("index.json"), index.to_string()).unwrap();
        for (digest, bytes) in &self.0 {
            fs::write(directory.join("blobs").join(digest.replace(':', "/")), bytes).unwrap();
        }
    }

    /// The layout as a tar file.
    pub(crate) fn archive(&self, index: &Value) -> Vec<u8> {
        let mut tar = Tar::default()
            .file("oci-layout", r#"{"imageLayoutVersion":"1.0.0"}"#)
            .file("index.json", index.to_string())
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

/// Adds the name annotation of layouts.
pub(crate) fn named(mut descriptor: Value, name: &str) -> Value {
    descriptor["annotations"] = json!({"org.opencontainers.image.ref.name": name});
    descriptor
}

/// Options without registry and daemons.
pub(crate) fn options(scratch: &Path) -> OpenOptions {
    let scratch = scratch.join("scratch");
    OpenOptions { platform: None, client: None, sockets: Vec::new(), progress: None, scratch }
}

pub(crate) fn layout(directory: &Path) -> ImageSource {
    ImageSource::Layout { directory: directory.to_owned(), name: None }
}

pub(crate) fn archive(file: &Path) -> ImageSource {
    ImageSource::Archive { file: file.to_owned(), name: None }
}

/// Finds and opens an image.
pub(crate) fn open(source: &ImageSource, options: &OpenOptions) -> Result<Image, ImageError> {
    ResolvedImage::resolve(source, options)?.open()
}

/// Finds an image with everything that belongs to it.
pub(crate) fn read_bundle(source: &ImageSource, options: &OpenOptions) -> Result<Bundle, WriteError> {
    ResolvedImage::resolve(source, options)?.bundle()
}

/// What refers to an image, all of which can be read.
pub(crate) fn referrers(
    source: &ImageSource,
    subject: &str,
    artifact_type: Option<&str>,
    options: &OpenOptions,
) -> Result<Vec<Referrer>, ImageError> {
    let found =
        ResolvedImage::resolve(source, options)?.referrers(&subject.parse().unwrap(), artifact_type)?;
    assert!(found.unreadable.is_empty() && found.omitted == 0, "{found:?}");
    Ok(found.found)
}

pub(crate) fn referrer_blob(
    source: &ImageSource,
    part: &Descriptor,
    options: &OpenOptions,
) -> Result<Vec<u8>, WriteError> {
    ResolvedImage::resolve(source, options)?.part(part)
}

/// Walks an image and keeps every file's bytes.
pub(crate) fn contents(image: &Image) -> Result<Tree<Vec<u8>>, ImageError> {
    image.walk(LayerLimits::default(), |_, content| Ok(Some(content.all()?.to_vec())))
}

/// Opens an image of these layers from a layout.
pub(crate) fn image_of(layers: &[Vec<u8>]) -> (TempDir, Image) {
    let directory = tempfile::tempdir().unwrap();
    let mut blobs = Blobs::default();
    let manifest = blobs.image("amd64", layers);
    blobs.write(directory.path(), &index(&[manifest]));
    let image = open(&layout(directory.path()), &options(directory.path())).unwrap();
    (directory, image)
}

pub(crate) fn try_merge(layers: &[Vec<u8>]) -> Result<Tree<Vec<u8>>, ImageError> {
    let (_directory, image) = image_of(layers);
    contents(&image)
}

pub(crate) fn merge(layers: &[Vec<u8>]) -> Tree<Vec<u8>> {
    try_merge(layers).unwrap()
}

/// The error for one layer.
pub(crate) fn rejection(layer: Vec<u8>) -> String {
    try_merge(&[layer]).unwrap_err().to_string()
}

/// The tree as lines: `a/`, `a/file=content`, `link>target`, `pipe?`.
pub(crate) fn lines(tree: &Tree<Vec<u8>>) -> Vec<String> {
    let line = |(path, node): (&str, &cudock_image::TreeNode<Vec<u8>>)| match &node.kind {
        FileKind::Directory => format!("{path}/"),
        FileKind::File(TreeFile { kept, .. }) => {
            format!("{path}={}", String::from_utf8_lossy(kept.as_deref().unwrap_or_default()))
        }
        FileKind::Symlink(target) => format!("{path}>{target}"),
        FileKind::Other(Special) => format!("{path}?"),
    };
    tree.iter().map(line).collect()
}

/// The text of a file, following symlinks.
pub(crate) fn text(tree: &Tree<Vec<u8>>, path: &str) -> String {
    let (_, node) = tree.resolve(path).unwrap_or_else(|| panic!("{path} does not exist"));
    String::from_utf8(node.kept().unwrap().clone()).unwrap()
}
