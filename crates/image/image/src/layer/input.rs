//! The bytes of a layer: a slice if it is not compressed, else a decoder.

use cudock_base::bug::{Parts, PartsMut};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use cudock_base::Codec;
use cudock_mmap::Mmap;

use super::LayerLimits;
use super::codec::decompressor;

/// The largest file that can be read into memory.
const MAX_FILE: u64 = 8 << 30;
/// The size of the prefix that [`Content::start`] returns.
const PREFIX_LEN: usize = 512;
/// The most memory to reserve based on a claimed size.
const MAX_RESERVE: u64 = 64 << 20;
/// The largest chunk returned at once from a slice.
const MAX_CHUNK: usize = 8 << 20;

/// The source of a layer's uncompressed bytes.
pub(crate) enum LayerInput<'a> {
    /// The layer is not compressed.
    Slice { bytes: &'a [u8], at: usize },
    /// The layer is decoded while it is read.
    Stream { decoder: Box<dyn Read + 'a>, read: u64, limit: u64, scratch: Vec<u8>, sink: Vec<u8> },
}

pub(super) fn unexpected_eof() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "unexpected end of layer in the middle of an entry")
}

impl<'a> LayerInput<'a> {
    pub(crate) fn new(bytes: &'a [u8], limits: LayerLimits) -> io::Result<Self> {
        let codec = Codec::detect(bytes);
        if codec == Codec::Plain {
            return Ok(LayerInput::Slice { bytes, at: 0 });
        }
        Ok(LayerInput::stream(decompressor(codec, bytes)?, limits.max_output(bytes.len())))
    }

    pub(crate) fn stream(decoder: Box<dyn Read + 'a>, limit: u64) -> Self {
        LayerInput::Stream { decoder, read: 0, limit, scratch: Vec::new(), sink: vec![0; 256 << 10] }
    }

    /// The next bytes, up to `wanted`: whatever is available, but at least one.
    pub(crate) fn next_chunk(&mut self, wanted: u64) -> io::Result<&[u8]> {
        match self {
            LayerInput::Slice { bytes, at } => {
                let rest = bytes.part(*at..);
                let wanted = usize::try_from(wanted).unwrap_or(usize::MAX).min(MAX_CHUNK);
                let some = rest.get(..wanted.min(rest.len())).filter(|some| !some.is_empty());
                let some = some.ok_or_else(unexpected_eof)?;
                *at += some.len();
                Ok(some)
            }
            LayerInput::Stream { sink, .. } => {
                let mut buffer = std::mem::take(sink);
                let length = usize::try_from(wanted).unwrap_or(usize::MAX).min(buffer.len());
                let filled = self.fill(buffer.part_mut(..length));
                let LayerInput::Stream { sink, .. } = self else { return Err(unexpected_eof()) };
                *sink = buffer;
                match filled? {
                    0 => Err(unexpected_eof()),
                    count => Ok(sink.part(..count)),
                }
            }
        }
    }

    /// Skips to the end.
    pub(crate) fn drain(&mut self) -> io::Result<()> {
        if let LayerInput::Slice { bytes, at } = self {
            *at = bytes.len();
            return Ok(());
        }
        let mut passed = vec![0; 64 << 10];
        while self.fill(&mut passed)? > 0 {}
        Ok(())
    }

    /// Fills `buffer`, or less at the end of the layer.
    pub(crate) fn fill(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            LayerInput::Slice { bytes, at } => {
                let rest = bytes.part(*at..);
                let count = rest.len().min(buffer.len());
                if let (Some(to), Some(from)) = (buffer.get_mut(..count), rest.get(..count)) {
                    to.copy_from_slice(from);
                }
                *at += count;
                Ok(count)
            }
            LayerInput::Stream { decoder, read, limit, .. } => {
                let mut filled = 0;
                while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
                    match decoder.read(rest) {
                        Ok(0) => break,
                        Ok(count) => filled += count,
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(error) => return Err(error),
                    }
                }
                count_output(read, *limit, filled as u64)?;
                Ok(filled)
            }
        }
    }

    /// Skips the padding of a block; false if the layer ends there, as some do.
    pub(crate) fn skip_padding(&mut self, count: u64) -> io::Result<bool> {
        let mut block = [0; 512];
        let padding = block.get_mut(..usize::try_from(count).unwrap_or(0)).unwrap_or_default();
        Ok(self.fill(padding)? == padding.len())
    }

    pub(crate) fn skip(&mut self, count: u64) -> io::Result<()> {
        if let LayerInput::Slice { bytes, at } = self {
            let to = usize::try_from(count).ok().and_then(|count| at.checked_add(count));
            *at = to.filter(|to| *to <= bytes.len()).ok_or_else(unexpected_eof)?;
            return Ok(());
        }
        let mut left = count;
        while left > 0 {
            left -= self.next_chunk(left)?.len() as u64;
        }
        Ok(())
    }
}

/// Counts decoded bytes and stops at the limit.
fn count_output(read: &mut u64, limit: u64, more: u64) -> io::Result<()> {
    *read = read.saturating_add(more);
    if *read > limit { Err(bomb_error(limit)) } else { Ok(()) }
}

pub(crate) fn bomb_error(limit: u64) -> io::Error {
    let message = format!("decompresses to more than {limit} bytes: rejected as a decompression bomb");
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// The contents of one file, read on demand.
pub struct Content<'c, 'a> {
    source: ContentSource<'c, 'a>,
    size: u64,
}

enum ContentSource<'c, 'a> {
    /// A file in a layer; `left` counts the bytes that are not read yet.
    Layer { input: &'c mut LayerInput<'a>, left: &'c mut u64, started: bool },
    /// A file in memory.
    Bytes(&'a [u8]),
    /// A file on disk. Most are identified by their prefix, which is cheaper to read than to map.
    File { path: &'a Path, start: Option<Vec<u8>>, map: Option<Mmap> },
}

impl<'c, 'a> Content<'c, 'a> {
    pub(crate) fn in_layer(input: &'c mut LayerInput<'a>, left: &'c mut u64) -> Self {
        if let LayerInput::Stream { scratch, .. } = input {
            scratch.clear();
        }
        let size = *left;
        Self { source: ContentSource::Layer { input, left, started: false }, size }
    }

    /// A file in memory.
    pub fn from_bytes(bytes: &'a [u8]) -> Self {
        Self { source: ContentSource::Bytes(bytes), size: bytes.len() as u64 }
    }

    /// A file on disk, opened on first use.
    pub(crate) fn from_file(path: &'a Path, size: u64) -> Self {
        Self { source: ContentSource::File { path, start: None, map: None }, size }
    }

    /// The size of the file, as declared by its header.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The first bytes, up to 512.
    pub fn start(&mut self) -> io::Result<&[u8]> {
        let want = usize::try_from(self.size).unwrap_or(usize::MAX).min(PREFIX_LEN);
        match &mut self.source {
            ContentSource::Bytes(bytes) => Ok(bytes.part(..want)),
            ContentSource::File { path, start, .. } => {
                if start.is_none() {
                    let mut read = Vec::with_capacity(want);
                    File::open(path)?.take(want as u64).read_to_end(&mut read)?;
                    *start = Some(read);
                }
                Ok(start.as_deref().unwrap_or_default())
            }
            ContentSource::Layer { input: LayerInput::Slice { bytes, at }, .. } => {
                bytes.get(*at..).and_then(|rest| rest.get(..want)).ok_or_else(unexpected_eof)
            }
            ContentSource::Layer { input, left, started } => {
                if !*started {
                    *started = true;
                    let mut start = [0; PREFIX_LEN];
                    let start = start.part_mut(..want);
                    if input.fill(start)? < want {
                        return Err(unexpected_eof());
                    }
                    **left -= want as u64;
                    if let LayerInput::Stream { scratch, .. } = input {
                        scratch.extend_from_slice(start);
                    }
                }
                match input {
                    LayerInput::Stream { scratch, .. } => Ok(scratch.part(..want)),
                    LayerInput::Slice { .. } => Ok(&[]),
                }
            }
        }
    }

    /// Passes the content on piece by piece, so that large files are never in memory as a whole.
    pub fn each_chunk(&mut self, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        if let ContentSource::Layer { input, left, started: false } = &mut self.source {
            while **left > 0 {
                let chunk = input.next_chunk(**left)?;
                **left -= chunk.len() as u64;
                take(chunk)?;
            }
            return Ok(());
        }
        take(self.all()?)
    }

    /// The whole file.
    pub fn all(&mut self) -> io::Result<&[u8]> {
        if self.size > MAX_FILE {
            let message = format!("file of {} bytes is too large to inspect", self.size);
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let size = usize::try_from(self.size).map_err(|_| unexpected_eof())?;
        if let ContentSource::File { path, map, .. } = &mut self.source {
            *map = Some(cudock_mmap::map(path).map_err(|error| error.source)?);
        } else {
            self.start()?;
        }
        match &mut self.source {
            ContentSource::Bytes(bytes) => Ok(bytes),
            ContentSource::File { map, .. } => Ok(map.as_deref().unwrap_or_default()),
            ContentSource::Layer { input: LayerInput::Slice { bytes, at }, .. } => {
                bytes.get(*at..).and_then(|rest| rest.get(..size)).ok_or_else(unexpected_eof)
            }
            ContentSource::Layer {
                input: LayerInput::Stream { decoder, read, limit, scratch, .. },
                left,
                ..
            } => {
                scratch.reserve(usize::try_from((**left).min(MAX_RESERVE)).unwrap_or(0));
                let got = decoder.by_ref().take(**left).read_to_end(scratch)? as u64;
                count_output(read, *limit, got)?;
                **left -= got;
                if **left > 0 {
                    return Err(unexpected_eof());
                }
                Ok(scratch)
            }
        }
    }
}
