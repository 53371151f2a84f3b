//! The host side of an ELF file: where data lies, and what the dynamic loader is told.

use std::collections::BTreeMap;

use object::elf;
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader, SectionHeader};
use object::{Endianness, ReadRef};

use crate::find::Stretch;

/// What the dynamic loader is told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Linkage {
    /// The name the library is known by.
    pub soname: Option<String>,
    /// Libraries it needs.
    pub needed: Vec<String>,
    /// Where it looks for them first (`DT_RPATH`).
    pub rpath: Option<String>,
    /// Where it looks for them after `LD_LIBRARY_PATH` (`DT_RUNPATH`).
    pub runpath: Option<String>,
    /// Versions of symbols it needs.
    pub versions: Vec<VersionNeed>,
    /// Versions of symbols it has, such as `GLIBC_2.28` in libc.so.6.
    pub defines: Vec<String>,
    /// The loader that starts it: only programs name one.
    pub interpreter: Option<String>,
    /// ELF's number of the processor: 62 is `x86_64`, 183 is aarch64; 0 where there is no ELF file.
    pub machine: u16,
}

/// A version that a library must have, such as `GLIBC_2.28` of libc.so.6.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct VersionNeed {
    /// libc.so.6
    pub library: String,
    /// `GLIBC_2.28`
    pub version: String,
}

impl Linkage {
    /// The newest glibc that is needed, such as 2.28.
    pub fn glibc(&self) -> Option<String> {
        let versions = self.versions.iter().filter_map(|need| need.version.strip_prefix("GLIBC_"));
        let number =
            |text: &str| -> Option<Vec<u32>> { text.split('.').map(|part| part.parse().ok()).collect() };
        versions.filter_map(|text| Some((number(text)?, text))).max().map(|(_, text)| text.to_owned())
    }
}

type File<'a> = ElfFile64<'a, Endianness>;

/// The stretches of an ELF file that may hold containers: data that is loaded, and is not executed.
///
/// `__nv_relfatbin` of a linked file is what the linker was given, not what will be loaded: it counts only where
/// there is no `.nv_fatbin`.
pub(crate) fn stretches<'a>(file: &File<'a>, bytes: &'a [u8], base: u64) -> Vec<Stretch<'a>> {
    let endian = file.endian();
    let sections = file.elf_section_table();
    let mut stretches = Vec::new();
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
        // Sections of an object file have the address 0; containers are aligned in them all the same.
        let address = section.sh_addr(endian);
        stretches.push(Stretch {
            section: name,
            offset: base + start,
            address,
            bytes: data,
            only_containers,
        });
    }
    if stretches.is_empty() && sections.is_empty() {
        return segments(file, bytes, base);
    }
    if linked {
        stretches.retain(|stretch| stretch.section != RELOCATABLE);
    }
    stretches
}

/// What a linked file was linked from.
const RELOCATABLE: &str = "__nv_relfatbin";

/// The stretch with what the device linker was given, in a file that is linked.
pub(crate) fn relocatable<'a>(file: &File<'a>, bytes: &'a [u8]) -> Option<Stretch<'a>> {
    let endian = file.endian();
    let sections = file.elf_section_table();
    sections.section_by_name(endian, b".nv_fatbin")?;
    let (_, section) = sections.section_by_name(endian, RELOCATABLE.as_bytes())?;
    Some(Stretch {
        section: RELOCATABLE.to_owned(),
        offset: section.sh_offset(endian),
        address: section.sh_addr(endian),
        bytes: section.data(endian, bytes).ok()?,
        only_containers: true,
    })
}

/// A file without sections still says which bytes are loaded.
fn segments<'a>(file: &File<'a>, bytes: &'a [u8], base: u64) -> Vec<Stretch<'a>> {
    let endian = file.endian();
    let loaded = file.elf_program_headers().iter().filter(|segment| {
        segment.p_type(endian) == elf::PT_LOAD && segment.p_flags(endian).0 & elf::PF_X.0 == 0
    });
    loaded
        .filter_map(|segment| {
            let (start, size) = (segment.p_offset(endian), segment.p_filesz(endian));
            Some(Stretch {
                section: "segment".to_owned(),
                offset: base + start,
                address: segment.p_vaddr(endian),
                bytes: bytes.read_bytes_at(start, size).ok()?,
                only_containers: false,
            })
        })
        .collect()
}

/// A section of an ELF file, by its name.
pub fn section<'a>(bytes: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let file = File::parse(bytes).ok()?;
    let (_, section) = file.elf_section_table().section_by_name(file.endian(), name.as_bytes())?;
    section.data(file.endian(), bytes).ok()
}

/// The sections of an ELF file whose names begin so: lld splits `.rodata` into `.rodata.str1.1` and more.
pub fn sections<'a>(bytes: &'a [u8], prefix: &str) -> Vec<&'a [u8]> {
    let Ok(file) = File::parse(bytes) else { return Vec::new() };
    let (endian, table) = (file.endian(), file.elf_section_table());
    let named = table.iter().filter(|section| {
        table.section_name(endian, section).is_ok_and(|name| name.starts_with(prefix.as_bytes()))
    });
    named.filter_map(|section| section.data(endian, bytes).ok()).collect()
}

/// What the dynamic section says; empty where there is none.
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
    let mut linkage = Linkage::default();
    let mut values = BTreeMap::new();
    for entry in dynamic {
        let tag = entry.d_tag(endian).0;
        if tag == elf::DT_NULL.0 {
            break;
        }
        values.entry(tag).or_insert_with(|| entry.d_val(endian));
    }
    // Addresses are those of memory; what lies there is found through the segments.
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
    linkage.soname = single(elf::DT_SONAME);
    linkage.rpath = single(elf::DT_RPATH);
    linkage.runpath = single(elf::DT_RUNPATH);
    let needed = dynamic.iter().take_while(|entry| entry.d_tag(endian) != elf::DT_NULL);
    linkage.needed = needed
        .filter(|entry| entry.d_tag(endian) == elf::DT_NEEDED)
        .filter_map(|entry| text(entry.d_val(endian)))
        .collect();
    if let (Some(address), Some(count)) = (values.get(&elf::DT_VERNEED.0), values.get(&elf::DT_VERNEEDNUM.0))
    {
        linkage.versions = version_needs(&at, *address, *count, &text);
    }
    if let (Some(address), Some(count)) = (values.get(&elf::DT_VERDEF.0), values.get(&elf::DT_VERDEFNUM.0)) {
        linkage.defines = version_definitions(&at, *address, *count, &text);
    }
    Some(linkage)
}

/// Walks the list of needed versions: libraries, each with its versions, chained by offsets.
fn version_needs<'a>(
    at: &dyn Fn(u64, u64) -> Option<&'a [u8]>,
    address: u64,
    count: u64,
    text: &dyn Fn(u64) -> Option<String>,
) -> Vec<VersionNeed> {
    use crate::bytes::{u16_at, u32_at};
    let mut versions = Vec::new();
    let mut library_at = address;
    // Chains that lead back would never end; no library needs this many.
    for _ in 0..count.min(4096) {
        let Some(need) = at(library_at, 16) else { break };
        let (Some(entries), Some(file), Some(first), Some(next)) =
            (u16_at(need, 2), u32_at(need, 4), u32_at(need, 8), u32_at(need, 12))
        else {
            break;
        };
        let library = text(u64::from(file)).unwrap_or_default();
        let mut version_at = library_at.wrapping_add(u64::from(first));
        for _ in 0..entries {
            let Some(entry) = at(version_at, 16) else { break };
            let (Some(name), Some(next)) = (u32_at(entry, 8), u32_at(entry, 12)) else { break };
            if let Some(version) = text(u64::from(name)) {
                versions.push(VersionNeed { library: library.clone(), version });
            }
            if next == 0 {
                break;
            }
            version_at = version_at.wrapping_add(u64::from(next));
        }
        if next == 0 {
            break;
        }
        library_at = library_at.wrapping_add(u64::from(next));
    }
    versions.sort();
    versions.dedup();
    versions
}

/// Walks the list of versions a library has; the first of each chain is its name.
fn version_definitions<'a>(
    at: &dyn Fn(u64, u64) -> Option<&'a [u8]>,
    address: u64,
    count: u64,
    text: &dyn Fn(u64) -> Option<String>,
) -> Vec<String> {
    use crate::bytes::u32_at;
    let mut definitions = Vec::new();
    let mut definition_at = address;
    for _ in 0..count.min(4096) {
        let Some(definition) = at(definition_at, 20) else { break };
        let (Some(names), Some(next)) = (u32_at(definition, 12), u32_at(definition, 16)) else { break };
        let name = at(definition_at.wrapping_add(u64::from(names)), 8).and_then(|entry| u32_at(entry, 0));
        definitions.extend(name.and_then(|name| text(u64::from(name))));
        if next == 0 {
            break;
        }
        definition_at = definition_at.wrapping_add(u64::from(next));
    }
    definitions
}
