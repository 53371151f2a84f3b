//! Unpacks named files from a wheel, and nothing else.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use cudock_base::{FileError, files};
use cudock_facts::tables::{RuntimeWheel, WheelMember};
use zip::ZipArchive;
use zip::result::ZipError;

use crate::error::PypiError;

const MAX_MEMBERS: usize = 100_000;
const CHUNK: usize = 256 * 1024;

/// Unpacks the members that the table names into an existing `directory`, under their file names. Names in the archive
/// do not affect where bytes go, and no more bytes are written than the table allows.
pub(crate) fn unpack(archive: &Path, wheel: &RuntimeWheel, directory: &Path) -> Result<(), PypiError> {
    let wrong = |reason: String| PypiError::Archive { file: wheel.file.clone(), reason };
    let file = File::open(archive).map_err(FileError::at("read", archive))?;
    let mut zip = ZipArchive::new(io::BufReader::new(file))
        .map_err(|error| wrong(format!("is not a zip file: {error}")))?;
    if zip.len() > MAX_MEMBERS {
        return Err(wrong(format!("has {} members", zip.len())));
    }
    for member in &wheel.members {
        let mut content = match zip.by_name(&member.path) {
            Ok(content) => content,
            Err(ZipError::FileNotFound) => return Err(wrong(format!("has no {}", member.path))),
            Err(error) => return Err(wrong(format!("{}: {error}", member.path))),
        };
        if !content.is_file() || content.is_symlink() {
            return Err(wrong(format!("{} is not a regular file", member.path)));
        }
        if content.size() != member.size {
            let reason = format!("{} has {} bytes, not {}", member.path, content.size(), member.size);
            return Err(wrong(reason));
        }
        write(&mut content, member, directory).map_err(|error| match error {
            UnpackError::Archive(reason) => wrong(format!("{}: {reason}", member.path)),
            UnpackError::Disk(source) => {
                FileError::at("write", &directory.join(member.name()))(source).into()
            }
        })?;
    }
    Ok(())
}

enum UnpackError {
    Archive(String),
    Disk(io::Error),
}

/// Writes one member. Its header is not trusted: it must have the size in the table.
fn write(content: &mut impl Read, member: &WheelMember, directory: &Path) -> Result<(), UnpackError> {
    let mut file = File::create_new(directory.join(member.name())).map_err(UnpackError::Disk)?;
    let mut buffer = vec![0; CHUNK];
    let mut written = 0_u64;
    loop {
        // An error is a corrupt stream, or a checksum mismatch.
        let bytes = files::read_some(content, &mut buffer)
            .map_err(|error| UnpackError::Archive(error.to_string()))?;
        if bytes.is_empty() {
            break;
        }
        written = written.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        if written > member.size {
            return Err(UnpackError::Archive(format!("unpacks to more than {} bytes", member.size)));
        }
        file.write_all(bytes).map_err(UnpackError::Disk)?;
    }
    if written != member.size {
        return Err(UnpackError::Archive(format!("unpacks to {written} bytes, not {}", member.size)));
    }
    file.sync_all().map_err(UnpackError::Disk)
}
