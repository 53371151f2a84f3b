//! Machine code itself: what its own ELF file says.

use object::read::elf::{ElfFile64, FileHeader, SectionHeader};
use object::{Endianness, elf};

use crate::container::{Arch, Variant};

/// A cubin, as far as its section headers tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cubin {
    /// What it is for, by its own account. In the newer form that says nothing of `a` and `f`.
    pub arch: Arch,
    /// Whether the account tells `a` from plain.
    pub variant_known: bool,
    /// Its kernels and functions, by name.
    pub kernels: Vec<Kernel>,
}

/// A kernel or a device function that stands on its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// Its name, mangled as it is.
    pub name: String,
    /// Registers a thread takes.
    pub registers: u32,
    /// Static shared memory.
    pub shared: u64,
    /// Bytes of parameters and compiler constants (bank 0).
    pub constant: u64,
    /// Bytes of machine code.
    pub code: u64,
}

/// `e_machine` of a cubin.
const EM_CUDA: u16 = 190;

impl Cubin {
    /// Reads a cubin; none if the bytes are not one.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let file = ElfFile64::<Endianness>::parse(bytes).ok()?;
        let endian = file.endian();
        let header = file.elf_header();
        if header.e_machine(endian).0 != EM_CUDA {
            return None;
        }
        let flags = header.e_flags(endian).0;
        let newer = header.e_ident().abi_version >= 8;
        let (number, variant) = if newer {
            (flags >> 8 & 0xff, Variant::Plain)
        } else {
            (flags & 0xff, if flags & 0x800 != 0 { Variant::Specific } else { Variant::Plain })
        };
        let sections = file.elf_section_table();
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
        shared.sort();
        constant.sort();
        let find = |list: &[(String, u64)], name: &str| {
            let found = list.binary_search_by(|(known, _)| known.as_str().cmp(name)).ok();
            found.and_then(|index| list.get(index)).map_or(0, |(_, size)| *size)
        };
        for kernel in &mut kernels {
            kernel.shared = find(&shared, &kernel.name);
            kernel.constant = find(&constant, &kernel.name);
        }
        Some(Self { arch: Arch { number, variant }, variant_known: !newer, kernels })
    }
}
