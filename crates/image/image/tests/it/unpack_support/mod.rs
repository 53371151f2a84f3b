//! Temporary layer stores, next to a directory that must not change.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use cudock_base::Digest;
use cudock_http::Progress;
use cudock_image::Image;
use cudock_image::unpack::{LayerStore, UnpackError, Unpacked};
use rustix::fs::lgetxattr;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Blobs, CONFIG, LAYER, index, layout, open, options};

pub(crate) struct Quiet;

impl Progress for Quiet {}

pub(crate) fn silent() -> Quiet {
    Quiet
}

pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// A decompressed layer.
pub(crate) fn decoded(layer: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    match layer {
        [0x1f, 0x8b, ..] => {
            let _ = std::io::Read::read_to_end(&mut flate2::bufread::MultiGzDecoder::new(layer), &mut bytes);
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => bytes = zstd::decode_all(layer).unwrap_or_default(),
        _ => bytes = layer.to_vec(),
    }
    bytes
}

/// Writes a layout with these layers and diff ids.
pub(crate) fn layout_with(directory: &Path, layers: &[Vec<u8>], diffs: &[String]) {
    let mut blobs = Blobs::default();
    let descriptors: Vec<Value> = layers.iter().map(|layer| blobs.add(LAYER, layer.clone())).collect();
    let config = json!({
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": ["/run"], "Cmd": null},
        "rootfs": {"type": "layers", "diff_ids": diffs},
    });
    let config = blobs.document(CONFIG, &config);
    let manifest = blobs.manifest(&config, &descriptors, "amd64");
    blobs.write(directory, &index(&[manifest]));
}

pub(crate) fn diffs_of(layers: &[Vec<u8>]) -> Vec<String> {
    layers.iter().map(|layer| Digest::sha256_of(&decoded(layer)).to_string()).collect()
}

/// An image of these layers, with correct diff ids.
pub(crate) fn image_with(layers: &[Vec<u8>]) -> (TempDir, Image) {
    let directory = tempfile::tempdir().unwrap();
    layout_with(directory.path(), layers, &diffs_of(layers));
    let image = open(&layout(directory.path()), &options(directory.path())).unwrap();
    (directory, image)
}

/// A store, and a directory next to it with a file in it.
pub(crate) struct Bench {
    directory: TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("outside")).unwrap();
        fs::write(directory.path().join("outside/victim"), "as it was").unwrap();
        Self { directory }
    }

    pub(crate) fn outside(&self) -> PathBuf {
        self.directory.path().join("outside")
    }

    pub(crate) fn store_dir(&self) -> PathBuf {
        self.directory.path().join("store")
    }

    pub(crate) fn store(&self) -> LayerStore {
        LayerStore::open(self.store_dir()).unwrap()
    }

    pub(crate) fn try_unpack(&self, layers: &[Vec<u8>]) -> Result<Unpacked, UnpackError> {
        let (_directory, image) = image_with(layers);
        self.store().unpack(&image, &silent())
    }

    pub(crate) fn unpack(&self, layers: &[Vec<u8>]) -> Unpacked {
        self.try_unpack(layers).unwrap()
    }

    /// The names of all layers in the store, complete or not.
    pub(crate) fn layers_on_disk(&self) -> Vec<String> {
        let mut names = Vec::new();
        for flavor in fs::read_dir(self.store_dir()).unwrap() {
            let Ok(entries) = fs::read_dir(flavor.unwrap().path().join("sha256")) else { continue };
            names.extend(entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()));
        }
        names.sort();
        names
    }

    #[track_caller]
    pub(crate) fn assert_untouched(&self) {
        assert_eq!(lines(&self.outside()), ["victim=as it was"]);
        let mut siblings: Vec<_> =
            fs::read_dir(self.directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        siblings.sort();
        assert_eq!(siblings, ["outside", "store"]);
    }
}

/// A tree as lines: `a/`, `a/file=content`, `link>target`, `pipe?`, `gone!` for a whiteout.
pub(crate) fn lines(directory: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    list(directory, "", &mut lines);
    lines.sort();
    lines
}

fn list(directory: &Path, prefix: &str, lines: &mut Vec<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let meta = fs::symlink_metadata(entry.path()).unwrap();
        let kind = meta.file_type();
        if kind.is_dir() {
            list(&entry.path(), &format!("{path}/"), lines);
            lines.push(format!("{path}/"));
        } else if kind.is_symlink() {
            lines.push(format!("{path}>{}", fs::read_link(entry.path()).unwrap().to_string_lossy()));
        } else if kind.is_file() {
            let content = fs::read(entry.path()).unwrap();
            lines.push(format!("{path}={}", String::from_utf8_lossy(&content)));
        } else if kind.is_char_device() && meta.rdev() == 0 {
            lines.push(format!("{path}!"));
        } else {
            lines.push(format!("{path}?"));
        }
    }
}

/// The value of an extended attribute, if it is set.
pub(crate) fn attribute(path: &Path, name: &str) -> Option<Vec<u8>> {
    let mut value = vec![0; 4096];
    let length = lgetxattr(path, name, value.as_mut_slice()).ok()?;
    value.truncate(length);
    Some(value)
}
