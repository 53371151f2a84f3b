//! Random layouts and archives that careless readers understand differently, and which image each of them stands for.
//!
//! The expected image is worked out from how the layout was made, by the rule in docs/trust.md, and
//! shares no code with the program.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::random::Random;
use crate::tar::Tar;

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

/// A layout with its parts.
pub struct AmbiguousLayout {
    blobs: BTreeMap<String, Vec<u8>>,
    index: Vec<u8>,
    /// The name to request.
    pub name: Option<String>,
    /// The intended image; `None` if the layout must be refused.
    pub meant: Option<Meant>,
    /// Whether every document below the image can be read, so that it can be copied.
    pub is_whole: bool,
}

/// The image that a layout stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meant {
    /// The digest of its manifest or index.
    pub digest: String,
    /// The manifest for this machine and its marker; `None` if there is none for it.
    pub manifest: Option<(String, String)>,
}

/// An entry of an index, with its properties.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "they occur in any combination")]
struct LayoutEntry {
    descriptor: Value,
    digest: String,
    name: Option<&'static str>,
    /// Whether its descriptor is that of something to start.
    is_startable: bool,
    is_intact: bool,
    /// Whether it is intact and its descriptor fits it.
    is_readable: bool,
    has_subject: bool,
    is_artifact: bool,
    platform: Option<&'static str>,
    content: EntryContent,
}

#[derive(Debug, Clone)]
enum EntryContent {
    Image { marker: String },
    Index(Vec<LayoutEntry>),
}

struct Maker<'r> {
    random: &'r mut Random,
    /// Layers that all images have, uncompressed.
    base: Vec<Vec<u8>>,
    blobs: BTreeMap<String, Vec<u8>>,
    images: usize,
}

impl AmbiguousLayout {
    /// Makes one. Each image prints its marker if it is started, and has these layers below the one with the marker.
    pub fn new(random: &mut Random, base: &[Vec<u8>]) -> Self {
        let mut maker = Maker { random, base: base.to_vec(), blobs: BTreeMap::new(), images: 0 };
        let mut entries: Vec<LayoutEntry> = Vec::new();
        for _ in 0..=maker.random.below(4) {
            let entry = match maker.random.below(8) {
                0 if !entries.is_empty() => {
                    let again = maker.random.below(entries.len());
                    maker.described(entries[again].clone())
                }
                _ => maker.entry(),
            };
            entries.push(entry);
        }
        let name = (*maker.random.pick(&[None, None, Some("a"), Some("b")])).map(str::to_owned);
        let listed: Vec<&Value> = entries.iter().map(|entry| &entry.descriptor).collect();
        let index =
            json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": listed}).to_string().into_bytes();
        let meant = meant(&entries, &index, name.as_deref());
        let top = meant.as_ref().map(|meant| meant.digest.clone());
        let is_top = |entry: &&LayoutEntry| Some(&entry.digest) == top.as_ref() && entry.is_readable;
        let below = match entries.iter().find(is_top) {
            Some(entry) => std::slice::from_ref(entry),
            None => &entries,
        };
        let is_whole = below.iter().all(LayoutEntry::is_whole);
        Self { blobs: maker.blobs, index, name, meant, is_whole }
    }

    /// Writes it as a layout directory.
    pub fn write_layout(&self, directory: &Path) {
        fs::create_dir_all(directory.join("blobs/sha256")).unwrap();
        fs::write(directory.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
        fs::write(directory.join("index.json"), &self.index).unwrap();
        for (digest, bytes) in &self.blobs {
            fs::write(directory.join("blobs").join(digest.replace(':', "/")), bytes).unwrap();
        }
    }

    /// Writes it as an archive.
    pub fn write_archive(&self, file: &Path) {
        let mut tar = Tar::default()
            .file("oci-layout", r#"{"imageLayoutVersion":"1.0.0"}"#)
            .file("index.json", &self.index);
        for (digest, bytes) in &self.blobs {
            tar = tar.entry(format!("blobs/{}", digest.replace(':', "/")), b'0', "", bytes);
        }
        fs::write(file, tar.end()).unwrap();
    }
}

impl Maker<'_> {
    fn add(&mut self, bytes: Vec<u8>) -> (String, usize) {
        let (digest, size) = (digest_of(&bytes), bytes.len());
        self.blobs.insert(digest.clone(), bytes);
        (digest, size)
    }

    fn described_blob(&mut self, media_type: &str, bytes: Vec<u8>) -> Value {
        let (digest, size) = self.add(bytes);
        json!({"mediaType": media_type, "digest": digest, "size": size})
    }

    /// A manifest or index, with a descriptor of its own.
    fn entry(&mut self) -> LayoutEntry {
        let entry = if self.random.one_in(6) { self.nested() } else { self.image() };
        self.described(entry)
    }

    fn nested(&mut self) -> LayoutEntry {
        let children: Vec<LayoutEntry> = (0..=self.random.below(3))
            .map(|_| {
                let image = self.image();
                self.described(image)
            })
            .collect();
        let listed: Vec<&Value> = children.iter().map(|child| &child.descriptor).collect();
        let mut document = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": listed});
        let has_subject = self.subject(&mut document);
        self.finish(document, has_subject, false, EntryContent::Index(children))
    }

    fn image(&mut self) -> LayoutEntry {
        self.images += 1;
        let marker = format!("image-{}", self.images);
        let mut layers = self.base.clone();
        layers.push(Tar::default().file("marker", format!("{marker}\n")).end());
        let diff_ids: Vec<String> = layers.iter().map(|layer| digest_of(layer)).collect();
        let config = json!({
            "architecture": "amd64", "os": "linux",
            "config": {"Cmd": ["/bin/busybox", "cat", "/marker"], "Labels": {"marker": marker}},
            "rootfs": {"type": "layers", "diff_ids": diff_ids},
        });
        let config = self.described_blob(CONFIG, config.to_string().into_bytes());
        let layers: Vec<Value> = layers.into_iter().map(|layer| self.described_blob(LAYER, layer)).collect();
        let mut document =
            json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers});
        let has_subject = self.subject(&mut document);
        let is_artifact = self.random.one_in(10);
        if is_artifact {
            document["artifactType"] = json!("application/vnd.example");
        }
        self.finish(document, has_subject, is_artifact, EntryContent::Image { marker })
    }

    fn subject(&mut self, document: &mut Value) -> bool {
        let has_subject = self.random.one_in(5);
        if has_subject {
            let digests: Vec<String> = self.blobs.keys().cloned().collect();
            let about =
                if digests.is_empty() { digest_of(b"nothing") } else { self.random.pick(&digests).clone() };
            document["subject"] = json!({"mediaType": MANIFEST, "digest": about, "size": 7});
        }
        has_subject
    }

    /// Adds a document, which may be broken.
    fn finish(
        &mut self,
        mut document: Value,
        has_subject: bool,
        is_artifact: bool,
        content: EntryContent,
    ) -> LayoutEntry {
        let is_index = matches!(content, EntryContent::Index(_));
        let mut is_intact = true;
        match self.random.below(40) {
            // Both kinds at once.
            0 if is_index => {
                document["config"] = self.described_blob(CONFIG, b"{}".to_vec());
                document["layers"] = json!([]);
                is_intact = false;
            }
            0 => {
                document["manifests"] = json!([]);
                is_intact = false;
            }
            // The media type of the other kind.
            1 => {
                document["mediaType"] = json!(if is_index { MANIFEST } else { INDEX });
                is_intact = false;
            }
            2 => _ = document.as_object_mut().unwrap().remove("mediaType"),
            _ => {}
        }
        let media_type = if is_index { INDEX } else { MANIFEST };
        let descriptor = self.described_blob(media_type, document.to_string().into_bytes());
        let digest = descriptor["digest"].as_str().unwrap().to_owned();
        match self.random.below(60) {
            0 => {
                self.blobs.remove(&digest);
                is_intact = false;
            }
            1 => {
                self.blobs.get_mut(&digest).unwrap()[0] = b' ';
                is_intact = false;
            }
            _ => {}
        }
        LayoutEntry {
            descriptor,
            digest,
            name: None,
            is_startable: true,
            is_intact,
            is_readable: is_intact,
            has_subject,
            is_artifact,
            platform: None,
            content,
        }
    }

    /// The entry with another descriptor of the same document.
    fn described(&mut self, mut entry: LayoutEntry) -> LayoutEntry {
        let is_index = matches!(entry.content, EntryContent::Index(_));
        let descriptor = &mut entry.descriptor;
        *descriptor = json!({
            "mediaType": if is_index { INDEX } else { MANIFEST },
            "digest": descriptor["digest"], "size": descriptor["size"],
        });
        entry.is_readable = entry.is_intact;
        match self.random.below(30) {
            0 => {
                descriptor["mediaType"] = json!(if is_index { MANIFEST } else { INDEX });
                entry.is_readable = false;
            }
            1 => descriptor["mediaType"] = json!(""),
            2 => descriptor["mediaType"] = json!("application/octet-stream"),
            _ => {}
        }
        entry.platform =
            *self.random.pick(&[None, None, Some("amd64"), Some("arm64"), Some("s390x"), Some("unknown")]);
        if let Some(architecture) = entry.platform {
            descriptor["platform"] = json!({"os": "linux", "architecture": architecture});
        }
        let mut annotations = serde_json::Map::new();
        entry.name = *self.random.pick(&[None, None, Some("a"), Some("b")]);
        if let Some(name) = entry.name {
            annotations.insert("org.opencontainers.image.ref.name".to_owned(), json!(name));
        }
        entry.is_startable = entry.platform != Some("unknown");
        if self.random.one_in(10) {
            annotations.insert("vnd.docker.reference.type".to_owned(), json!("attestation-manifest"));
            entry.is_startable = false;
        }
        if self.random.one_in(12) {
            descriptor["artifactType"] = json!("application/vnd.example");
            entry.is_startable = false;
        }
        if self.random.one_in(8) {
            let referrers = json!({"mediaType": INDEX, "digest": digest_of(b"none"), "size": 4}).to_string();
            annotations.insert("io.cudock.referrers".to_owned(), json!(referrers));
        }
        if !annotations.is_empty() || self.random.one_in(4) {
            entry.descriptor["annotations"] = Value::Object(annotations);
        }
        entry
    }
}

impl LayoutEntry {
    /// Whether it can be read with everything that it lists.
    fn is_whole(&self) -> bool {
        let children: &[LayoutEntry] = match &self.content {
            EntryContent::Image { .. } => &[],
            EntryContent::Index(children) => children,
        };
        self.is_readable && children.iter().all(LayoutEntry::is_whole)
    }

    /// The manifest for this machine at or below it.
    fn manifest(&self) -> Option<(String, String)> {
        match &self.content {
            _ if !self.is_readable => None,
            EntryContent::Image { marker } => Some((self.digest.clone(), marker.clone())),
            EntryContent::Index(children) => selected(children),
        }
    }
}

/// The image for this machine among several: the only one, or the first for its platform.
fn selected(entries: &[LayoutEntry]) -> Option<(String, String)> {
    let startable: Vec<&LayoutEntry> = entries.iter().filter(|entry| entry.is_startable).collect();
    let here = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    match startable.as_slice() {
        [only] => only.manifest(),
        several => several.iter().find(|entry| entry.platform == Some(here))?.manifest(),
    }
}

/// The image that an `index.json` stands for.
fn meant(entries: &[LayoutEntry], index: &[u8], name: Option<&str>) -> Option<Meant> {
    // An image that cannot be read does not make way for another one.
    if entries.iter().any(|entry| entry.is_startable && !entry.is_readable) {
        return None;
    }
    let readable = || entries.iter().filter(|entry| entry.is_readable && !entry.has_subject);
    let is_image = |entry: &&LayoutEntry| entry.is_startable && !entry.is_artifact;
    let all: Vec<&LayoutEntry> = readable().filter(is_image).collect();
    let has_others = readable().any(|entry| !is_image(&entry));
    let wanted: Vec<&LayoutEntry> =
        all.iter().copied().filter(|entry| name.is_none() || entry.name == name).collect();
    let digests: BTreeSet<&str> = wanted.iter().map(|entry| entry.digest.as_str()).collect();
    match (digests.len(), name) {
        (1, Some(_)) => Some(Meant { digest: wanted[0].digest.clone(), manifest: wanted[0].manifest() }),
        (1, None) if !has_others => {
            Some(Meant { digest: wanted[0].digest.clone(), manifest: wanted[0].manifest() })
        }
        (0, None) | (_, Some(_)) => None,
        (_, None) => {
            let names: BTreeSet<&str> = all.iter().filter_map(|entry| entry.name).collect();
            (names.len() <= 1).then(|| Meant { digest: digest_of(index), manifest: selected(entries) })
        }
    }
}

fn digest_of(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold("sha256:".to_owned(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}
