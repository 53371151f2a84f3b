//! Files of which an archive holds only the parts that are not zeros.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};

use super::error::LayerError;
use crate::layer::{Holes, TarError, TarReader, check_parts, decimal, parts};

/// Digits of a number in a list.
const MAX_DIGITS: usize = 20;
/// Numbers in a list, and so what it takes in memory.
const MAX_NUMBERS: u64 = 200_000;

/// Writes the parts where they belong. No file is larger than `most`, with its holes.
pub(super) fn fill(
    reader: &mut TarReader<'_>,
    file: &mut File,
    holes: &Holes,
    most: u64,
) -> Result<u64, LayerError> {
    if holes.size > most {
        return Err(LayerError::refused(format!("a file with holes claims {} bytes", holes.size)));
    }
    let listed;
    let parts = if holes.listed_inside {
        listed = listed_parts(reader, holes.size)?;
        &listed
    } else {
        &holes.parts
    };
    file.set_len(holes.size).map_err(LayerError::at(b""))?;
    let mut buffer = vec![0; 64 << 10];
    let mut written = 0;
    for (offset, length) in parts {
        file.seek(SeekFrom::Start(*offset)).map_err(LayerError::at(b""))?;
        let mut left = *length;
        while left > 0 {
            let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
            let some = buffer.get_mut(..wanted).unwrap_or_default();
            let count = reader.read(some).map_err(TarError::from)?;
            file.write_all(some.get(..count).unwrap_or_default()).map_err(LayerError::at(b""))?;
            left -= count as u64;
            written += count as u64;
        }
    }
    Ok(written)
}

/// The list that stands before the contents: a count, then offsets and lengths, a line each, filled up to a block.
fn listed_parts(reader: &mut TarReader<'_>, size: u64) -> Result<Vec<(u64, u64)>, LayerError> {
    let mut lines = Lines { block: [0; 512], at: 512 };
    let count = lines.number(reader)?;
    if count > MAX_NUMBERS / 2 {
        return Err(LayerError::refused("a file with more holes than can be"));
    }
    let mut numbers = Vec::new();
    for _ in 0..count * 2 {
        numbers.push(lines.number(reader)?);
    }
    let parts = parts(&numbers)?;
    check_parts(&parts, size, reader.left())?;
    Ok(parts)
}

struct Lines {
    block: [u8; 512],
    at: usize,
}

impl Lines {
    fn number(&mut self, reader: &mut TarReader<'_>) -> Result<u64, LayerError> {
        let broken = || LayerError::refused("a map of holes is broken");
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
