//! Parses cubins, which are ELF files with SASS.

use object::read::elf::{ElfFile64, FileHeader, SectionHeader};
use object::{Endianness, elf};

use cudock_facts::version::{Capability, SmArch, Variant};

use crate::bytes::{u16_at, u32_at};

/// A cubin, from its section headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cubin {
    /// The architecture; does not distinguish `f` from plain.
    pub arch: SmArch,
    /// Its kernels and device functions.
    pub kernels: Vec<Kernel>,
    /// The toolkit that created it, such as (13, 4), if known.
    pub toolkit: Option<(u8, u8)>,
}

/// A kernel or a separate device function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// The mangled name.
    pub name: String,
    /// Registers per thread.
    pub registers: u32,
    /// Static shared memory in bytes.
    pub shared: u64,
    /// Parameters and compiler constants (bank 0) in bytes.
    pub constant: u64,
    pub code: u64,
}

/// `e_machine` of a cubin.
const EM_CUDA: u16 = 190;

impl Cubin {
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let file = ElfFile64::<Endianness>::parse(bytes).ok()?;
        let endian = file.endian();
        let header = file.elf_header();
        if header.e_machine(endian).0 != EM_CUDA {
            return None;
        }
        let flags = header.e_flags(endian).0;
        let sections = file.elf_section_table();
        // The newer format has the number elsewhere, and the `a` in a separate section.
        let newer = header.e_ident().abi_version >= 8;
        let named = |name: &[u8]| {
            let section = sections.section_by_name(endian, name);
            section.and_then(|(_, section)| section.data(endian, bytes).ok()).unwrap_or_default()
        };
        let number = if newer { flags >> 8 & 0xff } else { flags & 0xff };
        let capability = Capability::from_number(u16::try_from(number).ok()?)?;
        let specific = if newer { is_specific(named(b".nv.compat")) } else { flags & 0x800 != 0 };
        let variant = if specific { Variant::Specific } else { Variant::Plain };
        let mut kernels = Vec::new();
        let mut shared = Vec::new();
        let mut constant = Vec::new();
        for section in sections.iter() {
            let Ok(name) = sections.section_name(endian, section) else { continue };
            let name = String::from_utf8_lossy(name);
            let size = section.sh_size(endian);
            if let Some(kernel) = name.strip_prefix(".text.") {
                if section.sh_type(endian) == elf::SHT_PROGBITS {
                    kernels.push(Kernel {
                        name: kernel.to_owned(),
                        registers: section.sh_info(endian) >> 24,
                        shared: 0,
                        constant: 0,
                        code: size,
                    });
                }
            } else if let Some(kernel) = name.strip_prefix(".nv.shared.") {
                shared.push((kernel.to_owned(), size));
            } else if let Some(kernel) = name.strip_prefix(".nv.constant0.") {
                constant.push((kernel.to_owned(), size));
            }
        }
        // Older compilers also write the count to the section header; newer ones only to .nv.info.
        let symbols = file.elf_symbol_table();
        let mut registers: Vec<(String, u64)> = register_counts(named(b".nv.info"))
            .filter_map(|(index, count)| {
                let symbol = symbols.symbol(object::SymbolIndex(index)).ok()?;
                let name = symbols.symbol_name(endian, symbol).ok()?;
                Some((String::from_utf8_lossy(name).into_owned(), u64::from(count)))
            })
            .collect();
        registers.sort();
        shared.sort();
        constant.sort();
        let find = |list: &[(String, u64)], name: &str| {
            let found = list.binary_search_by(|(known, _)| known.as_str().cmp(name)).ok();
            found.and_then(|index| list.get(index)).map_or(0, |(_, size)| *size)
        };
        for kernel in &mut kernels {
            kernel.shared = find(&shared, &kernel.name);
            kernel.constant = find(&constant, &kernel.name);
            kernel.registers =
                kernel.registers.max(u32::try_from(find(&registers, &kernel.name)).unwrap_or(u32::MAX));
        }
        let toolkit = toolkit(named(b".note.nv.cuinfo"));
        Some(Self { arch: SmArch::new(capability, variant), kernels, toolkit })
    }
}

/// Parses `.note.nv.cuinfo`: after the note header a version, the architecture and ten times the toolkit, as u16 each.
fn toolkit(note: &[u8]) -> Option<(u8, u8)> {
    let owner = usize::try_from(u32_at(note, 0)?).ok()?;
    let value = u16_at(note, 12 + owner.checked_next_multiple_of(4).filter(|length| *length < 64)? + 4)?;
    let (major, minor) = (u8::try_from(value / 10).ok()?, u8::try_from(value % 10).ok()?);
    (10..100).contains(&major).then_some((major, minor))
}

/// The records of `.nv.compat` and `.nv.info`: a format, an attribute and a u16 value; in format 4 the value is the length
/// of data that follows.
fn info_records(bytes: &[u8]) -> impl Iterator<Item = (u8, u16, &[u8])> {
    let mut at = 0_usize;
    std::iter::from_fn(move || {
        let &[format, attribute, low, high] = bytes.get(at..at.checked_add(4)?)? else { return None };
        let value = u16::from_le_bytes([low, high]);
        let length = if format == 4 { usize::from(value) } else { 0 };
        let data = bytes.get(at + 4..(at + 4).checked_add(length)?)?;
        at += 4 + length;
        Some((attribute, value, data))
    })
}

/// Whether `.nv.compat` marks the code as specific to one architecture.
fn is_specific(compat: &[u8]) -> bool {
    info_records(compat).any(|(attribute, value, data)| attribute == 9 && data.is_empty() && value & 1 == 1)
}

/// Register counts by symbol index, from `.nv.info`.
fn register_counts(info: &[u8]) -> impl Iterator<Item = (usize, u32)> {
    const REGISTER_COUNT: u8 = 0x2f;
    info_records(info)
        .filter(|(attribute, ..)| *attribute == REGISTER_COUNT)
        .filter_map(|(_, _, data)| Some((usize::try_from(u32_at(data, 0)?).ok()?, u32_at(data, 4)?)))
}
