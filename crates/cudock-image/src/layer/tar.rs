//! Tar, as container tools write it: ustar, GNU's long names, pax.
//!
//! No library serves here: layers that lie uncompressed in a layout are walked in place, header to header, without
//! copying the files between them, and long names are bounded before they are read. Where readers differ, this follows
//! Go's, which every container engine uses: what an engine would not unpack is not looked at either.

use std::io;

use super::details::{Details, Said};
use super::input::{Content, Input};

const BLOCK: usize = 512;
/// What extended headers and long names may hold.
const MAX_EXTENDED: u64 = 1 << 20;

/// Why a layer cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TarError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("broken tar header at entry {0}: {1}")]
    Broken(u64, String),
    #[error("refused: {0}")]
    Hostile(String),
}

/// What an entry says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Its path, without a leading slash.
    pub path: String,
    /// What it is.
    pub kind: EntryKind,
    /// How large its contents are.
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// Where a link leads.
    pub link: String,
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A plain file.
    File,
    /// Another name of a file.
    HardLink,
    /// A symbolic link.
    Symlink,
    /// A directory.
    Directory,
    /// A device, a pipe, or a file with holes, which is not looked into.
    Special,
}

/// Entries, one after the other.
pub(crate) struct TarReader<'a> {
    input: Input<'a>,
    /// Bytes of the current entry that nobody read.
    left: u64,
    /// Bytes after it, up to the next header.
    padding: u64,
    count: u64,
    /// What else the current entry says, where somebody wants it.
    details: Option<Box<Details>>,
}

/// What extended headers said of the entry that follows.
#[derive(Default)]
struct Extended {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<u64>,
    /// The name of a file with holes, which stands above its path.
    sparse_name: Option<Vec<u8>>,
    sparse: bool,
    said: Said,
}

impl<'a> TarReader<'a> {
    pub(crate) fn new(input: Input<'a>) -> Self {
        Self { input, left: 0, padding: 0, count: 0, details: None }
    }

    /// A reader that keeps the details of each entry.
    pub(crate) fn with_details(input: Input<'a>) -> Self {
        Self { details: Some(Box::default()), ..Self::new(input) }
    }

    /// What else the current entry says of itself.
    pub(crate) fn take_details(&mut self) -> Details {
        self.details.as_deref_mut().map(std::mem::take).unwrap_or_default()
    }

    /// How many bytes of the current entry are still to come.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// The next contents of the current entry, as many as are at hand; none at its end.
    pub(crate) fn chunk(&mut self) -> io::Result<&[u8]> {
        if self.left == 0 {
            return Ok(&[]);
        }
        let bytes = self.input.some(self.left)?;
        self.left -= bytes.len() as u64;
        Ok(bytes)
    }

    /// The same into a buffer, which is filled unless the entry ends.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.input.fill(buffer.get_mut(..wanted).unwrap_or_default())?;
        self.left -= count as u64;
        if count < wanted { Err(super::input::short()) } else { Ok(count) }
    }

    /// Reads on to the end of the layer, behind its last entry.
    pub(crate) fn drain(&mut self) -> io::Result<()> {
        self.input.drain()
    }

    fn broken(&self, message: impl Into<String>) -> TarError {
        TarError::Broken(self.count, message.into())
    }

    /// Where the contents of the current entry begin, in bytes that are all there.
    pub(crate) fn position(&self) -> usize {
        match &self.input {
            Input::Whole { at, .. } => *at,
            Input::Stream { .. } => 0,
        }
    }

    /// The contents of the current entry.
    pub(crate) fn content(&mut self) -> Content<'_, 'a> {
        Content::in_layer(&mut self.input, &mut self.left)
    }

    /// The next entry, or none at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Header>, TarError> {
        let mut extended = Extended::default();
        loop {
            self.input.skip(self.left)?;
            if !self.input.skip_padding(self.padding)? {
                return Ok(None);
            }
            (self.left, self.padding) = (0, 0);
            let mut block = [0; BLOCK];
            if !self.block(&mut block)? {
                return Ok(None);
            }
            self.count += 1;
            let raw = Raw(&block);
            if !raw.checksum_fits() {
                return Err(self.broken("its checksum does not fit"));
            }
            let size = raw.number(124, 12).ok_or_else(|| self.broken("its size is not a number"))?;
            match raw.kind() {
                b'L' => extended.path = Some(self.long_name(size)?),
                b'K' => extended.link = Some(self.long_name(size)?),
                b'x' => self.pax(size, &mut extended)?,
                // Records for all that follow: no engine gives them effect.
                b'g' => self.expect(size),
                _ => return self.entry(&raw, size, extended).map(Some),
            }
        }
    }

    fn entry(&mut self, raw: &Raw<'_>, size: u64, extended: Extended) -> Result<Header, TarError> {
        let written = extended.sparse_name.or(extended.path).unwrap_or_else(|| raw.path());
        let link = extended.link.unwrap_or_else(|| raw.text(157, 100).to_vec());
        let size = extended.size.unwrap_or(size);
        let kind = match raw.kind() {
            b'1' => EntryKind::HardLink,
            b'2' => EntryKind::Symlink,
            b'5' => EntryKind::Directory,
            b'0' | 0 | b'7' if extended.sparse => EntryKind::Special,
            // Before there was a type for them, directories were files whose names end so.
            0 if written.ends_with(b"/") => EntryKind::Directory,
            b'0' | 0 | b'7' => EntryKind::File,
            _ => EntryKind::Special,
        };
        let has_contents = matches!(kind, EntryKind::File)
            || (kind == EntryKind::Special && !matches!(raw.kind(), b'3' | b'4' | b'6'));
        if has_contents {
            self.expect(size);
        }
        let map = if raw.kind() == b'S' { self.sparse_maps(raw)? } else { Vec::new() };
        let (written, bytes) = text(written);
        if self.details.is_some() {
            let stored = if has_contents { size } else { 0 };
            let mut details = extended.said.details(raw, link.clone(), stored, map)?;
            details.path = bytes;
            self.details = Some(Box::new(details));
        }
        let path = clean(&written)?;
        let link = text(link).0;
        let mode = u32::try_from(raw.number(100, 8).unwrap_or(0) & 0o7777).unwrap_or(0);
        let size = if kind == EntryKind::File { size } else { 0 };
        Ok(Header { path, kind, size, mode, link })
    }

    /// GNU's maps of holes go on in blocks of their own, between the header and the contents.
    fn sparse_maps(&mut self, raw: &Raw<'_>) -> Result<Vec<u64>, TarError> {
        let mut more = raw.0.get(482).is_some_and(|flag| *flag != 0);
        let mut map = Vec::new();
        raw.map(386, 4, &mut map);
        for _ in 0..4096 {
            if !more {
                return Ok(map);
            }
            let mut block = [0; BLOCK];
            if self.input.fill(&mut block)? < BLOCK {
                return Err(self.broken("it ends in a map of holes"));
            }
            if self.details.is_some() {
                Raw(&block).map(0, 21, &mut map);
            }
            more = block.get(504).is_some_and(|flag| *flag != 0);
        }
        Err(TarError::Hostile("a file with more holes than can be".to_owned()))
    }

    /// Notes that contents follow.
    fn expect(&mut self, size: u64) {
        self.left = size;
        self.padding = (BLOCK as u64 - size % BLOCK as u64) % BLOCK as u64;
    }

    /// Reads a header block; false at the end, which is nothing at all or two blocks of zeros.
    fn block(&mut self, block: &mut [u8; BLOCK]) -> Result<bool, TarError> {
        for zeros in 0..2 {
            match self.input.fill(block)? {
                0 => return Ok(false),
                BLOCK => {}
                _ => return Err(self.broken("the layer ends inside it")),
            }
            let is_zero = block.iter().all(|byte| *byte == 0);
            if !is_zero && zeros == 0 {
                return Ok(true);
            }
            if !is_zero {
                return Err(self.broken("one block of zeros before it, where two mean the end"));
            }
        }
        Ok(false)
    }

    /// The contents of an entry that only describes the next.
    fn description(&mut self, size: u64) -> Result<Vec<u8>, TarError> {
        if size > MAX_EXTENDED {
            return Err(TarError::Hostile(format!("{size} bytes to describe one entry")));
        }
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
        if self.input.fill(&mut bytes)? < bytes.len() {
            return Err(self.broken("the layer ends inside it"));
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

    /// pax records: `25 path=some/long/name\n`.
    fn pax(&mut self, size: u64, extended: &mut Extended) -> Result<(), TarError> {
        let bytes = self.description(size)?;
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (key, value, after) = record(rest).ok_or_else(|| self.broken("a pax record is broken"))?;
            rest = after;
            // An empty value leaves what the header says.
            if value.is_empty() {
                continue;
            }
            match key {
                b"path" => extended.path = Some(value.to_vec()),
                b"GNU.sparse.name" => extended.sparse_name = Some(value.to_vec()),
                b"linkpath" => extended.link = Some(value.to_vec()),
                b"size" => {
                    let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                    extended.size = Some(number.ok_or_else(|| self.broken("its size is not a number"))?);
                }
                _ => {
                    extended.sparse |= key.starts_with(b"GNU.sparse.");
                    if self.details.is_some() {
                        extended.said.record(key, value).map_err(|message| self.broken(message))?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Takes the first pax record off.
fn record(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = bytes.iter().take(20).position(|byte| *byte == b' ')?;
    let length: usize = std::str::from_utf8(bytes.get(..space)?).ok()?.parse().ok()?;
    let body = bytes.get(space + 1..length.checked_sub(1)?)?;
    let newline = bytes.get(length - 1)?;
    let equals = body.iter().position(|byte| *byte == b'=')?;
    (*newline == b'\n').then_some((body.get(..equals)?, body.get(equals + 1..)?, bytes.get(length..)?))
}

/// Bytes as text; where they are none, with what they were.
fn text(bytes: Vec<u8>) -> (String, Option<Vec<u8>>) {
    match String::from_utf8(bytes) {
        Ok(text) => (text, None),
        Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), Some(error.into_bytes())),
    }
}

/// A header block.
pub(super) struct Raw<'b>(&'b [u8; BLOCK]);

impl Raw<'_> {
    fn field(&self, start: usize, length: usize) -> &[u8] {
        self.0.get(start..start + length).unwrap_or_default()
    }

    pub(super) fn kind(&self) -> u8 {
        self.0.get(156).copied().unwrap_or(0)
    }

    fn text(&self, start: usize, length: usize) -> &[u8] {
        let field = self.field(start, length);
        let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
        field.get(..end).unwrap_or_default()
    }

    fn path(&self) -> Vec<u8> {
        let name = self.text(0, 100);
        // GNU's headers hold other things where ustar's hold the first part of long paths.
        let prefix: &[u8] = if self.field(257, 6) == b"ustar\0" { self.text(345, 155) } else { b"" };
        if prefix.is_empty() { name.to_vec() } else { [prefix, name].join(&b'/') }
    }

    /// Pairs of offset and length in a map of holes; the first without digits ends it.
    fn map(&self, start: usize, pairs: usize, to: &mut Vec<u64>) {
        for at in (0..pairs).map(|pair| start + pair * 24) {
            let is_used = self.0.get(at).is_some_and(|byte| *byte != 0);
            let (Some(offset), Some(length)) = (self.number(at, 12), self.number(at + 12, 12)) else {
                return;
            };
            if !is_used {
                return;
            }
            to.extend([offset, length]);
        }
    }

    /// Octal digits, or GNU's binary form for what does not fit in them.
    pub(super) fn number(&self, start: usize, length: usize) -> Option<u64> {
        let field = self.field(start, length);
        if field.first().is_some_and(|byte| byte & 0x80 != 0) {
            let (first, rest) = field.split_first()?;
            if first & 0x40 != 0 {
                return None;
            }
            return rest.iter().try_fold(u64::from(first & 0x3f), |number, byte| {
                number.checked_mul(256)?.checked_add(u64::from(*byte))
            });
        }
        let digits = field.iter().copied().skip_while(|byte| matches!(byte, b' ' | 0));
        let digits: Vec<u8> = digits.take_while(|byte| !matches!(byte, b' ' | 0)).collect();
        digits.iter().try_fold(0_u64, |number, digit| match digit {
            b'0'..=b'7' => number.checked_mul(8)?.checked_add(u64::from(digit - b'0')),
            _ => None,
        })
    }

    /// The sum of all bytes, its own field taken as blanks; old writers added signed bytes.
    fn checksum_fits(&self) -> bool {
        let Some(written) = self.number(148, 8) else { return false };
        let bytes = || {
            self.0.iter().enumerate().map(|(at, byte)| if (148..156).contains(&at) { b' ' } else { *byte })
        };
        let unsigned: u64 = bytes().map(u64::from).sum();
        let signed: i64 = bytes().map(|byte| i64::from(byte.cast_signed())).sum();
        written == unsigned || i64::try_from(written) == Ok(signed)
    }
}

/// A path as the image's root sees it: no leading slash, no empty parts; one that leads upwards is refused.
pub(crate) fn clean(path: &str) -> Result<String, TarError> {
    if path.contains("..") && path.split('/').any(|part| part == "..") {
        return Err(TarError::Hostile(format!("`{}` leads out of the image", shortened(path))));
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
