//! `cudock.lock`: every package of an image, with its hash.

use std::collections::BTreeMap;
use std::path::Path;

use cudock_base::{Arch, Digest, files};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::LockError;

/// The name of the file, next to `cudock.toml`.
pub const LOCK_NAME: &str = "cudock.lock";

const SCHEMA: u32 = 1;
const MAX_BYTES: u64 = 16 << 20;
const HEADER: &str = "# Written by `cudock lock` from cudock.toml; do not edit.\n";

/// What an image is made of. Lists are sorted, so that the same packages give the same bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LockFile {
    pub schema: u32,
    pub target: LockTarget,
    /// What it was made from: `[image]` and the name of each file that was read, with its digest.
    #[schemars(with = "BTreeMap<String, String>")]
    pub inputs: BTreeMap<String, Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub debian: Option<DebianRelease>,
    /// Debian packages, by name.
    #[serde(default, rename = "deb", skip_serializing_if = "Vec::is_empty")]
    pub debs: Vec<LockedDeb>,
    /// Wheels, by name.
    #[serde(default, rename = "wheel", skip_serializing_if = "Vec::is_empty")]
    pub wheels: Vec<LockedWheel>,
}

/// What the image is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LockTarget {
    /// `x86_64` or `aarch64`.
    #[schemars(with = "String")]
    pub arch: Arch,
    /// The version of Python, as in `3.13`; absent in an image without Python.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
    /// The version of the newest CUDA library among the wheels, as in `13.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cuda: Option<String>,
    /// The GPUs, as `[image]` names them; none for an image that runs on CPUs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<String>,
}

/// The release that the Debian packages are from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DebianRelease {
    /// `debian`
    pub distribution: String,
    /// `bookworm`
    pub suite: String,
}

/// A Debian package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LockedDeb {
    pub name: String,
    pub version: String,
    /// The file's name.
    pub file: String,
    /// Its path below the root of the archive.
    pub path: String,
    /// The archive: `debian` or `debian-security`.
    pub archive: String,
    pub size: u64,
    #[schemars(with = "String")]
    pub digest: Digest,
    pub group: LayerGroup,
    /// Why it is there: `libc6 of libstdc++6`, or `[image]`.
    pub reason: String,
}

/// A wheel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LockedWheel {
    /// Normalized: lower case, with dashes.
    pub name: String,
    pub version: String,
    pub file: String,
    /// The path of its URL, below the host or, for PyPI's layout, from `packages/` on.
    pub path: String,
    pub size: u64,
    #[schemars(with = "String")]
    pub digest: Digest,
    pub group: LayerGroup,
    /// The requirements that it is there for: `torch`, or `requirements.txt`.
    pub reason: String,
}

/// Groups of files that change together. Layers are in this order, those that change least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LayerGroup {
    /// libc, certificates, and other packages of Debian.
    System,
    /// The interpreter and its standard library.
    Python,
    /// NVIDIA's libraries.
    Cuda,
    /// PyTorch, ONNX Runtime and the like.
    Framework,
    Dependencies,
    Model,
    Program,
}

impl LockFile {
    pub fn new(target: LockTarget, inputs: BTreeMap<String, Digest>) -> Self {
        Self { schema: SCHEMA, target, inputs, debian: None, debs: Vec::new(), wheels: Vec::new() }
    }

    /// Reads a lock file; `None` if there is none.
    pub fn read(path: &Path) -> Result<Option<Self>, LockError> {
        let text = files::read_optional(path, MAX_BYTES).map_err(cudock_base::FileError::at("read", path))?;
        text.map(|text| Self::parse(path, &text)).transpose()
    }

    /// Parses a lock file; `path` is for errors.
    pub fn parse(path: &Path, text: &str) -> Result<Self, LockError> {
        let wrong = |reason: String| LockError::Parse { path: path.to_owned(), reason };
        let lock: Self =
            toml::from_str(text).map_err(|error| wrong(error.to_string().trim_end().replace('\n', "; ")))?;
        if lock.schema == SCHEMA {
            Ok(lock)
        } else {
            Err(wrong(format!("schema {} is not supported, only {SCHEMA} is", lock.schema)))
        }
    }

    /// The text of the file.
    pub fn text(&self) -> Result<String, LockError> {
        let mut sorted = self.clone();
        sorted.debs.sort_by(|a, b| a.name.cmp(&b.name));
        sorted.wheels.sort_by(|a, b| a.name.cmp(&b.name));
        let text =
            toml::to_string(&sorted).map_err(|error| LockError::Write { reason: error.to_string() })?;
        Ok(format!("{HEADER}{text}"))
    }

    /// The digest of the text, which names a build.
    pub fn digest(&self) -> Result<Digest, LockError> {
        Ok(Digest::sha256_of(self.text()?.as_bytes()))
    }

    /// The bytes to download.
    pub fn download_bytes(&self) -> u64 {
        let sizes = self.debs.iter().map(|deb| deb.size).chain(self.wheels.iter().map(|wheel| wheel.size));
        sizes.fold(0, u64::saturating_add)
    }
}
