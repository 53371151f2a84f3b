//! Writes slimmed files to a temporary path, with holes, and renames them.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use cudock_facts::version::Capability;
use cudock_mmap::map;

use super::SlimPlan;
use super::compact::{self, CompactError};
use super::copy::{apply, copy};

/// An error while slimming a file.
#[derive(Debug, thiserror::Error)]
pub enum SlimError {
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("GPUs of compute capability {target} cannot load any of the GPU code")]
    NoCode { target: Capability },
    #[error("{} is not empty", path.display())]
    OutputNotEmpty { path: PathBuf },
    #[error("{} is inside the input directory", path.display())]
    OutputInside { path: PathBuf },
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Compact(#[from] CompactError),
    /// The result does not contain what was to be kept.
    #[error("verification failed: the file's own tables may be inside its GPU code")]
    VerificationFailed,
}

/// Writes a slimmed file to `path`, which is replaced only after everything is written and verified. Returns the length of
/// the file, and its length without holes.
pub(super) fn write_slim(
    bytes: &[u8],
    plan: &SlimPlan,
    compacted: bool,
    path: &Path,
    mode: fs::Permissions,
) -> Result<(u64, u64), SlimError> {
    let invalid = |source| SlimError::Write { path: path.to_owned(), source };
    let layout = if compacted { Some(compact::layout(bytes, &plan.patches)?) } else { None };
    let temp = temp_path(path);
    let result = (|| {
        let mut file = File::create(&temp).map_err(invalid)?;
        let written = match &layout {
            Some(layout) => layout.write(bytes, &plan.patches, &mut file),
            None => copy(bytes, &plan.patches, 0..bytes.len() as u64, 0, &mut file),
        };
        let written = written.map_err(invalid)?;
        let length = layout.as_ref().map_or(bytes.len() as u64, compact::Layout::length);
        file.set_len(length).map_err(invalid)?;
        file.set_permissions(mode).map_err(invalid)?;
        file.sync_all().map_err(invalid)?;
        let result = map(&temp).map_err(|error| invalid(error.source))?;
        if !plan.is_verified_by(&result) {
            return Err(SlimError::VerificationFailed);
        }
        fs::rename(&temp, path).map_err(invalid)?;
        Ok((length, written))
    })();
    if result.is_err() {
        fs::remove_file(&temp).ok();
    }
    result
}

/// The slimmed content in memory, for members of archives.
pub fn in_memory(bytes: &[u8], plan: &SlimPlan, compacted: bool) -> Result<Vec<u8>, SlimError> {
    let content = if compacted {
        let layout = compact::layout(bytes, &plan.patches)?;
        let mut out = io::Cursor::new(vec![0; usize::try_from(layout.length()).unwrap_or(0)]);
        // Writing to a large enough buffer does not fail.
        layout.write(bytes, &plan.patches, &mut out).ok();
        out.into_inner()
    } else {
        let mut content = bytes.to_vec();
        apply(&plan.patches, 0, &mut content);
        content
    };
    if plan.is_verified_by(&content) { Ok(content) } else { Err(SlimError::VerificationFailed) }
}

/// A temporary path next to the target, on the same file system.
pub(super) fn temp_path(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".slim-{}", std::process::id()));
    path.with_file_name(name)
}

/// Copies a file with its mode; the output is complete or does not exist.
pub(super) fn copy_file(input: &Path, output: &Path) -> Result<(), SlimError> {
    let temp = temp_path(output);
    let copied = fs::copy(input, &temp).and_then(|_| fs::rename(&temp, output));
    copied.map_err(|source| {
        fs::remove_file(&temp).ok();
        SlimError::Write { path: output.to_owned(), source }
    })
}
