//! Writes sparse files.

use cudock_base::bug::{Parts, PartsMut};
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};

use crate::layer::{SparseMap, TarError, TarReader, check_extents, decimal, extents};
use crate::unpack::error::LayerError;

/// Digits of a number in a sparse map.
const MAX_DIGITS: usize = 20;
/// The most numbers in a sparse map, which bounds its memory.
const MAX_NUMBERS: u64 = 200_000;

/// Writes the extents of a sparse file of at most `max_size` bytes, including holes.
pub(in crate::unpack) fn fill(
    reader: &mut TarReader<'_>,
    file: &mut File,
    sparse_map: &SparseMap,
    limit: u64,
) -> Result<u64, LayerError> {
    if sparse_map.size > limit {
        return Err(LayerError::rejected(format!("a sparse file claims {} bytes", sparse_map.size)));
    }
    let listed;
    let extents = if sparse_map.listed_in_content {
        listed = listed_extents(reader, sparse_map.size)?;
        &listed
    } else {
        &sparse_map.extents
    };
    file.set_len(sparse_map.size).map_err(LayerError::write(b""))?;
    let mut buffer = vec![0; 64 << 10];
    let mut written = 0;
    for (offset, length) in extents {
        file.seek(SeekFrom::Start(*offset)).map_err(LayerError::write(b""))?;
        let mut left = *length;
        while left > 0 {
            let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
            let some = buffer.part_mut(..wanted);
            let count = reader.read(some).map_err(TarError::from)?;
            file.write_all(some.part(..count)).map_err(LayerError::write(b""))?;
            left -= count as u64;
            written += count as u64;
        }
    }
    Ok(written)
}

/// Reads a sparse map that precedes the contents: a count, then offsets and lengths, one per line, padded to a block.
fn listed_extents(reader: &mut TarReader<'_>, size: u64) -> Result<Vec<(u64, u64)>, LayerError> {
    let mut lines = SparseMapReader { block: [0; 512], at: 512 };
    let count = lines.number(reader)?;
    if count > MAX_NUMBERS / 2 {
        return Err(LayerError::rejected("too many extents in a sparse file"));
    }
    let mut numbers = Vec::new();
    for _ in 0..count * 2 {
        numbers.push(lines.number(reader)?);
    }
    let extents = extents(&numbers)?;
    check_extents(&extents, size, reader.left())?;
    Ok(extents)
}

struct SparseMapReader {
    block: [u8; 512],
    at: usize,
}

impl SparseMapReader {
    fn number(&mut self, reader: &mut TarReader<'_>) -> Result<u64, LayerError> {
        let broken = || LayerError::rejected("invalid sparse map");
        let mut digits = Vec::with_capacity(MAX_DIGITS);
        loop {
            if self.at == self.block.len() {
                if reader.read(&mut self.block).map_err(TarError::from)? < self.block.len() {
                    return Err(broken());
                }
                self.at = 0;
            }
            let byte = self.block.get(self.at).copied().unwrap_or(0);
            self.at += 1;
            match byte {
                b'\n' => return decimal(&digits).ok_or_else(broken),
                digit if digits.len() < MAX_DIGITS => digits.push(digit),
                _ => return Err(broken()),
            }
        }
    }
}
