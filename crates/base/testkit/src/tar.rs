//! A tar writer that checks nothing, so that every name, header and document can be wrong.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The unit of the format: headers have this size, and contents are padded to it.
pub const BLOCK: usize = 512;

/// A header block with a valid checksum and the mode 0755.
pub fn header(name: &[u8], kind: u8, size: u64, link: &[u8]) -> [u8; BLOCK] {
    assert!(name.len() <= 100 && link.len() <= 100, "longer names need extended headers");
    let mut block = [0; BLOCK];
    block[..name.len()].copy_from_slice(name);
    block[100..107].copy_from_slice(b"0000755");
    block[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
    block[156] = kind;
    block[157..157 + link.len()].copy_from_slice(link);
    block[257..265].copy_from_slice(b"ustar\x0000");
    seal(&mut block);
    block
}

/// Updates the checksum of a header.
pub fn seal(block: &mut [u8; BLOCK]) {
    block[148..156].fill(b' ');
    let sum: u64 = block.iter().map(|byte| u64::from(*byte)).sum();
    block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
}

/// Writes a seven-digit octal number into a header and updates the checksum.
pub fn set_number(block: &mut [u8; BLOCK], at: usize, number: u64) {
    block[at..at + 7].copy_from_slice(format!("{number:07o}").as_bytes());
    seal(block);
}

/// One pax record.
pub fn record(key: &str, value: &[u8]) -> Vec<u8> {
    let rest = key.len() + value.len() + 3;
    let mut length = rest + 1;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    [format!("{length} {key}=").as_bytes(), value, b"\n"].concat()
}

#[must_use]
#[derive(Debug, Clone, Default)]
pub struct Tar(
    /// The bytes so far, without an end marker.
    pub Vec<u8>,
);

impl Tar {
    /// Appends bytes, padded to whole blocks.
    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(BLOCK), 0);
        self
    }

    pub fn entry(self, name: impl AsRef<[u8]>, kind: u8, link: &str, content: &[u8]) -> Self {
        self.raw(&header(name.as_ref(), kind, content.len() as u64, link.as_bytes())).raw(content)
    }

    pub fn entry_with_mode(self, name: &str, kind: u8, mode: u32, content: &[u8]) -> Self {
        let mut block = header(name.as_bytes(), kind, content.len() as u64, b"");
        set_number(&mut block, 100, mode.into());
        self.raw(&block).raw(content)
    }

    pub fn file(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        self.entry_with_mode(name, b'0', 0o644, content.as_ref())
    }

    pub fn program(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        self.entry(name, b'0', "", content.as_ref())
    }

    pub fn directory(self, name: &str) -> Self {
        self.entry(format!("{name}/"), b'5', "", b"")
    }

    pub fn symlink(self, name: &str, target: &str) -> Self {
        self.entry(name, b'2', target, b"")
    }

    pub fn hard_link(self, name: &str, target: &str) -> Self {
        self.entry(name, b'1', target, b"")
    }

    /// Appends a device node: `b'3'` for a character device, `b'4'` for a block device.
    pub fn device(self, name: &str, kind: u8, major: u32, minor: u32) -> Self {
        let mut block = header(name.as_bytes(), kind, 0, b"");
        set_number(&mut block, 100, 0o666);
        set_number(&mut block, 329, major.into());
        set_number(&mut block, 337, minor.into());
        self.raw(&block)
    }

    pub fn whiteout(self, path: &str) -> Self {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        self.file(format!("{directory}/.wh.{name}").trim_start_matches('/'), "")
    }

    pub fn opaque(self, directory: &str) -> Self {
        self.file(format!("{directory}/.wh..wh..opq").trim_start_matches('/'), "")
    }

    /// Appends a pax header for the next entry.
    pub fn pax(self, records: &[(&str, &[u8])]) -> Self {
        let body: Vec<u8> = records.iter().flat_map(|(key, value)| record(key, value)).collect();
        self.entry("PaxHeaders/0", b'x', "", &body)
    }

    /// Appends everything in a directory of this machine, below a prefix.
    pub fn tree(mut self, directory: &Path, prefix: &str) -> Self {
        let mut entries: Vec<_> = fs::read_dir(directory).unwrap().flatten().collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
            let metadata = entry.path().symlink_metadata().unwrap();
            let mode = metadata.permissions().mode() & 0o7777;
            self = if metadata.is_symlink() {
                self.symlink(&path, fs::read_link(entry.path()).unwrap().to_str().unwrap())
            } else if metadata.is_dir() {
                let path = format!("{path}/");
                self.entry_with_mode(&path, b'5', mode, b"").tree(&entry.path(), &path)
            } else {
                self.entry_with_mode(&path, b'0', mode, &fs::read(entry.path()).unwrap())
            };
        }
        self
    }

    /// The bytes, with the end marker.
    pub fn end(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 2 * BLOCK, 0);
        self.0
    }
}
