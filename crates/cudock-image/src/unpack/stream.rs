//! A layer's bytes on their way: decoded by one thread, hashed by a second, written by the caller's.
//!
//! Blocks go from one to the next and back again, so that memory stays the same however large a layer is.

use std::fmt::Write as _;
use std::io::{self, BufRead, Read};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use sha2::{Digest as _, Sha256};

use super::error::LayerError;
use crate::layer::{Codec, Input, Limits};

/// What goes from thread to thread at once.
const BLOCK: usize = 512 << 10;
/// Blocks that wait between two threads.
const WAITING: usize = 4;

/// Has `read` read what comes out of a layer, and says by what digest it goes. `read` has to read to the end.
/// `taken` counts the bytes of the layer that were gone through.
pub(super) fn hashed<T>(
    bytes: &[u8],
    limits: Limits,
    taken: &AtomicU64,
    read: impl FnOnce(Input<'_>) -> Result<T, LayerError>,
) -> Result<(T, String), LayerError> {
    if Codec::of(bytes) == Codec::Plain {
        return hashed_in_place(bytes, limits, taken, read);
    }
    std::thread::scope(|scope| {
        let (decoded, to_hash) = sync_channel(WAITING);
        let (hashed, to_read) = sync_channel(WAITING);
        let (used, unused) = channel();
        scope.spawn(move || decode(bytes, taken, &decoded, &unused));
        let hash = scope.spawn(move || pass_on_hashed(&to_hash, &hashed));
        let blocks = Blocks { blocks: to_read, used, current: Vec::new(), at: 0 };
        let result = read(Input::stream(Box::new(blocks), limits.most(bytes.len())))?;
        // The reader is gone, so that both threads end, whether or not all was read.
        let digest = hash.join().map_err(|_| LayerError::Stopped)?;
        Ok((result, digest))
    })
}

/// Bytes that are not compressed are hashed where they lie.
fn hashed_in_place<T>(
    bytes: &[u8],
    limits: Limits,
    taken: &AtomicU64,
    read: impl FnOnce(Input<'_>) -> Result<T, LayerError>,
) -> Result<(T, String), LayerError> {
    let failed = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let hash = scope.spawn(|| {
            let mut hash = Sha256::new();
            for block in bytes.chunks(BLOCK) {
                if failed.load(Ordering::Relaxed) {
                    break;
                }
                hash.update(block);
                taken.fetch_add(block.len() as u64, Ordering::Relaxed);
            }
            hex(hash)
        });
        let input = Input::of(bytes, limits).map_err(|error| LayerError::Tar(error.into()))?;
        let result = read(input).inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
        let digest = hash.join().map_err(|_| LayerError::Stopped)?;
        Ok((result, digest))
    })
}

type Block = io::Result<Vec<u8>>;

fn decode(bytes: &[u8], taken: &AtomicU64, to: &SyncSender<Block>, unused: &Receiver<Vec<u8>>) {
    let mut decoder = match Codec::of(bytes).decoder(Counted { rest: bytes, taken }) {
        Ok(decoder) => decoder,
        Err(error) => {
            let _ = to.send(Err(error));
            return;
        }
    };
    loop {
        let mut block = unused.try_recv().unwrap_or_else(|_| Vec::with_capacity(BLOCK));
        block.clear();
        // Until it is full: decoders hand out as little as they like.
        let read = decoder.by_ref().take(BLOCK as u64).read_to_end(&mut block);
        let is_last = !matches!(read, Ok(count) if count > 0);
        // What came out before an error counts: it may be all that is needed.
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

fn pass_on_hashed(from: &Receiver<Block>, to: &SyncSender<Block>) -> String {
    let mut hash = Sha256::new();
    while let Ok(block) = from.recv() {
        if let Ok(bytes) = &block {
            hash.update(bytes);
        }
        if to.send(block).is_err() {
            break;
        }
    }
    hex(hash)
}

fn hex(hash: Sha256) -> String {
    let mut digits = String::with_capacity(64);
    for byte in hash.finalize() {
        // Writing to a String cannot fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// The digest of these bytes, in digits.
pub(super) fn digits_of(bytes: &[u8]) -> String {
    hex(Sha256::new_with_prefix(bytes))
}

/// Blocks read as one stream.
struct Blocks {
    blocks: Receiver<Block>,
    used: Sender<Vec<u8>>,
    current: Vec<u8>,
    at: usize,
}

impl Read for Blocks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.current.len() {
            let Ok(next) = self.blocks.recv() else { return Ok(0) };
            let done = std::mem::replace(&mut self.current, next?);
            self.at = 0;
            let _ = self.used.send(done);
        }
        let rest = self.current.get(self.at..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), rest.get(..count)) {
            to.copy_from_slice(from);
        }
        self.at += count;
        Ok(count)
    }
}

/// Counts what a decoder takes.
struct Counted<'a> {
    rest: &'a [u8],
    taken: &'a AtomicU64,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.rest.read(buffer)?;
        self.taken.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

impl BufRead for Counted<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        // In steps, so that the count moves.
        Ok(self.rest.get(..self.rest.len().min(BLOCK)).unwrap_or_default())
    }

    fn consume(&mut self, amount: usize) {
        self.rest = self.rest.get(amount..).unwrap_or_default();
        self.taken.fetch_add(amount as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drained(bytes: &[u8]) -> Result<(u64, String), LayerError> {
        let taken = AtomicU64::new(0);
        let result = hashed(bytes, Limits::default(), &taken, |mut input| {
            let mut total = 0;
            let mut buffer = vec![0; 100_000];
            loop {
                match input.fill(&mut buffer).map_err(|error| LayerError::Tar(error.into()))? {
                    0 => return Ok(total),
                    count => total += count as u64,
                }
            }
        });
        assert!(result.is_err() || taken.into_inner() == bytes.len() as u64);
        result
    }

    #[test]
    fn bytes_are_hashed_as_they_come_out_however_they_are_compressed() {
        let plain: Vec<u8> = (0..3_000_000_u32).flat_map(|number| (number / 7).to_le_bytes()).collect();
        let expected = (plain.len() as u64, digits_of(&plain));
        for form in [plain.clone(), zstd::encode_all(plain.as_slice(), 1).unwrap(), gzip(&plain)] {
            assert_eq!(drained(&form).unwrap(), expected);
        }
        assert_eq!(drained(b"").unwrap(), (0, digits_of(b"")));
    }

    #[test]
    fn a_reader_that_gives_up_ends_the_threads_and_a_cut_is_an_error() {
        let plain = vec![b'x'; 40 << 20];
        let mut packed = gzip(&plain);
        let taken = AtomicU64::new(0);
        let result = hashed(&packed, Limits::default(), &taken, |_| Err::<(), _>(LayerError::Stopped));
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
