//! The JSON documents of new images. Keys are always in the same order, so that equal content has an equal digest.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::blob::{BundleBlob, BundleDocument};
use super::layer::LayerBlob;
use crate::manifest::{Descriptor, Platform};

pub(super) const INDEX: &str = "application/vnd.oci.image.index.v1+json";
pub(super) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub(super) const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const EMPTY: &str = "application/vnd.oci.empty.v1+json";
/// The content of an empty configuration.
const EMPTY_BYTES: &[u8] = b"{}";

/// The configuration of a new image.
#[derive(Debug, Clone)]
pub struct NewConfig {
    pub platform: Platform,
    /// When it was created, in RFC 3339.
    pub created: Option<String>,
    pub env: Vec<(String, String)>,
    pub entrypoint: Vec<String>,
    pub cmd: Vec<String>,
    pub working_dir: String,
    pub user: String,
    pub stop_signal: String,
    /// Ports, such as `8000/tcp`.
    pub exposed_ports: BTreeSet<String>,
    pub labels: BTreeMap<String, String>,
    pub history: Vec<History>,
}

impl NewConfig {
    /// A configuration with nothing but a platform.
    pub fn new(platform: Platform) -> Self {
        Self {
            platform,
            created: None,
            env: Vec::new(),
            entrypoint: Vec::new(),
            cmd: Vec::new(),
            working_dir: String::new(),
            user: String::new(),
            stop_signal: String::new(),
            exposed_ports: BTreeSet::new(),
            labels: BTreeMap::new(),
            history: Vec::new(),
        }
    }
}

/// How a layer came to be.
#[derive(Debug, Clone, Default, Serialize)]
pub struct History {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    pub created_by: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub comment: String,
    /// Whether it has no layer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub empty_layer: bool,
}

/// Something about an image, such as a signature or a bill of materials.
#[derive(Debug, Clone)]
pub struct Artifact {
    pub artifact_type: String,
    pub layers: Vec<ArtifactBlob>,
    pub annotations: BTreeMap<String, String>,
}

#[derive(Debug, Clone)]
pub struct ArtifactBlob {
    pub media_type: String,
    pub bytes: Vec<u8>,
    pub annotations: BTreeMap<String, String>,
}

#[derive(Serialize)]
struct ConfigForm<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<&'a str>,
    #[serde(flatten)]
    platform: &'a Platform,
    config: RunForm<'a>,
    rootfs: RootFsForm,
    #[serde(skip_serializing_if = "<[History]>::is_empty")]
    history: &'a [History],
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct RunForm<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    user: &'a str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    exposed_ports: BTreeMap<&'a str, serde_json::Map<String, serde_json::Value>>,
    env: Vec<String>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    entrypoint: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    cmd: &'a [String],
    #[serde(skip_serializing_if = "str::is_empty")]
    working_dir: &'a str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "str::is_empty")]
    stop_signal: &'a str,
}

#[derive(Serialize)]
struct RootFsForm {
    r#type: &'static str,
    diff_ids: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ManifestForm<'a> {
    schema_version: u32,
    media_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact_type: Option<&'a str>,
    config: Descriptor,
    layers: Vec<Descriptor>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<Descriptor>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: &'a BTreeMap<String, String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct IndexForm<'a> {
    schema_version: u32,
    media_type: &'static str,
    manifests: &'a [Descriptor],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: &'a BTreeMap<String, String>,
}

/// The bytes of a document. Maps have text keys and nothing else can fail.
pub(super) fn bytes(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

/// The same as text, for an annotation.
pub(super) fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

pub(super) fn config(config: &NewConfig, layers: &[LayerBlob]) -> Vec<u8> {
    bytes(&ConfigForm {
        created: config.created.as_deref(),
        platform: &config.platform,
        config: RunForm {
            user: &config.user,
            exposed_ports: config
                .exposed_ports
                .iter()
                .map(|port| (port.as_str(), serde_json::Map::new()))
                .collect(),
            env: config.env.iter().map(|(name, value)| format!("{name}={value}")).collect(),
            entrypoint: &config.entrypoint,
            cmd: &config.cmd,
            working_dir: &config.working_dir,
            labels: &config.labels,
            stop_signal: &config.stop_signal,
        },
        rootfs: RootFsForm {
            r#type: "layers",
            diff_ids: layers.iter().map(|layer| layer.diff_id.to_string()).collect(),
        },
        history: &config.history,
    })
}

pub(super) fn manifest(
    config: Descriptor,
    layers: Vec<Descriptor>,
    annotations: &BTreeMap<String, String>,
) -> Vec<u8> {
    let (schema_version, media_type) = (2, MANIFEST);
    bytes(&ManifestForm {
        schema_version,
        media_type,
        artifact_type: None,
        config,
        layers,
        subject: None,
        annotations,
    })
}

/// The manifest of an artifact, and its empty configuration.
pub(super) fn artifact(
    artifact: &Artifact,
    layers: Vec<Descriptor>,
    subject: &Descriptor,
) -> (Vec<u8>, (Descriptor, &'static [u8])) {
    let config = Descriptor::of(EMPTY, EMPTY_BYTES);
    // What else a descriptor says about the subject is not the artifact's.
    let subject =
        Descriptor { platform: None, artifact_type: None, annotations: BTreeMap::new(), ..subject.clone() };
    let manifest = bytes(&ManifestForm {
        schema_version: 2,
        media_type: MANIFEST,
        artifact_type: Some(&artifact.artifact_type),
        config: config.clone(),
        layers,
        subject: Some(subject),
        annotations: &artifact.annotations,
    });
    (manifest, (config, EMPTY_BYTES))
}

pub(super) fn index(manifests: &[Descriptor], annotations: &BTreeMap<String, String>) -> Vec<u8> {
    bytes(&IndexForm { schema_version: 2, media_type: INDEX, manifests, annotations })
}

/// The configuration and the manifest of an image that only had a configuration.
pub(crate) fn image_documents(config: &[u8], layers: Vec<Descriptor>) -> (BundleBlob, BundleDocument) {
    let config = BundleBlob::memory(CONFIG, config);
    let bytes = manifest(config.descriptor.clone(), layers, &BTreeMap::new());
    let descriptor = Descriptor::of(MANIFEST, &bytes);
    (config, BundleDocument { descriptor, bytes })
}
