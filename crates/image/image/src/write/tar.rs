//! Tar headers for new layers: ustar, with pax records for what does not fit.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::error::WriteError;
use crate::kind::FileKind;
use cudock_base::bug::Parts;

pub(super) const BLOCK: usize = 512;
/// The largest number in a field of eight octal digits with a terminator, and in one of twelve.
const MAX_ID: u64 = 0o777_7777;
const MAX_SIZE: u64 = 0o777_7777_7777;

/// A file, directory or link of a new layer.
#[derive(Debug, Clone)]
pub struct LayerEntry {
    /// The path relative to the root.
    pub path: String,
    pub kind: FileKind<FileContent, HardLink>,
    /// Permission bits.
    pub mode: u32,
    pub uid: u64,
    pub gid: u64,
    /// Seconds since 1970.
    pub mtime: u64,
    pub xattrs: BTreeMap<String, Vec<u8>>,
}

/// A further name of a file: the path of an earlier entry.
#[derive(Debug, Clone)]
pub struct HardLink(pub String);

/// Where the content of a file comes from.
#[derive(Debug, Clone)]
pub enum FileContent {
    Bytes(Vec<u8>),
    /// A file on disk, read when the entry is appended.
    File(PathBuf),
}

impl LayerEntry {
    /// An entry of root, without a time.
    pub fn new(path: impl Into<String>, kind: FileKind<FileContent, HardLink>, mode: u32) -> Self {
        Self { path: path.into(), kind, mode, uid: 0, gid: 0, mtime: 0, xattrs: BTreeMap::new() }
    }

    /// The header blocks of an entry whose content has this size.
    pub(super) fn header(&self, size: u64) -> Result<Vec<u8>, WriteError> {
        let wrong = |reason: &str| WriteError::Entry { path: self.path.clone(), reason: reason.to_owned() };
        check_path(&self.path).map_err(wrong)?;
        let (kind, link) = match &self.kind {
            FileKind::Directory => (b'5', ""),
            FileKind::File(_) => (b'0', ""),
            FileKind::Symlink(target) => (b'2', target.as_str()),
            FileKind::Other(HardLink(target)) => {
                check_path(target).map_err(wrong)?;
                (b'1', target.as_str())
            }
        };
        let name = if kind == b'5' { format!("{}/", self.path) } else { self.path.clone() };
        if link.contains('\0') {
            return Err(wrong("the link target contains a null byte"));
        }
        let mut records = Vec::new();
        let mut fits = |key: &str, value: &str, fits: bool| {
            if !fits {
                records.extend(record(key, value.as_bytes()));
            }
        };
        fits("path", &name, name.len() <= 100);
        fits("linkpath", link, link.len() <= 100);
        fits("size", &size.to_string(), size <= MAX_SIZE);
        fits("uid", &self.uid.to_string(), self.uid <= MAX_ID);
        fits("gid", &self.gid.to_string(), self.gid <= MAX_ID);
        fits("mtime", &self.mtime.to_string(), self.mtime <= MAX_SIZE);
        for (key, value) in &self.xattrs {
            if key.is_empty() || key.contains(['=', '\0']) {
                return Err(wrong("an extended attribute has an invalid name"));
            }
            records.extend(record(&format!("SCHILY.xattr.{key}"), value));
        }
        let mut blocks = Vec::with_capacity(BLOCK);
        if !records.is_empty() {
            let length = records.len() as u64;
            blocks.extend(
                Header { name: "PaxHeaders.0", mode: 0o644, size: length, kind: b'x', ..Header::default() }
                    .block(),
            );
            blocks.extend(&records);
            blocks.resize(blocks.len().next_multiple_of(BLOCK), 0);
        }
        let header = Header {
            name: &name,
            mode: self.mode & 0o7777,
            uid: self.uid,
            gid: self.gid,
            size,
            mtime: self.mtime,
            kind,
            link,
        };
        blocks.extend(header.block());
        Ok(blocks)
    }
}

/// A path inside the root: relative, and without empty components, `.` and `..`.
fn check_path(path: &str) -> Result<(), &'static str> {
    if path.is_empty() || path.len() > 4096 || path.contains('\0') {
        return Err("the path is empty, too long, or contains a null byte");
    }
    if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err("the path is not a plain path inside the image");
    }
    Ok(())
}

/// A pax record, whose length includes its own digits.
fn record(key: &str, value: &[u8]) -> Vec<u8> {
    let rest = key.len() + value.len() + 3;
    let mut length = rest + 1;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    [format!("{length} {key}=").as_bytes(), value, b"\n"].concat()
}

#[derive(Default)]
struct Header<'a> {
    name: &'a str,
    mode: u32,
    uid: u64,
    gid: u64,
    size: u64,
    mtime: u64,
    kind: u8,
    link: &'a str,
}

impl Header<'_> {
    /// The block. What does not fit has a pax record and is cut here.
    fn block(&self) -> [u8; BLOCK] {
        let mut block = [0; BLOCK];
        put(&mut block, 0, self.name.as_bytes(), 100);
        put(&mut block, 100, format!("{:07o}", self.mode).as_bytes(), 7);
        put(&mut block, 108, format!("{:07o}", self.uid.min(MAX_ID)).as_bytes(), 7);
        put(&mut block, 116, format!("{:07o}", self.gid.min(MAX_ID)).as_bytes(), 7);
        put(&mut block, 136, format!("{:011o}", self.mtime.min(MAX_SIZE)).as_bytes(), 11);
        put(&mut block, 156, &[self.kind], 1);
        put(&mut block, 157, self.link.as_bytes(), 100);
        put(&mut block, 257, b"ustar\x0000", 8);
        set_size(&mut block, if self.size > MAX_SIZE { 0 } else { self.size });
        block
    }
}

/// Writes the size of the content into a header block, and updates the checksum. False if it does not fit.
pub(super) fn set_size(block: &mut [u8; BLOCK], size: u64) -> bool {
    if size > MAX_SIZE {
        return false;
    }
    put(block, 124, format!("{size:011o}\0").as_bytes(), 12);
    put(block, 148, b"        ", 8);
    let sum: u64 = block.iter().map(|byte| u64::from(*byte)).sum();
    put(block, 148, format!("{sum:06o}\0").as_bytes(), 7);
    true
}

fn put(block: &mut [u8; BLOCK], at: usize, bytes: &[u8], length: usize) {
    for (to, from) in block.iter_mut().skip(at).take(length).zip(bytes) {
        *to = *from;
    }
}

/// The zeros after content of this size.
pub(super) fn padding(size: u64) -> &'static [u8] {
    const ZEROS: [u8; BLOCK] = [0; BLOCK];
    let used = usize::try_from(size % BLOCK as u64).unwrap_or(0);
    ZEROS.part(..(BLOCK - used) % BLOCK)
}
