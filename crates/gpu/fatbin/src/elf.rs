//! Reads the host part of an ELF file: sections and dynamic linking.

use std::collections::BTreeMap;

use object::elf;
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader, SectionHeader};
use object::{Endianness, ReadRef};

use crate::bytes::{u16_at, u32_at};
use crate::find::DataRange;

/// Dynamic linking information.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Linkage {
    pub soname: Option<String>,
    /// Required libraries.
    pub needed: Vec<String>,
    /// `DT_RPATH`, searched first.
    pub rpath: Option<String>,
    /// `DT_RUNPATH`, searched after `LD_LIBRARY_PATH`.
    pub runpath: Option<String>,
    /// Required symbol versions.
    pub versions: Vec<VersionNeed>,
    /// Defined symbol versions, such as `GLIBC_2.28` in libc.so.6.
    pub defines: Vec<String>,
    /// The program interpreter, which only executables have.
    pub interpreter: Option<String>,
    /// The ELF machine: 62 is `x86_64`, 183 is aarch64; 0 if it is not an ELF file.
    pub machine: u16,
}

/// A required symbol version, such as `GLIBC_2.28` of libc.so.6.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct VersionNeed {
    pub library: String,
    pub version: String,
}

impl Linkage {
    /// The newest required glibc version, such as 2.28.
    pub fn glibc(&self) -> Option<String> {
        let versions = self.versions.iter().filter_map(|need| need.version.strip_prefix("GLIBC_"));
        let number =
            |text: &str| -> Option<Vec<u32>> { text.split('.').map(|part| part.parse().ok()).collect() };
        versions.filter_map(|text| Some((number(text)?, text))).max().map(|(_, text)| text.to_owned())
    }
}

type File<'a> = ElfFile64<'a, Endianness>;

/// The ranges of an ELF file that may contain containers: loaded data that is not executable.
///
/// `__nv_relfatbin` of a linked file is the input of the device linker, not what is loaded: it is only used if there is no
/// `.nv_fatbin`.
pub(crate) fn data_ranges<'a>(file: &File<'a>, bytes: &'a [u8], base: u64) -> Vec<DataRange<'a>> {
    let endian = file.endian();
    let sections = file.elf_section_table();
    let mut data_ranges = Vec::new();
    let mut linked = false;
    for section in sections.iter() {
        if section.sh_type(endian) != elf::SHT_PROGBITS {
            continue;
        }
        let name = sections.section_name(endian, section).unwrap_or_default();
        let name = String::from_utf8_lossy(name).into_owned();
        let flags = section.sh_flags(endian).0;
        let loaded = flags & elf::SHF_ALLOC.0 != 0 && flags & elf::SHF_EXECINSTR.0 == 0;
        let only_containers = matches!(name.as_str(), ".nv_fatbin" | RELOCATABLE);
        if !loaded && !only_containers {
            continue;
        }
        linked |= name == ".nv_fatbin";
        let (start, size) = (section.sh_offset(endian), section.sh_size(endian));
        let Ok(data) = bytes.read_bytes_at(start, size) else { continue };
        // Sections of an object file have the address 0; containers are still aligned in them.
        let address = section.sh_addr(endian);
        data_ranges.push(DataRange {
            section: name,
            offset: base + start,
            address,
            bytes: data,
            only_containers,
        });
    }
    if data_ranges.is_empty() && sections.is_empty() {
        return segments(file, bytes, base);
    }
    if linked {
        data_ranges.retain(|range| range.section != RELOCATABLE);
    }
    data_ranges
}

/// The section with the input of the device linker.
const RELOCATABLE: &str = "__nv_relfatbin";

/// The input of the device linker in a linked file.
pub(crate) fn relocatable<'a>(file: &File<'a>, bytes: &'a [u8]) -> Option<DataRange<'a>> {
    let endian = file.endian();
    let sections = file.elf_section_table();
    sections.section_by_name(endian, b".nv_fatbin")?;
    let (_, section) = sections.section_by_name(endian, RELOCATABLE.as_bytes())?;
    Some(DataRange {
        section: RELOCATABLE.to_owned(),
        offset: section.sh_offset(endian),
        address: section.sh_addr(endian),
        bytes: section.data(endian, bytes).ok()?,
        only_containers: true,
    })
}

/// A file without sections still has segments.
fn segments<'a>(file: &File<'a>, bytes: &'a [u8], base: u64) -> Vec<DataRange<'a>> {
    let endian = file.endian();
    let loaded = file.elf_program_headers().iter().filter(|segment| {
        segment.p_type(endian) == elf::PT_LOAD && segment.p_flags(endian).0 & elf::PF_X.0 == 0
    });
    let range = |segment: &elf::ProgramHeader64<Endianness>| {
        let (start, size) = (segment.p_offset(endian), segment.p_filesz(endian));
        Some(DataRange {
            section: "segment".to_owned(),
            offset: base + start,
            address: segment.p_vaddr(endian),
            bytes: bytes.read_bytes_at(start, size).ok()?,
            only_containers: false,
        })
    };
    loaded.filter_map(range).collect()
}

pub fn section<'a>(bytes: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let file = File::parse(bytes).ok()?;
    let (_, section) = file.elf_section_table().section_by_name(file.endian(), name.as_bytes())?;
    section.data(file.endian(), bytes).ok()
}

/// The sections of an ELF file whose names have this prefix: lld splits `.rodata` into `.rodata.str1.1` and others.
pub fn sections<'a>(bytes: &'a [u8], prefix: &str) -> Vec<&'a [u8]> {
    let Ok(file) = File::parse(bytes) else { return Vec::new() };
    let (endian, table) = (file.endian(), file.elf_section_table());
    let named = table.iter().filter(|section| {
        table.section_name(endian, section).is_ok_and(|name| name.starts_with(prefix.as_bytes()))
    });
    named.filter_map(|section| section.data(endian, bytes).ok()).collect()
}

/// The dynamic linking information of an ELF file, without a search for GPU code; none if it is not a 64-bit ELF file.
pub fn dynamic_linkage(bytes: &[u8]) -> Option<Linkage> {
    Some(linkage(&File::parse(bytes).ok()?, bytes))
}

/// Reads the dynamic section; empty if there is none.
pub(crate) fn linkage(file: &File<'_>, bytes: &[u8]) -> Linkage {
    let endian = file.endian();
    let mut segments = file.elf_program_headers().iter();
    let interpreter = segments.find_map(|segment| segment.interpreter(endian, bytes).ok().flatten());
    Linkage {
        machine: file.elf_header().e_machine(endian).0,
        interpreter: interpreter.map(|path| String::from_utf8_lossy(path).into_owned()),
        ..read_linkage(file, bytes).unwrap_or_default()
    }
}

fn read_linkage(file: &File<'_>, bytes: &[u8]) -> Option<Linkage> {
    let endian = file.endian();
    let header = file.elf_header();
    let segments = header.program_headers(endian, bytes).ok()?;
    let dynamic = segments.iter().find_map(|segment| segment.dynamic(endian, bytes).ok().flatten())?;
    let mut values = BTreeMap::new();
    for entry in dynamic {
        let tag = entry.d_tag(endian).0;
        if tag == elf::DT_NULL.0 {
            break;
        }
        values.entry(tag).or_insert_with(|| entry.d_val(endian));
    }
    // Addresses are resolved through the segments.
    let at = |address: u64, size: u64| -> Option<&[u8]> {
        segments.iter().find_map(|segment| segment.data_range(endian, bytes, address, size).ok().flatten())
    };
    let strings = at(*values.get(&elf::DT_STRTAB.0)?, *values.get(&elf::DT_STRSZ.0)?)?;
    let text = |offset: u64| -> Option<String> {
        let rest = strings.get(usize::try_from(offset).ok()?..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        Some(String::from_utf8_lossy(rest.get(..end)?).into_owned())
    };
    let single = |tag: elf::DynamicTag| values.get(&tag.0).and_then(|offset| text(*offset));
    let needed = dynamic.iter().take_while(|entry| entry.d_tag(endian) != elf::DT_NULL);
    let needed = needed.filter(|entry| entry.d_tag(endian) == elf::DT_NEEDED);
    // A list without its address or its count is empty.
    let list = |address: elf::DynamicTag, count: elf::DynamicTag| {
        let both = values.get(&address.0).zip(values.get(&count.0));
        both.map_or((0, 0), |(address, count)| (*address, (*count).min(MAX_VERSIONS)))
    };
    Some(Linkage {
        soname: single(elf::DT_SONAME),
        rpath: single(elf::DT_RPATH),
        runpath: single(elf::DT_RUNPATH),
        needed: needed.filter_map(|entry| text(entry.d_val(endian))).collect(),
        versions: version_needs(&at, list(elf::DT_VERNEED, elf::DT_VERNEEDNUM), &text),
        defines: version_definitions(&at, list(elf::DT_VERDEF, elf::DT_VERDEFNUM), &text),
        ..Linkage::default()
    })
}

/// Reads the list of required versions: libraries, each with a linked list of versions.
fn version_needs<'a>(
    at: &dyn Fn(u64, u64) -> Option<&'a [u8]>,
    (address, count): (u64, u64),
    text: &dyn Fn(u64) -> Option<String>,
) -> Vec<VersionNeed> {
    let mut versions = Vec::new();
    for (library_at, need) in linked_list(at, address, count, 16) {
        let (Some(entries), Some(file), Some(first)) = (u16_at(need, 2), u32_at(need, 4), u32_at(need, 8))
        else {
            break;
        };
        let library = text(u64::from(file)).unwrap_or_default();
        let first = library_at.wrapping_add(u64::from(first));
        for (_, entry) in linked_list(at, first, u64::from(entries), 16) {
            let version = u32_at(entry, 8).and_then(|name| text(u64::from(name)));
            versions.extend(version.map(|version| VersionNeed { library: library.clone(), version }));
        }
    }
    versions.sort();
    versions.dedup();
    versions
}

/// Reads the list of defined versions; the first entry of each is its name.
fn version_definitions<'a>(
    at: &dyn Fn(u64, u64) -> Option<&'a [u8]>,
    (address, count): (u64, u64),
    text: &dyn Fn(u64) -> Option<String>,
) -> Vec<String> {
    let name = |(definition_at, definition): (u64, &[u8])| {
        let entry = at(definition_at.wrapping_add(u64::from(u32_at(definition, 12)?)), 8)?;
        text(u64::from(u32_at(entry, 0)?))
    };
    linked_list(at, address, count, 20).filter_map(name).collect()
}

/// A cyclic list would never end; no library needs this many.
const MAX_VERSIONS: u64 = 4096;

/// The addresses and entries of a linked list. The last field of an entry is the distance to the next, zero in the last one.
fn linked_list<'a>(
    at: &dyn Fn(u64, u64) -> Option<&'a [u8]>,
    start: u64,
    count: u64,
    size: u64,
) -> impl Iterator<Item = (u64, &'a [u8])> {
    let mut following = Some(start);
    (0..count).map_while(move |_| {
        let address = following?;
        let entry = at(address, size)?;
        let next = u32_at(entry, entry.len().checked_sub(4)?)?;
        following = (next != 0).then(|| address.wrapping_add(u64::from(next)));
        Some((address, entry))
    })
}
