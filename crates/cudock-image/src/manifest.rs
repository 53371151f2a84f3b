//! The documents of an image: index, manifest, configuration.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use cudock_base::Arch;
use serde::{Deserialize, Serialize};

use crate::error::ImageError;

/// No document of an image is larger, as registries have it.
pub(crate) const MAX_DOCUMENT: usize = 8 << 20;

/// A pointer to a blob.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Descriptor {
    #[serde(default)]
    pub(crate) media_type: String,
    pub(crate) digest: String,
    pub(crate) size: u64,
    pub(crate) platform: Option<Platform>,
    #[serde(default)]
    pub(crate) annotations: BTreeMap<String, String>,
}

/// The annotation that holds an image's name in a layout.
pub(crate) const REF_NAME: &str = "org.opencontainers.image.ref.name";

impl Descriptor {
    /// Whether it is an image: attestations and signatures lie beside images.
    pub(crate) fn is_image(&self) -> bool {
        let attested = self.annotations.contains_key("vnd.docker.reference.type");
        let unknown = self.platform.as_ref().is_some_and(|platform| platform.architecture == "unknown");
        !attested && !unknown
    }
}

/// An index or a manifest: registries and layouts hand out either under one name.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Document {
    schema_version: Option<u32>,
    pub(crate) manifests: Option<Vec<Descriptor>>,
    pub(crate) config: Option<Descriptor>,
    pub(crate) layers: Option<Vec<Descriptor>>,
}

/// Which processor and system an image is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Platform {
    /// linux
    pub os: String,
    /// amd64, arm64
    pub architecture: String,
    /// v8
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
}

impl Platform {
    /// Linux on this processor.
    pub fn linux(architecture: &str) -> Self {
        Self { os: "linux".to_owned(), architecture: architecture.to_owned(), variant: None }
    }

    /// Whether an image for this platform is one for `wanted`.
    pub fn satisfies(&self, wanted: &Platform) -> bool {
        self.os == wanted.os
            && self.architecture == wanted.architecture
            && (wanted.variant.is_none() || self.variant == wanted.variant)
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
        let wrong = || format!("`{text}` is not a platform (such as linux/amd64)");
        let architecture = Arch::to_oci(&architecture.ok_or_else(wrong)?).to_owned();
        let os = os.filter(|os| !os.is_empty()).ok_or_else(wrong)?;
        if architecture.is_empty() || parts.next().is_some() {
            return Err(wrong());
        }
        Ok(Self { os, architecture, variant })
    }
}

/// An image's configuration.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Config {
    /// amd64, arm64
    #[serde(default)]
    pub architecture: String,
    /// linux
    #[serde(default)]
    pub os: String,
    /// v8
    pub variant: Option<String>,
    /// How a container of it is started.
    #[serde(default)]
    pub config: RunConfig,
    #[serde(default)]
    pub(crate) rootfs: RootFs,
}

/// How a container is started.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct RunConfig {
    #[serde(default, deserialize_with = "null_is_empty")]
    env: Vec<String>,
    /// The program, with arguments that always come first.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub entrypoint: Vec<String>,
    /// Its arguments, or the program where there is no entry point.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub cmd: Vec<String>,
    /// Where it starts.
    #[serde(default)]
    pub working_dir: String,
    /// As whom it starts.
    #[serde(default)]
    pub user: String,
    /// The signal that asks it to stop; TERM where it is empty.
    #[serde(default)]
    pub stop_signal: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct RootFs {
    #[serde(default)]
    pub(crate) diff_ids: Vec<String>,
}

/// Docker writes `null` where there is nothing.
fn null_is_empty<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::<Vec<String>>::deserialize(deserializer)?.unwrap_or_default())
}

impl Config {
    /// The platform it says it is for.
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
    /// Its environment. The last of two settings of one name counts.
    pub fn environment(&self) -> BTreeMap<String, String> {
        let pairs = self.env.iter().filter_map(|line| line.split_once('='));
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// The command line a container starts with.
    pub fn command(&self) -> Vec<String> {
        self.entrypoint.iter().chain(&self.cmd).cloned().collect()
    }
}

/// Reads a document.
pub(crate) fn parse<T: for<'de> Deserialize<'de>>(place: &str, bytes: &[u8]) -> Result<T, ImageError> {
    let wrong = |message: String| ImageError::Document { place: place.to_owned(), message };
    if bytes.len() > MAX_DOCUMENT {
        return Err(wrong(format!("{} bytes is too large for a document of an image", bytes.len())));
    }
    serde_json::from_slice(bytes).map_err(|error| wrong(error.to_string()))
}

impl Document {
    pub(crate) fn read(place: &str, bytes: &[u8]) -> Result<Self, ImageError> {
        let document: Self = parse(place, bytes)?;
        let wrong =
            |message: &str| ImageError::Document { place: place.to_owned(), message: message.to_owned() };
        match document.schema_version {
            Some(1) => {
                Err(wrong("a manifest of the first schema, which registries stopped serving; push it again"))
            }
            _ if document.manifests.is_none() && document.config.is_none() => {
                Err(wrong("neither an index nor a manifest"))
            }
            _ => Ok(document),
        }
    }
}
