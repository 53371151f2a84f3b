//! Files that users name on the command line.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::failure::Failure;

/// Texts of this size are read in full; no file that a verb takes is larger.
const MAX_TEXT: u64 = 16 << 20;

/// Reads a text file. Pipes are read, too (`-f <(command)`), but devices are not, and nothing is read without bound.
pub(crate) fn text(file: &Path) -> Result<String, Failure> {
    use std::os::unix::fs::FileTypeExt;
    let wrong =
        |why: &dyn std::fmt::Display| Failure::input(format!("cannot read {}: {why}", file.display()));
    let kind = file.metadata().map_err(|error| wrong(&error))?.file_type();
    if kind.is_char_device() || kind.is_block_device() || kind.is_dir() {
        return Err(wrong(&"not a regular file"));
    }
    let mut text = String::new();
    let opened = File::open(file).map_err(|error| wrong(&error))?;
    opened.take(MAX_TEXT + 1).read_to_string(&mut text).map_err(|error| wrong(&error))?;
    if text.len() as u64 > MAX_TEXT {
        return Err(wrong(&format!("larger than {} MiB", MAX_TEXT >> 20)));
    }
    Ok(text)
}
