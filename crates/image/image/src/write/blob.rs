//! The parts of an image: its documents and blobs, wherever they are.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use cudock_base::Digest;

use super::error::WriteError;
use super::layer::LayerBlob;
use crate::manifest::Descriptor;
use crate::open::{Bytes, Layer};

/// A manifest or an index.
#[derive(Clone)]
pub(crate) struct BundleDocument {
    pub(crate) descriptor: Descriptor,
    pub(crate) bytes: Vec<u8>,
}

/// A configuration, a layer, or a part of an artifact.
#[derive(Clone)]
pub(crate) struct BundleBlob {
    pub(crate) descriptor: Descriptor,
    pub(crate) data: BlobData,
}

#[derive(Clone)]
pub(crate) enum BlobData {
    Memory(Arc<[u8]>),
    /// A file that a blob store has verified.
    File(PathBuf),
    /// A part of another image, which may not have been fetched yet.
    Layer(Arc<Layer>),
}

/// The bytes of a blob.
pub(crate) enum BlobBytes {
    Memory(Arc<[u8]>),
    Mapped(Bytes),
}

impl std::ops::Deref for BlobBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            BlobBytes::Memory(bytes) => bytes,
            BlobBytes::Mapped(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for BlobBytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl BundleBlob {
    pub(super) fn memory(media_type: &str, bytes: &[u8]) -> Self {
        Self { descriptor: Descriptor::of(media_type, bytes), data: BlobData::Memory(bytes.into()) }
    }

    /// The bytes, fetched if necessary. Those of layouts and archives are verified by what writes them.
    pub(super) fn bytes(&self) -> Result<BlobBytes, WriteError> {
        Ok(match &self.data {
            BlobData::Memory(bytes) => BlobBytes::Memory(bytes.clone()),
            BlobData::File(path) => BlobBytes::Mapped(Bytes::of_file(path)?),
            BlobData::Layer(layer) => BlobBytes::Mapped(layer.bytes()?),
        })
    }

    pub(super) fn digest(&self) -> Result<Digest, WriteError> {
        let digest = &self.descriptor.digest;
        digest.parse().map_err(|_| WriteError::damaged(digest, "not a digest"))
    }

    /// The bytes, which have been compared with their digest.
    pub(crate) fn verified(&self) -> Result<BlobBytes, WriteError> {
        let bytes = self.bytes()?;
        let digest = self.digest()?;
        let is_verified = match &self.data {
            BlobData::Memory(_) | BlobData::File(_) => true,
            BlobData::Layer(layer) => layer.is_verified(),
        };
        if !is_verified && Digest::of(digest.algorithm(), &bytes) != digest {
            return Err(WriteError::damaged(&self.descriptor.digest, "its content has another digest"));
        }
        Ok(bytes)
    }
}

impl LayerBlob {
    pub(super) fn descriptor(&self) -> Descriptor {
        Descriptor {
            media_type: self.media_type.clone(),
            artifact_type: None,
            digest: self.digest.to_string(),
            size: self.size,
            platform: None,
            annotations: BTreeMap::new(),
        }
    }

    pub(super) fn blob(&self) -> BundleBlob {
        BundleBlob { descriptor: self.descriptor(), data: BlobData::File(self.path.clone()) }
    }
}
