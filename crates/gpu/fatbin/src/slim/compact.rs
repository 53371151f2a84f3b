//! Makes a slimmed file shorter.
//!
//! Zeroed pages are removed from the file without changing any address: a loaded segment with a hole becomes two segments,
//! the first of which is longer in memory than in the file, so that the loader fills the hole with zeros. All pointers are
//! addresses and stay valid. Only the tables with file offsets are rewritten, at the end of the file: program headers and
//! section headers.

use std::io::{self, Seek, SeekFrom, Write};
use std::ops::Range;

use object::read::elf::{ElfFile64, FileHeader};
use object::{Endianness, elf};

use super::Patch;
use super::copy::{apply, copy};
use crate::bytes::{u16_at, u32_at, u64_at};

const PAGE: u64 = 4096;
/// A smaller hole is not worth a segment.
const MIN_HOLE: u64 = 4 * PAGE;
/// The limit of program headers; far more than any library has.
const MAX_SEGMENTS: usize = 60_000;

const SEGMENT_HEADER: usize = 56;
const SECTION_HEADER: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot compact this file: {reason}")]
pub struct CompactError {
    pub reason: String,
}

fn compact_error(reason: impl Into<String>) -> CompactError {
    CompactError { reason: reason.into() }
}

/// A program header.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Segment {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    physical: u64,
    file_size: u64,
    memory_size: u64,
    align: u64,
}

impl Segment {
    fn parse(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            kind: u32_at(bytes, 0)?,
            flags: u32_at(bytes, 4)?,
            offset: u64_at(bytes, 8)?,
            address: u64_at(bytes, 16)?,
            physical: u64_at(bytes, 24)?,
            file_size: u64_at(bytes, 32)?,
            memory_size: u64_at(bytes, 40)?,
            align: u64_at(bytes, 48)?,
        })
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(SEGMENT_HEADER);
        bytes.extend(self.kind.to_le_bytes());
        bytes.extend(self.flags.to_le_bytes());
        for number in [self.offset, self.address, self.physical, self.file_size, self.memory_size, self.align]
        {
            bytes.extend(number.to_le_bytes());
        }
        bytes
    }
}

/// The new file: the ranges of the old file to keep, and the new tables.
#[derive(Debug)]
pub(super) struct Layout {
    /// Ranges of the old file and their new offsets.
    pieces: Vec<(Range<u64>, u64)>,
    header: Vec<u8>,
    segments: Vec<u8>,
    segments_at: u64,
    sections: Vec<u8>,
    sections_at: u64,
}

impl Layout {
    /// The length of the new file.
    pub(super) fn length(&self) -> u64 {
        self.sections_at + self.sections.len() as u64
    }

    pub(super) fn write(
        &self,
        bytes: &[u8],
        patches: &[Patch],
        file: &mut (impl Write + Seek),
    ) -> io::Result<u64> {
        let mut written = 0;
        for (range, to) in &self.pieces {
            written += copy(bytes, patches, range.clone(), *to, file)?;
        }
        for (at, table) in
            [(0, &self.header), (self.segments_at, &self.segments), (self.sections_at, &self.sections)]
        {
            file.seek(SeekFrom::Start(at))?;
            file.write_all(table)?;
        }
        Ok(written + (self.segments.len() + self.sections.len()) as u64)
    }

    /// The new offset of an old offset; none if it was removed.
    fn moved(&self, offset: u64) -> Option<u64> {
        let index = self.pieces.partition_point(|(range, _)| range.end <= offset);
        let (range, to) = self.pieces.get(index)?;
        (range.start <= offset).then(|| to + (offset - range.start))
    }
}

pub(super) fn layout(bytes: &[u8], patches: &[Patch]) -> Result<Layout, CompactError> {
    let file = ElfFile64::<Endianness>::parse(bytes).map_err(|_| compact_error("not a shared library"))?;
    let header = file.elf_header();
    let endian = file.endian();
    if endian != Endianness::Little {
        return Err(compact_error("big-endian files are not supported"));
    }
    if header.e_type(endian) != elf::ET_DYN {
        return Err(compact_error("not a shared library"));
    }
    let table = |offset_at: usize, size_at: usize, count_at: usize, entry: usize| -> Option<&[u8]> {
        let (offset, size, count) =
            (u64_at(bytes, offset_at)?, u16_at(bytes, size_at)?, u16_at(bytes, count_at)?);
        let start = usize::try_from(offset).ok()?;
        (usize::from(size) == entry)
            .then(|| bytes.get(start..start.checked_add(usize::from(count) * entry)?))?
    };
    let segments =
        table(32, 54, 56, SEGMENT_HEADER).ok_or_else(|| compact_error("invalid program headers"))?;
    let segments: Option<Vec<Segment>> = segments.chunks_exact(SEGMENT_HEADER).map(Segment::parse).collect();
    let segments = segments.ok_or_else(|| compact_error("truncated program headers"))?;
    let sections =
        table(40, 58, 60, SECTION_HEADER).ok_or_else(|| compact_error("invalid section headers"))?;
    // The headers of a program are found through memory, so they cannot be moved to the end of the file.
    if segments.iter().any(|segment| segment.kind == elf::PT_INTERP.0) {
        return Err(compact_error("it is an executable, not a library"));
    }
    check_end(bytes, &segments, sections)?;

    let is_loaded = |segment: &&Segment| segment.kind == elf::PT_LOAD.0 && segment.file_size > 0;
    let holes = holes(bytes, patches, &segments.iter().filter(is_loaded).cloned().collect::<Vec<_>>());
    if holes.len() + segments.len() > MAX_SEGMENTS {
        return Err(compact_error("too many segments"));
    }
    build(bytes, &segments, sections, &holes)
}

/// Data after the tables and segments is unknown, such as a signature or an appended archive.
fn check_end(bytes: &[u8], segments: &[Segment], sections: &[u8]) -> Result<(), CompactError> {
    let length = bytes.len() as u64;
    let of_segments = segments.iter().map(|segment| segment.offset.saturating_add(segment.file_size));
    let of_sections = sections.chunks_exact(SECTION_HEADER).filter_map(|section| {
        // NOBITS sections take no space in the file.
        (u32_at(section, 4)? != elf::SHT_NOBITS.0).then_some(())?;
        u64_at(section, 24)?.checked_add(u64_at(section, 32)?)
    });
    let tables = [
        u64_at(bytes, 32).unwrap_or(0) + (segments.len() * SEGMENT_HEADER) as u64,
        u64_at(bytes, 40).unwrap_or(0) + sections.len() as u64,
    ];
    let end = of_segments.chain(of_sections).chain(tables).max().unwrap_or(0);
    if end > length {
        return Err(compact_error("the file is truncated"));
    }
    // Linkers pad to eight bytes, some tools to sixteen.
    if length - end >= 16 {
        return Err(compact_error(format!("{} bytes after its end, perhaps a signature", length - end)));
    }
    Ok(())
}

/// File ranges of whole zero pages in loaded segments that were zeroed by patches.
fn holes(bytes: &[u8], patches: &[Patch], load_segments: &[Segment]) -> Vec<Range<u64>> {
    let mut holes: Vec<Range<u64>> = Vec::new();
    for patch in patches.iter().filter(|patch| patch.zeros > 0) {
        let (from, to) = (patch.offset + patch.bytes.len() as u64, patch.end());
        let load =
            load_segments.iter().find(|load| load.offset <= from && to <= load.offset + load.file_size);
        let Some(load) = load else { continue };
        // Pages are those in memory; offset and address are equal modulo the page size.
        let shift = load.address.wrapping_sub(load.offset);
        let first = from.wrapping_add(shift).next_multiple_of(PAGE).wrapping_sub(shift);
        let last = (to.wrapping_add(shift) / PAGE * PAGE).wrapping_sub(shift);
        if last > first {
            match holes.last_mut() {
                // Padding between two patches may have been zero before.
                Some(before)
                    if before.end <= first
                        && is_zero(bytes, patches, before.end..first)
                        && same(load_segments, before.start, first) =>
                {
                    before.end = last;
                }
                _ => holes.push(first..last),
            }
        }
    }
    holes.retain(|hole| hole.end - hole.start >= MIN_HOLE);
    holes
}

fn same(load_segments: &[Segment], one: u64, other: u64) -> bool {
    let of = |offset: u64| {
        load_segments.iter().position(|load| load.offset <= offset && offset < load.offset + load.file_size)
    };
    of(one) == of(other)
}

fn is_zero(bytes: &[u8], patches: &[Patch], range: Range<u64>) -> bool {
    if range.end - range.start > 64 * PAGE {
        return false;
    }
    let part = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
    let Some(part) = part.and_then(|(start, end)| bytes.get(start..end)) else { return false };
    let mut part = part.to_vec();
    apply(patches, range.start, &mut part);
    part.iter().all(|byte| *byte == 0)
}

fn build(
    bytes: &[u8],
    segments: &[Segment],
    sections: &[u8],
    holes: &[Range<u64>],
) -> Result<Layout, CompactError> {
    // Move the remaining ranges together. Each keeps its offset within a page, so that it can be mapped.
    let mut pieces: Vec<(Range<u64>, u64)> = Vec::new();
    let (mut from, mut to) = (0, 0);
    for hole in holes {
        pieces.push((from..hole.start, to));
        to += hole.start - from;
        to = to.next_multiple_of(PAGE) + hole.end % PAGE;
        from = hole.end;
    }
    let end = bytes.len() as u64;
    pieces.push((from..end, to));
    let segments_at = (to + end - from).next_multiple_of(8);
    let mut layout = Layout {
        pieces,
        header: bytes.get(..64).unwrap_or_default().to_vec(),
        segments: Vec::new(),
        segments_at,
        sections: Vec::new(),
        sections_at: 0,
    };
    let mut count = 0_u64;
    for segment in segments {
        for part in split(segment, holes, &layout)? {
            layout.segments.extend(part.bytes());
            count += 1;
        }
    }
    layout.sections_at = (segments_at + layout.segments.len() as u64).next_multiple_of(8);
    layout.sections = split_sections(sections, holes, &layout)?;
    let section_count = (layout.sections.len() / SECTION_HEADER) as u64;
    let fields: [(usize, u64, usize); 4] =
        [(32, segments_at, 8), (40, layout.sections_at, 8), (56, count, 2), (60, section_count, 2)];
    for (at, value, size) in fields {
        if size == 2 && value >= 0xff00 {
            return Err(compact_error("too many headers"));
        }
        if let (Some(field), Some(value)) =
            (layout.header.get_mut(at..at + size), value.to_le_bytes().get(..size))
        {
            field.copy_from_slice(value);
        }
    }
    Ok(layout)
}

/// Splits a segment at its holes: each part except the last is longer in memory by the following hole.
fn split(segment: &Segment, holes: &[Range<u64>], layout: &Layout) -> Result<Vec<Segment>, CompactError> {
    let gone = || compact_error("a segment starts in removed code");
    if segment.kind == elf::PT_PHDR.0 {
        // Not used in a library, and it would be wrong, so it becomes a null entry.
        let kind = elf::PT_NULL.0;
        return Ok(vec![Segment { kind, offset: 0, file_size: 0, memory_size: 0, ..segment.clone() }]);
    }
    let range = segment.offset..segment.offset.saturating_add(segment.file_size);
    let inside: Vec<&Range<u64>> =
        holes.iter().filter(|hole| range.start <= hole.start && hole.end <= range.end).collect();
    if segment.kind != elf::PT_LOAD.0 || inside.is_empty() {
        if segment.file_size == 0 {
            let offset = layout.moved(segment.offset).unwrap_or(segment.offset);
            return Ok(vec![Segment { offset, ..segment.clone() }]);
        }
        if !inside.is_empty() {
            return Err(compact_error("removed code is in a segment that is not loaded"));
        }
        let offset = layout.moved(segment.offset).ok_or_else(gone)?;
        let modulus = segment.align.max(1);
        let misaligned = segment.kind == elf::PT_LOAD.0 && offset % modulus != segment.address % modulus;
        let align = if misaligned { PAGE } else { segment.align };
        return Ok(vec![Segment { offset, align, ..segment.clone() }]);
    }
    let mut parts = Vec::new();
    let mut from = range.start;
    for (index, hole) in inside.iter().chain([&&(range.end..range.end)]).enumerate() {
        let last = index == inside.len();
        let part = Segment {
            offset: layout.moved(from).or_else(|| last.then_some(layout.segments_at)).ok_or_else(gone)?,
            address: segment.address + (from - range.start),
            physical: segment.physical + (from - range.start),
            file_size: hole.start - from,
            memory_size: if last { segment.memory_size - (from - range.start) } else { hole.end - from },
            align: PAGE,
            ..segment.clone()
        };
        if part.memory_size > 0 {
            parts.push(part);
        }
        from = hole.end;
    }
    Ok(parts)
}

/// Section headers with new offsets. A section with holes keeps its index for its first part; the other parts are added at
/// the end, because symbols refer to sections by index.
fn split_sections(sections: &[u8], holes: &[Range<u64>], layout: &Layout) -> Result<Vec<u8>, CompactError> {
    let mut table = Vec::new();
    let mut added = Vec::new();
    for section in sections.chunks_exact(SECTION_HEADER) {
        let (Some(kind), Some(offset), Some(size)) =
            (u32_at(section, 4), u64_at(section, 24), u64_at(section, 32))
        else {
            return Err(compact_error("truncated section headers"));
        };
        let end = offset.saturating_add(size);
        let inside: Vec<&Range<u64>> = if kind == elf::SHT_NOBITS.0 || kind == elf::SHT_NULL.0 {
            Vec::new()
        } else {
            holes.iter().filter(|hole| hole.start < end && offset < hole.end).collect()
        };
        let address = u64_at(section, 16).unwrap_or(0);
        let part = |from: u64, to: u64| -> Vec<u8> {
            let mut part = section.to_vec();
            let new_offset = layout.moved(from).unwrap_or(offset);
            let address = if address == 0 { 0 } else { address + (from - offset) };
            for (at, value) in [(16, address), (24, new_offset), (32, to - from)] {
                if let Some(field) = part.get_mut(at..at + 8) {
                    field.copy_from_slice(&value.to_le_bytes());
                }
            }
            part
        };
        if inside.is_empty() {
            table.extend(if kind == elf::SHT_NULL.0 { section.to_vec() } else { part(offset, end) });
            continue;
        }
        let mut from = offset;
        let mut parts = Vec::new();
        for hole in inside {
            if hole.start > from {
                parts.push(part(from, hole.start));
            }
            from = hole.end;
        }
        if end > from {
            parts.push(part(from, end));
        }
        let mut parts = parts.into_iter();
        // A section that is completely removed stays as an empty one.
        table.extend(parts.next().unwrap_or_else(|| part(offset, offset)));
        added.extend(parts);
    }
    table.extend(added.concat());
    Ok(table)
}
