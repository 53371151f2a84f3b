//! Where the contents of a package go, within limits.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use cudock_base::FileError;

use super::error::UnpackError;

/// Limits on the size of an unpacked package.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub entries: u32,
    pub bytes: u64,
}

impl Limits {
    const ENTRIES: u32 = 400_000;
    /// Any ratio is acceptable below this size.
    const SMALL: u64 = 1 << 30;
    /// GPU libraries compress to a third at best; zeroed ones further.
    const RATIO: u64 = 100;
    const MOST: u64 = 64 << 30;

    pub fn for_archive(bytes: usize) -> Self {
        let bytes = (bytes as u64).saturating_mul(Self::RATIO).clamp(Self::SMALL, Self::MOST);
        Self { entries: Self::ENTRIES, bytes }
    }
}

/// Takes the contents of a package, one after the other.
pub trait Contents {
    /// Begins a content and returns its number.
    fn begin(&mut self) -> Result<u32, UnpackError>;
    /// Adds bytes to the content that was begun last.
    fn write(&mut self, bytes: &[u8]) -> Result<(), UnpackError>;
    /// Ends it.
    fn end(&mut self) -> Result<(), UnpackError>;
}

/// Counts what passes, and stops at the limits.
#[derive(Debug)]
struct Counter {
    limits: Limits,
    entries: u32,
    bytes: u64,
}

impl Counter {
    fn entry(&mut self) -> Result<u32, UnpackError> {
        let index = self.entries;
        self.entries += 1;
        if index >= self.limits.entries {
            return Err(UnpackError::refused(format!("more than {} files", self.limits.entries)));
        }
        Ok(index)
    }

    fn more(&mut self, bytes: usize) -> Result<(), UnpackError> {
        self.bytes = self.bytes.saturating_add(bytes as u64);
        if self.bytes > self.limits.bytes {
            let limit = cudock_base::text::format::bytes(self.limits.bytes);
            return Err(UnpackError::refused(format!("unpacks to more than {limit}: a decompression bomb")));
        }
        Ok(())
    }
}

/// Keeps nothing: for checks of archives.
#[derive(Debug)]
pub struct Discard(Counter);

impl Discard {
    pub fn new(limits: Limits) -> Self {
        Self(Counter { limits, entries: 0, bytes: 0 })
    }
}

impl Contents for Discard {
    fn begin(&mut self) -> Result<u32, UnpackError> {
        self.0.entry()
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), UnpackError> {
        self.0.more(bytes.len())
    }

    fn end(&mut self) -> Result<(), UnpackError> {
        Ok(())
    }
}

/// Numbered files in a directory.
pub(super) struct DiskStore {
    directory: PathBuf,
    counter: Counter,
    open: Option<(PathBuf, File)>,
}

impl DiskStore {
    pub(super) fn new(directory: PathBuf, limits: Limits) -> Self {
        Self { directory, counter: Counter { limits, entries: 0, bytes: 0 }, open: None }
    }
}

impl Contents for DiskStore {
    fn begin(&mut self) -> Result<u32, UnpackError> {
        let index = self.counter.entry()?;
        let path = self.directory.join(index.to_string());
        let file = File::create_new(&path).map_err(FileError::at("write", &path))?;
        self.open = Some((path, file));
        Ok(index)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), UnpackError> {
        self.counter.more(bytes.len())?;
        if let Some((path, file)) = &mut self.open {
            file.write_all(bytes).map_err(FileError::at("write", path))?;
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), UnpackError> {
        self.open = None;
        Ok(())
    }
}
