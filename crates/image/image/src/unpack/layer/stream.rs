//! Decodes and hashes a layer while it is unpacked: one thread decodes, a second hashes, the caller's writes files.
//!
//! Blocks are passed from thread to thread and reused, so that memory use does not depend on the size of a layer.

use cudock_base::bug::Parts;
use std::io::{self, BufRead, Read};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use cudock_base::{Algorithm, Codec, Digest, Hasher};

use crate::layer::{LayerInput, LayerLimits, decompressor};
use crate::unpack::error::LayerError;

const BLOCK: usize = 512 << 10;
/// Blocks queued between two threads.
const WAITING: usize = 4;

/// The stored bytes of a layer.
#[derive(Clone, Copy)]
pub(in crate::unpack) struct StoredLayer<'a> {
    pub(in crate::unpack) bytes: &'a [u8],
    /// Whether they are in a file that only cudock writes. Others may change while they are read, so that every byte has to be read
    /// once: what is used must be what was hashed.
    pub(in crate::unpack) is_own: bool,
}

/// Calls `read` with the decoded layer and returns the digest. `read` must read to the end. `consumed` counts the compressed
/// bytes consumed so far.
pub(in crate::unpack) fn read_hashed<T>(
    layer: StoredLayer<'_>,
    limits: LayerLimits,
    consumed: &AtomicU64,
    read: impl FnOnce(LayerInput<'_>) -> Result<T, LayerError>,
) -> Result<(T, Digest), LayerError> {
    let bytes = layer.bytes;
    if layer.is_own && Codec::detect(bytes) == Codec::Plain {
        return read_hashed_in_place(bytes, limits, consumed, read);
    }
    std::thread::scope(|scope| {
        let (decoded, to_hash) = sync_channel(WAITING);
        let (read_hashed, to_read) = sync_channel(WAITING);
        let (used, unused) = channel();
        scope.spawn(move || decode(bytes, consumed, &decoded, &unused));
        let hash = scope.spawn(move || hash_blocks(&to_hash, &read_hashed));
        let blocks = BlockReader { blocks: to_read, used, current: Vec::new(), at: 0 };
        let result = read(LayerInput::stream(Box::new(blocks), limits.max_output(bytes.len())))?;
        // `read` has dropped its end, so both threads terminate, whether or not everything was read.
        let digest = hash.join().map_err(|_| LayerError::Stopped)?;
        Ok((result, digest))
    })
}

/// Uncompressed bytes are hashed in place.
fn read_hashed_in_place<T>(
    bytes: &[u8],
    limits: LayerLimits,
    consumed: &AtomicU64,
    read: impl FnOnce(LayerInput<'_>) -> Result<T, LayerError>,
) -> Result<(T, Digest), LayerError> {
    let failed = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let hash = scope.spawn(|| {
            let mut hash = Hasher::new(Algorithm::Sha256);
            for block in bytes.chunks(BLOCK) {
                if failed.load(Ordering::Relaxed) {
                    break;
                }
                hash.update(block);
                consumed.fetch_add(block.len() as u64, Ordering::Relaxed);
            }
            hash.digest()
        });
        let input = LayerInput::new(bytes, limits).map_err(|error| LayerError::Tar(error.into()))?;
        let result = read(input).inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
        let digest = hash.join().map_err(|_| LayerError::Stopped)?;
        Ok((result, digest))
    })
}

type Block = io::Result<Vec<u8>>;

fn decode(bytes: &[u8], consumed: &AtomicU64, to: &SyncSender<Block>, unused: &Receiver<Vec<u8>>) {
    let mut decoder = match decompressor(Codec::detect(bytes), CountingReader { rest: bytes, consumed }) {
        Ok(decoder) => decoder,
        Err(error) => {
            let _ = to.send(Err(error));
            return;
        }
    };
    loop {
        let mut block = unused.try_recv().unwrap_or_else(|_| Vec::with_capacity(BLOCK));
        block.clear();
        // Fill the block: decoders may return little at a time.
        let read = decoder.by_ref().take(BLOCK as u64).read_to_end(&mut block);
        let is_last = !matches!(read, Ok(count) if count > 0);
        // Bytes decoded before an error are valid, and may be all that is needed.
        if !block.is_empty() && to.send(Ok(block)).is_err() {
            return;
        }
        if let Err(error) = read {
            let _ = to.send(Err(error));
        }
        if is_last {
            return;
        }
    }
}

fn hash_blocks(from: &Receiver<Block>, to: &SyncSender<Block>) -> Digest {
    let mut hash = Hasher::new(Algorithm::Sha256);
    while let Ok(block) = from.recv() {
        if let Ok(bytes) = &block {
            hash.update(bytes);
        }
        if to.send(block).is_err() {
            break;
        }
    }
    hash.digest()
}

/// Reads blocks as one stream.
struct BlockReader {
    blocks: Receiver<Block>,
    used: Sender<Vec<u8>>,
    current: Vec<u8>,
    at: usize,
}

impl Read for BlockReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.current.len() {
            let Ok(next) = self.blocks.recv() else { return Ok(0) };
            let done = std::mem::replace(&mut self.current, next?);
            self.at = 0;
            let _ = self.used.send(done);
        }
        let rest = self.current.part(self.at..);
        let count = rest.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), rest.get(..count)) {
            to.copy_from_slice(from);
        }
        self.at += count;
        Ok(count)
    }
}

/// Counts the bytes that a decoder consumes.
struct CountingReader<'a> {
    rest: &'a [u8],
    consumed: &'a AtomicU64,
}

impl Read for CountingReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.rest.read(buffer)?;
        self.consumed.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

impl BufRead for CountingReader<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        // In steps, so that the count advances.
        Ok(self.rest.part(..self.rest.len().min(BLOCK)))
    }

    fn consume(&mut self, amount: usize) {
        self.rest = self.rest.part(amount..);
        self.consumed.fetch_add(amount as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drained(bytes: &[u8]) -> Result<(u64, Digest), LayerError> {
        let [own, other] = [true, false].map(|is_own| drained_from(StoredLayer { bytes, is_own }));
        assert_eq!(own.as_ref().ok(), other.as_ref().ok());
        own
    }

    fn drained_from(layer: StoredLayer<'_>) -> Result<(u64, Digest), LayerError> {
        let consumed = AtomicU64::new(0);
        let result = read_hashed(layer, LayerLimits::default(), &consumed, |mut input| {
            let mut total = 0;
            let mut buffer = vec![0; 100_000];
            loop {
                match input.fill(&mut buffer).map_err(|error| LayerError::Tar(error.into()))? {
                    0 => return Ok(total),
                    count => total += count as u64,
                }
            }
        });
        assert!(result.is_err() || consumed.into_inner() == layer.bytes.len() as u64);
        result
    }

    #[test]
    fn decoded_bytes_are_hashed_whatever_the_compression() {
        let plain: Vec<u8> = (0..3_000_000_u32).flat_map(|number| (number / 7).to_le_bytes()).collect();
        let expected = (plain.len() as u64, Digest::sha256_of(&plain));
        for form in [plain.clone(), zstd::encode_all(plain.as_slice(), 1).unwrap(), gzip(&plain)] {
            assert_eq!(drained(&form).unwrap(), expected);
        }
        assert_eq!(drained(b"").unwrap(), (0, Digest::sha256_of(b"")));
    }

    #[test]
    fn a_reader_that_stops_early_ends_the_threads_and_truncation_is_an_error() {
        let plain = vec![b'x'; 40 << 20];
        let mut packed = gzip(&plain);
        let consumed = AtomicU64::new(0);
        let layer = StoredLayer { bytes: &packed, is_own: true };
        let result =
            read_hashed(layer, LayerLimits::default(), &consumed, |_| Err::<(), _>(LayerError::Stopped));
        assert!(matches!(result, Err(LayerError::Stopped)));
        packed.truncate(packed.len() / 2);
        assert!(matches!(drained(&packed), Err(LayerError::Tar(_))));
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut packed = Vec::new();
        flate2::bufread::GzEncoder::new(bytes, flate2::Compression::fast()).read_to_end(&mut packed).unwrap();
        packed
    }
}
