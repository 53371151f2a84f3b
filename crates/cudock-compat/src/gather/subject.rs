//! Decides what kind of subject an argument names.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use cudock_image::ImageSource;

use super::GatherError;
use cudock_declared::FileKind;

/// Something that can be checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A container image.
    Image(ImageSource),
    /// The root directory of a file system.
    Root(PathBuf),
    /// A directory of programs or packages.
    Directory(PathBuf),
    /// A program or a library.
    Program(PathBuf),
    Wheel(PathBuf),
    /// A Dockerfile or another dependency file.
    Environment(PathBuf, FileKind),
}

/// Decides what an argument names. A name that is not a path is an image: of a daemon if it has one, which the caller finds
/// out, or of a registry.
pub fn subject(text: &str) -> Result<Subject, GatherError> {
    if let Some(root) = text.strip_prefix("rootfs:") {
        return existing(Path::new(root)).map(|root| Subject::Root(root.to_owned()));
    }
    if let Some(source) = ImageSource::with_transport(text) {
        return Ok(Subject::Image(source?));
    }
    let path = Path::new(text);
    if !path.exists() {
        let looks_like_a_path = text.starts_with(['/', '.', '~']) || is_known_file(text);
        if looks_like_a_path {
            return Err(GatherError::NotFound { path: path.to_owned() });
        }
        return Ok(Subject::Image(ImageSource::reference(text)?));
    }
    if let Some(source) = ImageSource::at(path) {
        return Ok(Subject::Image(source));
    }
    if path.is_dir() {
        let has = |name: &str| path.join(name).symlink_metadata().is_ok();
        let is_root = has("etc") && has("usr");
        return Ok(if is_root {
            Subject::Root(path.to_owned())
        } else {
            Subject::Directory(path.to_owned())
        });
    }
    file(path)
}

fn is_known_file(text: &str) -> bool {
    let extensions = [
        ".txt", ".whl", ".so", ".toml", ".yml", ".yaml", ".lock", ".tar", ".tgz", ".gz", ".cubin", ".fatbin",
    ];
    let lower = text.to_ascii_lowercase();
    extensions.iter().any(|extension| lower.ends_with(extension)) || text.ends_with("Dockerfile")
}

fn existing(path: &Path) -> Result<&Path, GatherError> {
    if path.is_dir() { Ok(path) } else { Err(GatherError::NotFound { path: path.to_owned() }) }
}

pub(super) fn file(path: &Path) -> Result<Subject, GatherError> {
    let unreadable = |source| GatherError::Io { path: path.to_owned(), source };
    let mut start = Vec::new();
    File::open(path).map_err(unreadable)?.take(64 << 10).read_to_end(&mut start).map_err(unreadable)?;
    if start.starts_with(b"PK\x03\x04") {
        return Ok(Subject::Wheel(path.to_owned()));
    }
    if cudock_fatbin::is_candidate(&start) && !start.starts_with(b"!<arch>") {
        return Ok(Subject::Program(path.to_owned()));
    }
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let kind = FileKind::guess(&name, &String::from_utf8_lossy(&start));
    kind.map(|kind| Subject::Environment(path.to_owned(), kind))
        .ok_or_else(|| GatherError::NotASubject { path: path.to_owned() })
}
