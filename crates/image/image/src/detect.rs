//! Detects images in files by how these begin.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Whether a directory is an OCI layout.
pub(crate) fn is_layout(path: &Path) -> bool {
    path.is_dir() && (path.join("oci-layout").is_file() || path.join("index.json").is_file())
}

/// Whether a file is a tar file, or one that is compressed as a whole.
pub(crate) fn is_archive(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(512).read_to_end(&mut start));
    read.is_ok() && (is_compressed(&start) || start.get(257..262) == Some(b"ustar"))
}

/// Whether a file starts like one that is compressed as a whole.
pub(crate) fn is_compressed(start: &[u8]) -> bool {
    matches!(start, [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..])
}
