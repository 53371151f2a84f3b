//! Reads the table that registers modules with the runtime (`.nvFatBinSegment`), which shows the device-linked ones.
//!
//! An entry has 24 bytes: a magic number, a version, the address of a module and a second address. Version 1 is a module as
//! written by the compiler. Version 2 was created by the device linker; its second address points to its parts, which the
//! driver can link again. A library may have both, for example if it includes a static NCCL.

use std::collections::BTreeSet;

use object::Endianness;
use object::elf;
use object::read::elf::{ElfFile64, Rela, SectionHeader};

use crate::bytes::{u32_at, u64_at};
use crate::container::Module;

const SEGMENT: &[u8] = b".nvFatBinSegment";
const MAGIC: u32 = 0x4662_43B1;
const LINKED: u32 = 2;
const ENTRY: usize = 24;

/// Marks the modules of the device linker. Without a table, as in a file with renamed sections, all count as linked, because
/// the file contains parts.
pub(crate) fn mark_linked(file: &ElfFile64<'_, Endianness>, bytes: &[u8], modules: &mut [Module]) {
    let linked = linked_addresses(file, bytes);
    let endian = file.endian();
    let sections = file.elf_section_table();
    for module in modules {
        module.device_linked = match &linked {
            None => true,
            Some(addresses) => sections.iter().any(|section| {
                let (start, size) = (section.sh_offset(endian), section.sh_size(endian));
                let inside = section.sh_type(endian) == elf::SHT_PROGBITS
                    && module.offset.checked_sub(start).is_some_and(|offset| offset < size);
                inside && addresses.contains(&section.sh_addr(endian).wrapping_add(module.offset - start))
            }),
        };
    }
}

/// The addresses of linked modules; none if there is no table.
fn linked_addresses(file: &ElfFile64<'_, Endianness>, bytes: &[u8]) -> Option<BTreeSet<u64>> {
    let endian = file.endian();
    let (_, section) = file.elf_section_table().section_by_name(endian, SEGMENT)?;
    let table = section.data(endian, bytes).ok()?;
    let address = section.sh_addr(endian);
    let mut found = BTreeSet::new();
    let mut open = BTreeSet::new();
    for (index, entry) in table.chunks_exact(ENTRY).enumerate() {
        if u32_at(entry, 0) != Some(MAGIC) || u32_at(entry, 4) != Some(LINKED) {
            continue;
        }
        match u64_at(entry, 8) {
            Some(0) | None => open.insert(address.wrapping_add((index * ENTRY) as u64 + 8)),
            Some(module) => found.insert(module),
        };
    }
    // Some linkers write the address only to the relocation.
    if !open.is_empty() {
        found.extend(relocated(file, bytes, &open));
    }
    Some(found)
}

/// The values that relocations write to these addresses.
fn relocated(file: &ElfFile64<'_, Endianness>, bytes: &[u8], addresses: &BTreeSet<u64>) -> Vec<u64> {
    let endian = file.endian();
    let sections = file.elf_section_table();
    let tables = sections.iter().filter_map(|section| section.rela(endian, bytes).ok().flatten());
    tables
        .flat_map(|(entries, _)| entries)
        .filter(|entry| addresses.contains(&entry.r_offset(endian)))
        .filter_map(|entry| u64::try_from(entry.r_addend(endian)).ok())
        .collect()
}
