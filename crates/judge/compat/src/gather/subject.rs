//! Decides what kind of subject an argument names.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use cudock_image::{ImageSource, local_path};

use super::{GatherError, file_name};
use cudock_manifests::FileKind;

/// Something that can be checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    Image(ImageSource),
    /// The root directory of a file system.
    Root(PathBuf),
    /// A directory of programs or packages.
    Directory(PathBuf),
    Program(PathBuf),
    Wheel(PathBuf),
    /// A Dockerfile or another dependency file.
    Environment(PathBuf, FileKind),
}

/// Decides what an argument names. A name that is not a path is an image: of a daemon if it has one, which the caller finds
/// out, or of a registry.
pub fn subject(text: &str) -> Result<Subject, GatherError> {
    if let Some(root) = text.strip_prefix("rootfs:").map(PathBuf::from) {
        return if root.is_dir() {
            Ok(Subject::Root(root))
        } else {
            Err(GatherError::NotFound { path: root })
        };
    }
    if let Some(source) = ImageSource::with_transport(text) {
        return Ok(Subject::Image(source?));
    }
    let Some(path) = local_path(text)? else {
        if is_file_name(text) {
            return Err(GatherError::NotFound { path: text.into() });
        }
        return Ok(Subject::Image(ImageSource::reference(text)?));
    };
    if let Some(source) = ImageSource::at(path) {
        return Ok(Subject::Image(source));
    }
    if path.is_dir() {
        let has = |name: &str| path.join(name).symlink_metadata().is_ok();
        let kind = if has("etc") && has("usr") { Subject::Root } else { Subject::Directory };
        return Ok(kind(path.to_owned()));
    }
    file(path)
}

/// The subject of an argument that names an image: a name that does not look like a path or a known
/// file is a registry's, even if a file has this name.
pub fn image_subject(text: &str) -> Result<Subject, GatherError> {
    if text.starts_with("rootfs:") || is_file_name(text) {
        return subject(text);
    }
    Ok(Subject::Image(ImageSource::parse(text)?))
}

/// Whether a name is a path or that of a known file, and not that of an image.
pub fn is_file_name(text: &str) -> bool {
    text.starts_with(['/', '.', '~']) || is_known_file(text)
}

fn is_known_file(text: &str) -> bool {
    let extensions = [
        ".txt", ".whl", ".so", ".toml", ".yml", ".yaml", ".lock", ".tar", ".tgz", ".gz", ".cubin", ".fatbin",
    ];
    let lower = text.to_ascii_lowercase();
    extensions.iter().any(|extension| lower.ends_with(extension)) || text.ends_with("Dockerfile")
}

pub(super) fn file(path: &Path) -> Result<Subject, GatherError> {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(64 << 10).read_to_end(&mut start));
    read.map_err(GatherError::io(path))?;
    if start.starts_with(b"PK\x03\x04") {
        return Ok(Subject::Wheel(path.to_owned()));
    }
    if cudock_fatbin::is_candidate(&start) && !start.starts_with(b"!<arch>") {
        return Ok(Subject::Program(path.to_owned()));
    }
    let kind = FileKind::guess(&file_name(path), &String::from_utf8_lossy(&start));
    kind.map(|kind| Subject::Environment(path.to_owned(), kind))
        .ok_or_else(|| GatherError::NotASubject { path: path.to_owned() })
}
