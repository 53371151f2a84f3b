//! Compresses a stream on all cores, with a result that does not depend on their number.
//!
//! The stream is cut into blocks of a fixed size, and each block is a gzip member or a zstd frame of its own: a sequence of
//! them is a valid file of either format, which every container engine reads.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use cudock_base::bug::Parts;
use cudock_base::{Algorithm, Digest, Hasher, lock};
use flate2::GzBuilder;

/// Small enough that layers use several cores; as large as the window of zstd that every decoder must accept.
const BLOCK: usize = 8 << 20;

/// How layers are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    None,
    /// The level, from 1 to 9.
    Gzip(u32),
    /// The level, from 1 to 22.
    Zstd(i32),
}

impl Default for Compression {
    fn default() -> Self {
        Self::Gzip(6)
    }
}

impl Compression {
    pub(crate) const ZSTD: Self = Self::Zstd(3);

    /// The OCI media type of a layer.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::None => "application/vnd.oci.image.layer.v1.tar",
            Self::Gzip(_) => "application/vnd.oci.image.layer.v1.tar+gzip",
            Self::Zstd(_) => "application/vnd.oci.image.layer.v1.tar+zstd",
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Gzip(level) => write!(f, "gzip:{level}"),
            Self::Zstd(level) => write!(f, "zstd:{level}"),
        }
    }
}

impl FromStr for Compression {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, level) = text.split_once(':').map_or((text, None), |(name, level)| (name, Some(level)));
        let level = level.map(|level| level.parse::<u32>().map_err(|_| ())).transpose();
        match (name, level) {
            ("none", Ok(None)) => Ok(Self::None),
            ("gzip", Ok(level)) if (1..=9).contains(&level.unwrap_or(6)) => {
                Ok(Self::Gzip(level.unwrap_or(6)))
            }
            ("zstd", Ok(level)) if (1..=22).contains(&level.unwrap_or(3)) => {
                Ok(Self::Zstd(level.and_then(|level| i32::try_from(level).ok()).unwrap_or(3)))
            }
            _ => Err(format!("`{text}` is not a compression (gzip, gzip:1 to 9, zstd, zstd:1 to 22, none)")),
        }
    }
}

type CompressedBlock = (u64, io::Result<Vec<u8>>);

/// Takes the uncompressed bytes, and writes the compressed ones to a file in the background.
pub(super) struct BlockWriter {
    block: Vec<u8>,
    number: u64,
    /// None after the end, which lets the workers return.
    blocks: Option<SyncSender<(u64, Vec<u8>)>>,
    workers: Vec<JoinHandle<()>>,
    writer: Option<JoinHandle<io::Result<(Digest, u64)>>>,
    hasher: Hasher,
    written: u64,
}

/// A layer that was written completely.
pub(super) struct Finished {
    pub(super) digest: Digest,
    pub(super) size: u64,
    pub(super) diff_id: Digest,
    pub(super) unpacked: u64,
}

impl BlockWriter {
    pub(super) fn new(compression: Compression, file: impl Write + Send + 'static) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let (blocks, queue) = sync_channel(cores);
        let (finished, compressed) = sync_channel(cores);
        let queue = Arc::new(Mutex::new(queue));
        let workers = (0..cores).map(|_| {
            let (queue, finished) = (Arc::clone(&queue), finished.clone());
            std::thread::spawn(move || compress_blocks(compression, &queue, &finished))
        });
        let workers = workers.collect();
        let writer = Some(std::thread::spawn(move || write_in_order(file, &compressed)));
        Self {
            block: Vec::with_capacity(BLOCK),
            number: 0,
            blocks: Some(blocks),
            workers,
            writer,
            hasher: Hasher::new(Algorithm::Sha256),
            written: 0,
        }
    }

    fn send(&mut self) -> io::Result<()> {
        let block = std::mem::replace(&mut self.block, Vec::with_capacity(BLOCK));
        let sent = self.blocks.as_ref().map(|blocks| blocks.send((self.number, block)));
        self.number += 1;
        if let Some(Ok(())) = sent {
            return Ok(());
        }
        // The workers have returned because the writer has; its error is the reason.
        self.join().and_then(|_| Err(io::Error::other("the writer has ended")))
    }

    fn join(&mut self) -> io::Result<(Digest, u64)> {
        self.blocks = None;
        for worker in self.workers.drain(..) {
            worker.join().map_err(|_| io::Error::other("a compression thread panicked"))?;
        }
        let writer = self.writer.take().ok_or_else(|| io::Error::other("the writer has ended"))?;
        writer.join().map_err(|_| io::Error::other("the writing thread panicked"))?
    }

    pub(super) fn finish(mut self) -> io::Result<Finished> {
        // An empty stream still needs a header.
        if !self.block.is_empty() || self.number == 0 {
            self.send()?;
        }
        let (digest, size) = self.join()?;
        Ok(Finished { digest, size, diff_id: self.hasher.digest(), unpacked: self.written })
    }
}

impl Write for BlockWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let some = bytes.part(..bytes.len().min(BLOCK - self.block.len()));
        self.hasher.update(some);
        self.block.extend_from_slice(some);
        self.written += some.len() as u64;
        if self.block.len() == BLOCK {
            self.send()?;
        }
        Ok(some.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn compress_blocks(
    compression: Compression,
    queue: &Mutex<Receiver<(u64, Vec<u8>)>>,
    finished: &SyncSender<CompressedBlock>,
) {
    let mut zstd = None;
    loop {
        let received = lock(queue).recv();
        let Ok((number, block)) = received else { return };
        if finished.send((number, compress(compression, block, &mut zstd))).is_err() {
            return;
        }
    }
}

fn compress(
    compression: Compression,
    block: Vec<u8>,
    zstd: &mut Option<zstd::bulk::Compressor<'static>>,
) -> io::Result<Vec<u8>> {
    match compression {
        Compression::None => Ok(block),
        Compression::Gzip(level) => {
            // Neither a time nor the name of an operating system.
            let builder = GzBuilder::new().mtime(0).operating_system(255);
            let out = Vec::with_capacity(block.len() / 2);
            let mut encoder = builder.write(out, flate2::Compression::new(level));
            encoder.write_all(&block)?;
            encoder.finish()
        }
        Compression::Zstd(level) => {
            let compressor = match zstd {
                Some(compressor) => compressor,
                None => zstd.insert(zstd::bulk::Compressor::new(level)?),
            };
            compressor.compress(&block)
        }
    }
}

fn write_in_order(mut file: impl Write, compressed: &Receiver<CompressedBlock>) -> io::Result<(Digest, u64)> {
    let mut hasher = Hasher::new(Algorithm::Sha256);
    let (mut next, mut size) = (0, 0);
    let mut waiting = BTreeMap::new();
    for (number, block) in compressed {
        waiting.insert(number, block?);
        while let Some(block) = waiting.remove(&next) {
            hasher.update(&block);
            file.write_all(&block)?;
            size += block.len() as u64;
            next += 1;
        }
    }
    file.flush()?;
    Ok((hasher.digest(), size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_and_wrong_ones_say_what_is_possible() {
        for text in ["none", "gzip:1", "zstd:22"] {
            assert_eq!(text.parse::<Compression>().unwrap().to_string(), text);
        }
        assert_eq!("zstd".parse::<Compression>(), Ok(Compression::ZSTD));
        assert_eq!("gzip".parse::<Compression>(), Ok(Compression::default()));
        for text in ["", "xz", "gzip:0", "gzip:10", "zstd:23", "zstd:", "none:1"] {
            assert!(text.parse::<Compression>().unwrap_err().contains("gzip"), "{text}");
        }
    }

    #[test]
    fn a_writer_that_fails_ends_the_stream_with_its_error() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::Error::from(io::ErrorKind::StorageFull))
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut writer = BlockWriter::new(Compression::None, Full);
        let chunk = vec![1; BLOCK];
        let failed = (0..1000).find_map(|_| writer.write_all(&chunk).err());
        assert_eq!(failed.unwrap().kind(), io::ErrorKind::StorageFull);
    }
}
