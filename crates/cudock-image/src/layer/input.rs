//! Bytes of a layer: at hand where it is not compressed, as they come out where it is.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use cudock_map::Mmap;

use super::Limits;
use super::codec::Codec;

/// No file that is looked into whole is larger.
const MAX_FILE: u64 = 8 << 30;
/// What is read before anyone asked for a whole file.
const START: usize = 512;
/// What a file's claimed size may reserve before its bytes are there.
const AHEAD: u64 = 64 << 20;
/// What is handed out at once of bytes that are all there.
const AT_ONCE: usize = 8 << 20;

/// Where bytes come from.
pub(crate) enum Input<'a> {
    /// They are all there.
    Whole { bytes: &'a [u8], at: usize },
    /// They come out of a decoder.
    Stream { decoder: Box<dyn Read + 'a>, read: u64, most: u64, scratch: Vec<u8>, sink: Vec<u8> },
}

pub(super) fn short() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the layer ends in the middle of an entry")
}

impl<'a> Input<'a> {
    pub(crate) fn of(bytes: &'a [u8], limits: Limits) -> io::Result<Self> {
        let codec = Codec::of(bytes);
        if codec == Codec::Plain {
            return Ok(Input::Whole { bytes, at: 0 });
        }
        Ok(Input::stream(codec.decoder(bytes)?, limits.most(bytes.len())))
    }

    /// Bytes that come out of a reader, `most` of them at most.
    pub(crate) fn stream(decoder: Box<dyn Read + 'a>, most: u64) -> Self {
        Input::Stream { decoder, read: 0, most, scratch: Vec::new(), sink: vec![0; 256 << 10] }
    }

    /// The next bytes, up to `wanted`: as many as are at hand, and at least one.
    pub(crate) fn some(&mut self, wanted: u64) -> io::Result<&[u8]> {
        match self {
            Input::Whole { bytes, at } => {
                let rest = bytes.get(*at..).unwrap_or_default();
                let wanted = usize::try_from(wanted).unwrap_or(usize::MAX).min(AT_ONCE);
                let some = rest.get(..wanted.min(rest.len())).filter(|some| !some.is_empty());
                let some = some.ok_or_else(short)?;
                *at += some.len();
                Ok(some)
            }
            Input::Stream { sink, .. } => {
                let mut buffer = std::mem::take(sink);
                let length = usize::try_from(wanted).unwrap_or(usize::MAX).min(buffer.len());
                let filled = self.fill(buffer.get_mut(..length).unwrap_or_default());
                let Input::Stream { sink, .. } = self else { return Err(short()) };
                *sink = buffer;
                match filled? {
                    0 => Err(short()),
                    count => Ok(sink.get(..count).unwrap_or_default()),
                }
            }
        }
    }

    /// Passes over all that is left.
    pub(crate) fn drain(&mut self) -> io::Result<()> {
        if let Input::Whole { bytes, at } = self {
            *at = bytes.len();
            return Ok(());
        }
        let mut passed = vec![0; 64 << 10];
        while self.fill(&mut passed)? > 0 {}
        Ok(())
    }

    /// Fills `buffer`, or as much of it as there is.
    pub(crate) fn fill(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Input::Whole { bytes, at } => {
                let rest = bytes.get(*at..).unwrap_or_default();
                let count = rest.len().min(buffer.len());
                if let (Some(to), Some(from)) = (buffer.get_mut(..count), rest.get(..count)) {
                    to.copy_from_slice(from);
                }
                *at += count;
                Ok(count)
            }
            Input::Stream { decoder, read, most, .. } => {
                let mut filled = 0;
                while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
                    match decoder.read(rest) {
                        Ok(0) => break,
                        Ok(count) => filled += count,
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(error) => return Err(error),
                    }
                }
                count(read, *most, filled as u64)?;
                Ok(filled)
            }
        }
    }

    /// Passes over what fills a block up; false where the layer ends there, as some do.
    pub(crate) fn skip_padding(&mut self, count: u64) -> io::Result<bool> {
        let mut block = [0; 512];
        let padding = block.get_mut(..usize::try_from(count).unwrap_or(0)).unwrap_or_default();
        Ok(self.fill(padding)? == padding.len())
    }

    /// Passes over bytes.
    pub(crate) fn skip(&mut self, count: u64) -> io::Result<()> {
        match self {
            Input::Whole { bytes, at } => {
                let to = usize::try_from(count).ok().and_then(|count| at.checked_add(count));
                *at = to.filter(|to| *to <= bytes.len()).ok_or_else(short)?;
                Ok(())
            }
            Input::Stream { decoder, read, most, sink, .. } => {
                let mut left = count;
                while left > 0 {
                    let want = usize::try_from(left).unwrap_or(usize::MAX).min(sink.len());
                    let buffer = sink.get_mut(..want).unwrap_or_default();
                    match decoder.read(buffer) {
                        Ok(0) => return Err(short()),
                        Ok(got) => {
                            left -= got as u64;
                            self::count(read, *most, got as u64)?;
                        }
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok(())
            }
        }
    }
}

/// Counts what came out, and stops a bomb.
fn count(read: &mut u64, most: u64, more: u64) -> io::Result<()> {
    *read = read.saturating_add(more);
    if *read > most { Err(bomb(most)) } else { Ok(()) }
}

pub(crate) fn bomb(most: u64) -> io::Error {
    let message = format!("more than {most} bytes come out of it: refused as a decompression bomb");
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// The bytes of one file, for whoever wants to look at them.
pub struct Content<'c, 'a> {
    source: Source<'c, 'a>,
    size: u64,
}

enum Source<'c, 'a> {
    /// A file of a layer; `left` is what its reader has not given yet.
    Layer { input: &'c mut Input<'a>, left: &'c mut u64, started: bool },
    /// Bytes that are there.
    Bytes(&'a [u8]),
    /// A file on disk. Most are told by their first bytes, and a mapping costs more than reading those.
    File { path: &'a Path, start: Option<Vec<u8>>, map: Option<Mmap> },
}

impl<'c, 'a> Content<'c, 'a> {
    pub(crate) fn in_layer(input: &'c mut Input<'a>, left: &'c mut u64) -> Self {
        if let Input::Stream { scratch, .. } = input {
            scratch.clear();
        }
        let size = *left;
        Self { source: Source::Layer { input, left, started: false }, size }
    }

    /// A file that is at hand.
    pub fn of_bytes(bytes: &'a [u8]) -> Self {
        Self { source: Source::Bytes(bytes), size: bytes.len() as u64 }
    }

    /// A file on disk, opened when it is asked for.
    pub(crate) fn of_file(path: &'a Path, size: u64) -> Self {
        Self { source: Source::File { path, start: None, map: None }, size }
    }

    /// How large the file is, or claims to be.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Its first bytes, up to 512.
    pub fn start(&mut self) -> io::Result<&[u8]> {
        let want = usize::try_from(self.size).unwrap_or(usize::MAX).min(START);
        match &mut self.source {
            Source::Bytes(bytes) => Ok(bytes.get(..want).unwrap_or_default()),
            Source::File { path, start, .. } => {
                if start.is_none() {
                    let mut read = Vec::with_capacity(want);
                    File::open(path)?.take(want as u64).read_to_end(&mut read)?;
                    *start = Some(read);
                }
                Ok(start.as_deref().unwrap_or_default())
            }
            Source::Layer { input: Input::Whole { bytes, at }, .. } => {
                bytes.get(*at..).and_then(|rest| rest.get(..want)).ok_or_else(short)
            }
            Source::Layer { input, left, started } => {
                if !*started {
                    *started = true;
                    let mut start = [0; START];
                    let start = start.get_mut(..want).unwrap_or_default();
                    if input.fill(start)? < want {
                        return Err(short());
                    }
                    **left -= want as u64;
                    if let Input::Stream { scratch, .. } = input {
                        scratch.extend_from_slice(start);
                    }
                }
                match input {
                    Input::Stream { scratch, .. } => Ok(scratch.get(..want).unwrap_or_default()),
                    Input::Whole { .. } => Ok(&[]),
                }
            }
        }
    }

    /// All of it, in memory.
    pub fn all(&mut self) -> io::Result<&[u8]> {
        if self.size > MAX_FILE {
            let message = format!("a file of {} bytes is too large to look into", self.size);
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let size = usize::try_from(self.size).map_err(|_| short())?;
        if let Source::File { path, map, .. } = &mut self.source {
            *map = Some(cudock_map::map(path).map_err(|error| error.source)?);
        } else {
            self.start()?;
        }
        match &mut self.source {
            Source::Bytes(bytes) => Ok(bytes),
            Source::File { map, .. } => Ok(map.as_deref().unwrap_or_default()),
            Source::Layer { input: Input::Whole { bytes, at }, .. } => {
                bytes.get(*at..).and_then(|rest| rest.get(..size)).ok_or_else(short)
            }
            Source::Layer { input: Input::Stream { decoder, read, most, scratch, .. }, left, .. } => {
                scratch.reserve(usize::try_from((**left).min(AHEAD)).unwrap_or(0));
                let got = decoder.by_ref().take(**left).read_to_end(scratch)? as u64;
                count(read, *most, got)?;
                **left -= got;
                if **left > 0 {
                    return Err(short());
                }
                Ok(scratch)
            }
        }
    }
}
