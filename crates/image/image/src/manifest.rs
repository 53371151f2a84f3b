//! The JSON documents of an image: index, manifest and configuration.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use cudock_base::{Arch, Digest};
use serde::{Deserialize, Serialize};

use crate::error::ImageError;

/// The largest document that registries accept.
pub(crate) const MAX_DOCUMENT: usize = 8 << 20;

/// An OCI content descriptor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    #[serde(default)]
    pub media_type: String,
    /// The kind of artifact that a manifest describes, if it is not an image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    pub digest: String,
    #[serde(deserialize_with = "plausible_size")]
    pub size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_default")]
    pub annotations: BTreeMap<String, String>,
}

/// The annotation that holds the name of an image in a layout.
pub(crate) const REF_NAME: &str = "org.opencontainers.image.ref.name";
/// The annotation of an image in a layout that holds the descriptor of an index: what refers to the image.
pub(crate) const REFERRERS: &str = "io.cudock.referrers";

impl Descriptor {
    /// Describes these bytes.
    pub fn of(media_type: &str, bytes: &[u8]) -> Self {
        Self {
            media_type: media_type.to_owned(),
            artifact_type: None,
            digest: Digest::sha256_of(bytes).to_string(),
            size: bytes.len() as u64,
            platform: None,
            annotations: BTreeMap::new(),
        }
    }

    /// The index of what refers to an image, in the layout that lists the image.
    pub(crate) fn referrers(&self) -> Option<Self> {
        serde_json::from_str(self.annotations.get(REFERRERS)?).ok()
    }

    /// Whether it describes an image. Indexes also list attestations and signatures.
    pub(crate) fn is_image(&self) -> bool {
        let attested = self.annotations.contains_key("vnd.docker.reference.type");
        let unknown = self.platform.as_ref().is_some_and(|platform| platform.architecture == "unknown");
        !attested && !unknown && self.artifact_type.is_none()
    }
}

/// An index or a manifest: registries and layouts serve either one under the same name.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Document {
    schema_version: Option<u32>,
    media_type: Option<String>,
    pub(crate) manifests: Option<Vec<Descriptor>>,
    pub(crate) config: Option<Descriptor>,
    pub(crate) layers: Option<Vec<Descriptor>>,
    /// The document that this one is about, if it is a referrer.
    pub(crate) subject: Option<Descriptor>,
    pub(crate) artifact_type: Option<String>,
    #[serde(default, deserialize_with = "null_is_default")]
    pub(crate) annotations: BTreeMap<String, String>,
}

/// The operating system and architecture of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Platform {
    /// `linux`
    pub os: String,
    /// `amd64`, `arm64`
    pub architecture: String,
    /// `v8`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
}

impl Platform {
    pub fn linux(architecture: &str) -> Self {
        Self { os: "linux".to_owned(), architecture: architecture.to_owned(), variant: None }
    }

    /// Whether an image for this platform satisfies a request for `requested`.
    pub fn satisfies(&self, requested: &Platform) -> bool {
        self.os == requested.os
            && self.architecture == requested.architecture
            && (requested.variant.is_none() || self.variant == requested.variant)
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)?;
        self.variant.as_ref().map_or(Ok(()), |variant| write!(f, "/{variant}"))
    }
}

impl FromStr for Platform {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split('/').map(str::to_owned);
        let (os, architecture, variant) = (parts.next(), parts.next(), parts.next());
        let invalid = || format!("`{text}` is not a platform (such as linux/amd64)");
        let architecture = Arch::to_oci(&architecture.ok_or_else(invalid)?).to_owned();
        let os = os.filter(|os| !os.is_empty()).ok_or_else(invalid)?;
        if architecture.is_empty() || parts.next().is_some() {
            return Err(invalid());
        }
        Ok(Self { os, architecture, variant })
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
pub struct ImageConfig {
    #[serde(default)]
    pub architecture: String,
    #[serde(default)]
    pub os: String,
    pub variant: Option<String>,
    #[serde(default)]
    pub config: RunConfig,
    #[serde(default)]
    pub(crate) rootfs: RootFs,
}

/// How to start a container.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct RunConfig {
    #[serde(default, deserialize_with = "null_is_default")]
    env: Vec<String>,
    /// The program, with the arguments that always come first.
    #[serde(default, deserialize_with = "null_is_default")]
    pub entrypoint: Vec<String>,
    /// The arguments, or the whole command line if there is no entry point.
    #[serde(default, deserialize_with = "null_is_default")]
    pub cmd: Vec<String>,
    #[serde(default)]
    pub working_dir: String,
    /// The user, with an optional group.
    #[serde(default)]
    pub user: String,
    /// The signal that stops the container; SIGTERM if empty.
    #[serde(default)]
    pub stop_signal: String,
    #[serde(default, deserialize_with = "null_is_default")]
    exposed_ports: BTreeMap<String, serde_json::Value>,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct RootFs {
    #[serde(default)]
    pub(crate) diff_ids: Vec<String>,
}

/// Sizes are claims until the bytes are there. Larger ones cannot be true, and their sum would not be a number.
fn plausible_size<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    const MAX: u64 = 1 << 44;
    let size = u64::deserialize(deserializer)?;
    if size > MAX {
        return Err(serde::de::Error::custom(format!("a part of {size} bytes is larger than any image")));
    }
    Ok(size)
}

/// Docker writes `null` for an empty list.
fn null_is_default<'de, D: serde::Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

impl ImageConfig {
    pub fn platform(&self) -> Platform {
        let os = if self.os.is_empty() { "linux" } else { &self.os };
        Platform {
            os: os.to_owned(),
            architecture: self.architecture.clone(),
            variant: self.variant.clone().filter(|variant| !variant.is_empty()),
        }
    }
}

impl RunConfig {
    /// The environment. The last of several values for one name wins.
    pub fn environment(&self) -> BTreeMap<String, String> {
        let pairs = self.env.iter().filter_map(|line| line.split_once('='));
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// The ports that the image exposes, such as 8080/tcp.
    pub fn exposed_ports(&self) -> impl Iterator<Item = String> {
        self.exposed_ports.keys().cloned()
    }

    /// The command line that a container starts with.
    pub fn command(&self) -> Vec<String> {
        self.entrypoint.iter().chain(&self.cmd).cloned().collect()
    }
}

pub(crate) fn parse<T: for<'de> Deserialize<'de>>(location: &str, bytes: &[u8]) -> Result<T, ImageError> {
    if bytes.len() > MAX_DOCUMENT {
        let message = format!("{} bytes is too large for an image document", bytes.len());
        return Err(ImageError::document(location, message));
    }
    serde_json::from_slice(bytes).map_err(|error| ImageError::document(location, error.to_string()))
}

impl Document {
    pub(crate) fn read(location: &str, bytes: &[u8]) -> Result<Self, ImageError> {
        let document: Self = parse(location, bytes)?;
        let invalid = |message: &str| ImageError::document(location, message);
        if document.schema_version == Some(1) {
            return Err(invalid("schema version 1 manifests are not supported: push the image again"));
        }
        match (document.manifests.is_some(), document.config.is_some() || document.layers.is_some()) {
            (false, _) if document.config.is_none() => Err(invalid("neither an index nor a manifest")),
            // Two readers would see two images (CVE-2021-41190).
            (true, true) => Err(invalid("rejected: an index and a manifest in one document")),
            _ => {
                document.kind().check(location, document.media_type.as_deref().unwrap_or_default())?;
                Ok(document)
            }
        }
    }

    /// Reads the document that a descriptor describes.
    pub(crate) fn read_as(location: &str, descriptor: &Descriptor, bytes: &[u8]) -> Result<Self, ImageError> {
        let document = Self::read(location, bytes)?;
        document.kind().check(location, &descriptor.media_type)?;
        Ok(document)
    }

    pub(crate) fn kind(&self) -> DocumentKind {
        if self.manifests.is_some() { DocumentKind::Index } else { DocumentKind::Manifest }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DocumentKind {
    Manifest,
    Index,
}

impl DocumentKind {
    /// Fails if a media type is that of the other kind of document.
    pub(crate) fn check(self, location: &str, media_type: &str) -> Result<(), ImageError> {
        const INDEXES: [&str; 2] = [
            "application/vnd.oci.image.index.v1+json",
            "application/vnd.docker.distribution.manifest.list.v2+json",
        ];
        const MANIFESTS: [&str; 2] = [
            "application/vnd.oci.image.manifest.v1+json",
            "application/vnd.docker.distribution.manifest.v2+json",
        ];
        let (others, is, called) = match self {
            Self::Index => (MANIFESTS, "an index", "a manifest"),
            Self::Manifest => (INDEXES, "a manifest", "an index"),
        };
        if others.contains(&media_type) {
            let message = format!("rejected: {is} with the media type of {called}");
            return Err(ImageError::document(location, message));
        }
        Ok(())
    }
}
