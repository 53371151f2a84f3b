//! The ELF class and SONAME of a library, read from a few pages of it.

use std::fs::File;
use std::os::unix::fs::FileExt;

use serde::Serialize;

const LOAD: u32 = 1;
const DYNAMIC: u32 = 2;
const STRING_TABLE: u64 = 5;
const SONAME: u64 = 14;

/// Maximum number of program headers and dynamic entries that are read.
const MOST_HEADERS: usize = 128;
const MOST_ENTRIES: usize = 1024;
const MAX_SECTIONS: usize = 4096;
const MAX_NAMES: usize = 1 << 20;
const LONGEST_NAME: usize = 256;

/// The ELF class of a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum ElfClass {
    #[serde(rename = "32")]
    Bits32,
    #[serde(rename = "64")]
    Bits64,
}

/// The properties of a library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Elf {
    pub(crate) class: ElfClass,
    pub(crate) soname: Option<String>,
}

/// Reads a library; none if it is not an ELF file of this byte order.
pub(crate) fn read(file: &File) -> Option<Elf> {
    let (head, class) = head(file)?;
    Some(Elf { class, soname: Image { file, class }.soname(&head) })
}

/// A section of a 64-bit library, by its name; none if it is larger than `most`.
pub(crate) fn section(file: &File, name: &str, most: usize) -> Option<Vec<u8>> {
    let (head, class) = head(file)?;
    let image = Image { file, class };
    (class == ElfClass::Bits64).then_some(())?;
    let (table, each) = (number(&head, 40, 8)?, usize::try_from(number(&head, 58, 2)?).ok()?);
    let count = usize::try_from(number(&head, 60, 2)?).ok()?.min(MAX_SECTIONS);
    let names_at = usize::try_from(number(&head, 62, 2)?).ok()?;
    (each >= 64).then_some(())?;
    let headers = image.bytes(table, each * count)?;
    let place = |header: &[u8]| Some((number(header, 24, 8)?, usize::try_from(number(header, 32, 8)?).ok()?));
    let (offset, size) = place(headers.chunks_exact(each).nth(names_at)?)?;
    let names = image.bytes(offset, Some(size).filter(|size| *size <= MAX_NAMES)?)?;
    let is_named = |header: &&[u8]| {
        let start = number(header, 0, 4).and_then(|start| usize::try_from(start).ok());
        let rest = start.and_then(|start| names.get(start..));
        rest.is_some_and(|rest| rest.split(|byte| *byte == 0).next() == Some(name.as_bytes()))
    };
    let (offset, size) = place(headers.chunks_exact(each).find(is_named)?)?;
    image.bytes(offset, Some(size).filter(|size| *size <= most)?)
}

fn head(file: &File) -> Option<(Vec<u8>, ElfClass)> {
    let mut head = vec![0_u8; 64];
    let length = file.read_at(&mut head, 0).ok()?;
    head.truncate(length);
    if head.get(..4)? != b"\x7fELF" {
        return None;
    }
    let class = match (head.get(4)?, head.get(5)?) {
        (1, 1) => ElfClass::Bits32,
        (2, 1) => ElfClass::Bits64,
        _ => return None,
    };
    Some((head, class))
}

struct Image<'a> {
    file: &'a File,
    class: ElfClass,
}

struct Segment {
    kind: u32,
    offset: u64,
    address: u64,
    size: u64,
}

impl Image<'_> {
    fn soname(&self, head: &[u8]) -> Option<String> {
        let wide = self.class == ElfClass::Bits64;
        let table = if wide { number(head, 32, 8)? } else { number(head, 28, 4)? };
        let (each, count) = if wide {
            (number(head, 54, 2)?, number(head, 56, 2)?)
        } else {
            (number(head, 42, 2)?, number(head, 44, 2)?)
        };
        let each = usize::try_from(each).ok().filter(|each| *each >= if wide { 56 } else { 32 })?;
        let count = usize::try_from(count).ok()?.min(MOST_HEADERS);
        let headers = self.bytes(table, each * count)?;
        let segments: Vec<Segment> =
            headers.chunks_exact(each).filter_map(|header| segment(header, wide)).collect();
        let dynamic = segments.iter().find(|segment| segment.kind == DYNAMIC)?;
        let size = if wide { 16 } else { 8 };
        let length = usize::try_from(dynamic.size).ok()?.min(MOST_ENTRIES * size);
        let entries = self.bytes(dynamic.offset, length)?;
        let value = |wanted: u64| {
            entries.chunks_exact(size).find_map(|entry| {
                let tag = number(entry, 0, size / 2)?;
                (tag == wanted).then(|| number(entry, size / 2, size / 2)).flatten()
            })
        };
        let address = value(STRING_TABLE)?.checked_add(value(SONAME)?)?;
        let holds = |segment: &&Segment| {
            let within = address.checked_sub(segment.address);
            segment.kind == LOAD && within.is_some_and(|within| within < segment.size)
        };
        let segment = segments.iter().find(holds)?;
        let offset = address.checked_sub(segment.address)?.checked_add(segment.offset)?;
        let mut name = vec![0_u8; LONGEST_NAME];
        let read = self.file.read_at(&mut name, offset).ok()?;
        let end = name.get(..read)?.iter().position(|byte| *byte == 0)?;
        let name = String::from_utf8(name.get(..end)?.to_vec()).ok()?;
        (!name.is_empty() && !name.contains('/')).then_some(name)
    }

    fn bytes(&self, offset: u64, length: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0_u8; length];
        self.file.read_exact_at(&mut bytes, offset).ok()?;
        Some(bytes)
    }
}

fn segment(header: &[u8], wide: bool) -> Option<Segment> {
    let kind = u32::try_from(number(header, 0, 4)?).ok()?;
    Some(if wide {
        Segment {
            kind,
            offset: number(header, 8, 8)?,
            address: number(header, 16, 8)?,
            size: number(header, 32, 8)?,
        }
    } else {
        Segment {
            kind,
            offset: number(header, 4, 4)?,
            address: number(header, 8, 4)?,
            size: number(header, 16, 4)?,
        }
    })
}

/// A little-endian number of `size` bytes.
fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let part = bytes.get(at..at.checked_add(size)?)?;
    Some(part.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn this_machines_c_library_knows_its_name() {
        let places =
            ["/lib/x86_64-linux-gnu/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6", "/lib64/libc.so.6"];
        let Some(file) = places.iter().find_map(|path| File::open(path).ok()) else {
            cudock_testkit::missing("libc", "no C library at a usual place");
            return;
        };
        let expected = Elf { class: ElfClass::Bits64, soname: Some("libc.so.6".to_owned()) };
        assert_eq!(read(&file), Some(expected));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn no_damage_makes_it_panic(damage in prop::collection::vec((0..4096_usize, any::<u8>()), 1..40)) {
            let mut bytes = vec![0; 65_536];
            let program = File::open("/proc/self/exe").unwrap();
            program.read_exact_at(&mut bytes, 0).unwrap();
            for (at, byte) in damage {
                if let Some(place) = bytes.get_mut(at) {
                    *place = byte;
                }
            }
            let file = tempfile::tempfile().unwrap();
            file.write_all_at(&bytes, 0).unwrap();
            read(&file);
            section(&file, ".note.cuda.fwd_compatibility", 1 << 16);
        }
    }
}
