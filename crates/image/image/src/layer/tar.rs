//! A tar reader for ustar, GNU long names and pax.
//!
//! Existing crates do not fit: uncompressed layers in a layout are walked in place, from header to header, without copying
//! file contents, and long names are bounded before they are read. Where readers differ, this one follows Go's, which
//! every container engine uses, so that it sees what an engine would unpack.

use cudock_base::bug::PartsMut;
use std::io;

use super::details::{EntryDetails, PaxAttributes};
use super::header::{BLOCK, HeaderBlock, TarError};
use super::input::{Content, LayerInput};
use crate::kind::FileKind;

/// The largest extended header or long name.
const MAX_EXTENDED: u64 = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryHeader {
    /// The path, without a leading slash.
    pub path: String,
    /// A regular file has a size.
    pub kind: FileKind<u64, TarOnly>,
    /// Permission bits.
    pub mode: u32,
}

impl EntryHeader {
    /// The size of a regular file; zero of everything else.
    pub const fn size(&self) -> u64 {
        match self.kind {
            FileKind::File(size) => size,
            _ => 0,
        }
    }
}

/// The types of entries that a tar file has besides those of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TarOnly {
    /// The path of an earlier entry, as written.
    HardLink(String),
    /// A device, a FIFO, or a sparse file, whose contents are not inspected.
    Special,
}

/// Reads the entries of a tar file one after another.
pub(crate) struct TarReader<'a> {
    input: LayerInput<'a>,
    /// Unread bytes of the current entry.
    left: u64,
    /// Padding between the current entry and the next header.
    padding: u64,
    /// Headers so far, and entries that they describe.
    count: u64,
    entries: u64,
    /// The offset of the current entry's first header in an uncompressed layer, and whether its size is not in the last.
    start: usize,
    extended_size: bool,
    /// Further metadata of the current entry, if requested.
    details: Option<Box<EntryDetails>>,
}

/// Extended headers for the next entry.
#[derive(Default)]
struct ExtendedHeader {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<u64>,
    /// The name of a sparse file, which takes precedence over its path.
    sparse_name: Option<Vec<u8>>,
    sparse: bool,
    pax: PaxAttributes,
}

impl<'a> TarReader<'a> {
    pub(crate) fn new(input: LayerInput<'a>) -> Self {
        Self {
            input,
            left: 0,
            padding: 0,
            count: 0,
            entries: 0,
            start: 0,
            extended_size: false,
            details: None,
        }
    }

    /// A reader that keeps the details of each entry.
    pub(crate) fn with_details(input: LayerInput<'a>) -> Self {
        Self { details: Some(Box::default()), ..Self::new(input) }
    }

    pub(crate) fn take_details(&mut self) -> EntryDetails {
        self.details.as_deref_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The number of unread bytes of the current entry.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// The next bytes of the current entry, as many as are available; empty at its end.
    pub(crate) fn chunk(&mut self) -> io::Result<&[u8]> {
        if self.left == 0 {
            return Ok(&[]);
        }
        let bytes = self.input.next_chunk(self.left)?;
        self.left -= bytes.len() as u64;
        Ok(bytes)
    }

    /// Reads into a buffer, which is filled unless the entry ends.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.input.fill(buffer.part_mut(..wanted))?;
        self.left -= count as u64;
        if count < wanted { Err(super::input::unexpected_eof()) } else { Ok(count) }
    }

    /// Skips everything after the last entry.
    pub(crate) fn drain(&mut self) -> io::Result<()> {
        self.input.drain()
    }

    fn broken(&self, message: impl Into<String>) -> TarError {
        TarError::Broken(self.count, message.into())
    }

    /// The offset of the current entry's contents in an uncompressed layer.
    pub(crate) fn position(&self) -> usize {
        match &self.input {
            LayerInput::Slice { at, .. } => *at,
            LayerInput::Stream { .. } => 0,
        }
    }

    /// The offset of the current entry, with all its headers, in an uncompressed layer.
    pub(crate) fn entry_start(&self) -> usize {
        self.start
    }

    /// Whether an extended header has the size of the current entry.
    pub(crate) fn has_extended_size(&self) -> bool {
        self.extended_size
    }

    pub(crate) fn content(&mut self) -> Content<'_, 'a> {
        Content::in_layer(&mut self.input, &mut self.left)
    }

    /// The next entry, unless there have been `limit` of them.
    pub(crate) fn next_below(&mut self, limit: u64) -> Result<Option<EntryHeader>, TarError> {
        let header = self.next()?;
        self.entries += u64::from(header.is_some());
        if self.entries > limit {
            return Err(TarError::Hostile(format!("more than {limit} entries")));
        }
        Ok(header)
    }

    /// The next entry; none at the end.
    pub(crate) fn next(&mut self) -> Result<Option<EntryHeader>, TarError> {
        let mut extended = ExtendedHeader::default();
        let mut start = None;
        loop {
            self.input.skip(self.left)?;
            if !self.input.skip_padding(self.padding)? {
                return Ok(None);
            }
            (self.left, self.padding) = (0, 0);
            self.start = *start.get_or_insert(self.position());
            let mut block = [0; BLOCK];
            if !self.block(&mut block)? {
                return Ok(None);
            }
            self.count += 1;
            let raw = HeaderBlock(&block);
            if !raw.has_valid_checksum() {
                return Err(self.broken("checksum mismatch"));
            }
            let size = raw.number(124, 12).ok_or_else(|| self.broken("the size is not a number"))?;
            match raw.kind() {
                b'L' => extended.path = Some(self.long_name(size)?),
                b'K' => extended.link = Some(self.long_name(size)?),
                b'x' => self.pax(size, &mut extended)?,
                // Global records: no engine applies them.
                b'g' => self.expect(size),
                _ => return self.entry(&raw, size, extended).map(Some),
            }
        }
    }

    fn entry(
        &mut self,
        raw: &HeaderBlock<'_>,
        size: u64,
        extended: ExtendedHeader,
    ) -> Result<EntryHeader, TarError> {
        let written = extended.sparse_name.or(extended.path).unwrap_or_else(|| raw.path());
        let link = extended.link.unwrap_or_else(|| raw.text(157, 100).to_vec());
        self.extended_size = extended.size.is_some();
        let size = extended.size.unwrap_or(size);
        let target = || String::from_utf8_lossy(&link).into_owned();
        let kind = match raw.kind() {
            b'1' => FileKind::Other(TarOnly::HardLink(target())),
            b'2' => FileKind::Symlink(target()),
            b'5' => FileKind::Directory,
            b'0' | 0 | b'7' if extended.sparse => FileKind::Other(TarOnly::Special),
            // Old headers mark directories only by a trailing slash.
            0 if written.ends_with(b"/") => FileKind::Directory,
            b'0' | 0 | b'7' => FileKind::File(size),
            _ => FileKind::Other(TarOnly::Special),
        };
        let has_contents = match kind {
            FileKind::File(_) => true,
            FileKind::Other(TarOnly::Special) => !matches!(raw.kind(), b'3' | b'4' | b'6'),
            _ => false,
        };
        if has_contents {
            self.expect(size);
        }
        let map = if raw.kind() == b'S' { self.sparse_maps(raw)? } else { Vec::new() };
        let (written, bytes) = text(written);
        if self.details.is_some() {
            let stored = if has_contents { size } else { 0 };
            let mut details = extended.pax.details(raw, link, stored, map)?;
            details.path = bytes;
            self.details = Some(Box::new(details));
        }
        let path = clean(&written)?;
        let mode = u32::try_from(raw.number(100, 8).unwrap_or(0) & 0o7777).unwrap_or(0);
        Ok(EntryHeader { path, kind, mode })
    }

    /// Reads a GNU sparse map, which continues in extra blocks between header and contents.
    fn sparse_maps(&mut self, raw: &HeaderBlock<'_>) -> Result<Vec<u64>, TarError> {
        let mut more = raw.0.get(482).is_some_and(|flag| *flag != 0);
        let mut map = Vec::new();
        raw.map(386, 4, &mut map);
        for _ in 0..4096 {
            if !more {
                return Ok(map);
            }
            let mut block = [0; BLOCK];
            if self.input.fill(&mut block)? < BLOCK {
                return Err(self.broken("unexpected end of layer in a sparse map"));
            }
            if self.details.is_some() {
                HeaderBlock(&block).map(0, 21, &mut map);
            }
            more = block.get(504).is_some_and(|flag| *flag != 0);
        }
        Err(TarError::Hostile("too many extents in a sparse file".to_owned()))
    }

    /// Expects contents of the given size, and their padding.
    fn expect(&mut self, size: u64) {
        self.left = size;
        self.padding = (BLOCK as u64 - size % BLOCK as u64) % BLOCK as u64;
    }

    /// Reads a header block; false at the end, which is the end of input or two zero blocks.
    fn block(&mut self, block: &mut [u8; BLOCK]) -> Result<bool, TarError> {
        for zeros in 0..2 {
            match self.input.fill(block)? {
                0 => return Ok(false),
                BLOCK => {}
                _ => return Err(self.broken("unexpected end of layer")),
            }
            let is_zero = block.iter().all(|byte| *byte == 0);
            if !is_zero && zeros == 0 {
                return Ok(true);
            }
            if !is_zero {
                return Err(self.broken("preceded by a single zero block"));
            }
        }
        Ok(false)
    }

    /// The contents of an entry that describes the next one.
    fn description(&mut self, size: u64) -> Result<Vec<u8>, TarError> {
        if size > MAX_EXTENDED {
            return Err(TarError::Hostile(format!("an extended header of {size} bytes")));
        }
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
        if self.input.fill(&mut bytes)? < bytes.len() {
            return Err(self.broken("unexpected end of layer"));
        }
        self.expect(size);
        self.left = 0;
        Ok(bytes)
    }

    fn long_name(&mut self, size: u64) -> Result<Vec<u8>, TarError> {
        let mut bytes = self.description(size)?;
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        bytes.truncate(end);
        Ok(bytes)
    }

    /// Parses pax records, such as `25 path=some/long/name\n`.
    fn pax(&mut self, size: u64, extended: &mut ExtendedHeader) -> Result<(), TarError> {
        let bytes = self.description(size)?;
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (key, value, after) = record(rest).ok_or_else(|| self.broken("invalid pax record"))?;
            rest = after;
            // An empty value keeps the value of the header.
            if value.is_empty() {
                continue;
            }
            match key {
                b"path" => extended.path = Some(value.to_vec()),
                b"GNU.sparse.name" => extended.sparse_name = Some(value.to_vec()),
                b"linkpath" => extended.link = Some(value.to_vec()),
                b"size" => {
                    let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                    extended.size = Some(number.ok_or_else(|| self.broken("the size is not a number"))?);
                }
                _ => {
                    extended.sparse |= key.starts_with(b"GNU.sparse.");
                    if self.details.is_some() {
                        extended.pax.record(key, value).map_err(|message| self.broken(message))?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Splits off the first pax record: key, value and the rest.
fn record(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = bytes.iter().take(20).position(|byte| *byte == b' ')?;
    let length: usize = std::str::from_utf8(bytes.get(..space)?).ok()?.parse().ok()?;
    let body = bytes.get(space + 1..length.checked_sub(1)?)?;
    let newline = bytes.get(length - 1)?;
    let equals = body.iter().position(|byte| *byte == b'=')?;
    (*newline == b'\n').then_some((body.get(..equals)?, body.get(equals + 1..)?, bytes.get(length..)?))
}

/// Decodes bytes as UTF-8; if they are not, also returns the original bytes.
fn text(bytes: Vec<u8>) -> (String, Option<Vec<u8>>) {
    match String::from_utf8(bytes) {
        Ok(text) => (text, None),
        Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), Some(error.into_bytes())),
    }
}

/// Normalizes a path relative to the root: no leading slash and no empty components. A path with `..` is rejected.
pub(crate) fn clean(path: &str) -> Result<String, TarError> {
    if path.contains("..") && path.split('/').any(|part| part == "..") {
        return Err(TarError::Hostile(format!("`{}` points outside the image", shortened(path))));
    }
    let plain = !path.is_empty() && !path.starts_with(['/', '.']) && !path.ends_with('/');
    if plain && !path.contains("//") && !path.contains("/./") && !path.ends_with("/.") {
        return Ok(path.to_owned());
    }
    let mut cleaned = String::with_capacity(path.len());
    for part in path.split('/').filter(|part| !matches!(*part, "" | ".")) {
        if !cleaned.is_empty() {
            cleaned.push('/');
        }
        cleaned.push_str(part);
    }
    Ok(cleaned)
}

fn shortened(path: &str) -> String {
    path.chars().take(80).collect()
}
