//! The files of an image as plain data, before anything is written.

use std::path::PathBuf;
use std::sync::Arc;

use cudock_image::FileKind;
use cudock_lock::LayerGroup;

/// A file, directory or link of an image. Owner and times are the same for all, so they are not here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageFile {
    /// Relative to the root, without a leading slash.
    pub path: String,
    pub mode: u32,
    pub kind: FileKind<FileSource>,
    pub origin: Arc<FileOrigin>,
}

/// Where the bytes of a file come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileSource {
    /// Generated.
    Bytes(Vec<u8>),
    /// A file on disk: in the cache, or in the project. `identity` names the content without reading it.
    Disk { path: PathBuf, size: u64, identity: String },
}

/// The package or file that a file comes from, and why that is in the image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileOrigin {
    pub group: LayerGroup,
    /// `torch 2.11.0`, `libc6 2.36-9`, `model.onnx`.
    pub name: String,
    pub reason: String,
}

impl FileOrigin {
    pub fn new(group: LayerGroup, name: impl Into<String>, reason: impl Into<String>) -> Arc<Self> {
        Arc::new(Self { group, name: name.into(), reason: reason.into() })
    }
}

impl ImageFile {
    pub fn directory(path: impl Into<String>, mode: u32, origin: &Arc<FileOrigin>) -> Self {
        Self { path: path.into(), mode, kind: FileKind::Directory, origin: origin.clone() }
    }

    pub fn symlink(path: impl Into<String>, target: impl Into<String>, origin: &Arc<FileOrigin>) -> Self {
        let kind = FileKind::Symlink(target.into());
        Self { path: path.into(), mode: 0o777, kind, origin: origin.clone() }
    }

    pub fn generated(path: impl Into<String>, bytes: impl Into<Vec<u8>>, origin: &Arc<FileOrigin>) -> Self {
        let kind = FileKind::File(FileSource::Bytes(bytes.into()));
        Self { path: path.into(), mode: 0o644, kind, origin: origin.clone() }
    }

    /// The size of a file; zero of everything else.
    pub fn size(&self) -> u64 {
        match &self.kind {
            FileKind::File(FileSource::Bytes(bytes)) => bytes.len() as u64,
            FileKind::File(FileSource::Disk { size, .. }) => *size,
            _ => 0,
        }
    }

    /// The name without its directories.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}
