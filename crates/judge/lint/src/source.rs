//! Reads files that are linted. They are untrusted: at most [`LARGEST`] bytes of UTF-8.

use cudock_base::bug::Parts;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use cudock_base::UsageError;

/// The size limit of a Dockerfile, in bytes.
pub const LARGEST: u64 = 4 << 20;

/// Reads a Dockerfile that a user named.
pub(crate) fn read_file(path: &Path) -> Result<String, UsageError> {
    let name = path.display().to_string();
    let wrong = |why: &dyn std::fmt::Display| UsageError::new(format!("cannot read {name}: {why}"));
    let file = File::open(path).map_err(|error| wrong(&error))?;
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Err(wrong(&"not a regular file"));
    }
    read_from(&name, file)
}

/// Reads a Dockerfile from a stream; `name` is for errors.
pub(crate) fn read_from(name: &str, from: impl Read) -> Result<String, UsageError> {
    let wrong = |why: &dyn std::fmt::Display| UsageError::new(format!("cannot read {name}: {why}"));
    let mut bytes = Vec::new();
    from.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| wrong(&error))?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > LARGEST) {
        return Err(wrong(&format_args!("larger than {} MiB", LARGEST >> 20)));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let before = String::from_utf8_lossy(error.as_bytes().part(..at));
        let line = before.matches('\n').count() + 1;
        wrong(&format_args!("not UTF-8 at byte {at} (line {line})")).hint("Dockerfiles are UTF-8 text")
    })
}
