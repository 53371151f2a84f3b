//! The table that registers modules with the runtime (`.nvFatBinSegment`): it tells which of them the device linker made.
//!
//! An entry has 24 bytes: a magic number, a version, the address of a module and a second address. Version 1 is a module
//! as the compiler wrote it. Version 2 is one that the device linker made; its second address leads to the parts it was
//! made of, which the driver can link again. A library may hold both, as one that embeds a static NCCL does.

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

/// Marks the modules that the device linker made. Without a table, as in a file whose sections were renamed, all count
/// as linked: a file that holds parts was linked from them.
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

/// Where linked modules are loaded; none if there is no table.
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
    // Some linkers write the address into the relocation alone.
    if !open.is_empty() {
        found.extend(relocated(file, bytes, &open));
    }
    Some(found)
}

/// What relocations put into these places.
fn relocated(file: &ElfFile64<'_, Endianness>, bytes: &[u8], places: &BTreeSet<u64>) -> Vec<u64> {
    let endian = file.endian();
    let sections = file.elf_section_table();
    let tables = sections.iter().filter_map(|section| section.rela(endian, bytes).ok().flatten());
    tables
        .flat_map(|(entries, _)| entries)
        .filter(|entry| places.contains(&entry.r_offset(endian)))
        .filter_map(|entry| u64::try_from(entry.r_addend(endian)).ok())
        .collect()
}
