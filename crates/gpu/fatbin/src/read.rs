//! Reads any file that may contain GPU code.

use object::read::archive::ArchiveFile;
use object::read::elf::{ElfFile64, FileHeader};
use object::{Endianness, ReadRef};

use crate::bare::BareCubin;
use crate::container::{Damage, EntryKind, FatbinEntry, MAGIC, Module, read as read_container};
use crate::cubin::Cubin;
use crate::elf::{self, Linkage};
use crate::find::{self, DataRange};
use crate::wrappers;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FileKind {
    /// An ELF executable, library or object file.
    #[default]
    Elf,
    /// A static archive.
    Archive,
    /// A bare container.
    Fatbin,
    Cubin,
}

/// A file and its GPU code.
#[derive(Debug, Clone, Default)]
pub struct Binary {
    pub kind: FileKind,
    pub linkage: Linkage,
    /// The modules, in file order.
    pub modules: Vec<Module>,
    /// The input of the device linker. Drivers link its PTX again if the linked code does not support a GPU.
    pub relocatable: Vec<Module>,
    /// The contents of a file that is a cubin.
    pub cubin: Option<Cubin>,
    /// Compressed cubins outside of containers, in file order.
    pub bare_cubins: Vec<BareCubin>,
    pub damage: Vec<Damage>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    #[error("not an ELF file, an archive, a fat binary or a cubin")]
    Unknown,
    #[error("{0}")]
    Damaged(Damage),
}

const ELF: [u8; 4] = [0x7f, b'E', b'L', b'F'];
const ARCHIVE: &[u8] = b"!<arch>\n";

/// Whether a file with these first bytes is relevant.
pub fn is_candidate(start: &[u8]) -> bool {
    start.starts_with(&ELF) || start.starts_with(ARCHIVE) || start.starts_with(&MAGIC)
}

pub fn read(bytes: &[u8]) -> Result<Binary, ReadError> {
    if bytes.starts_with(&MAGIC) {
        return fatbin(bytes);
    }
    if bytes.starts_with(ARCHIVE) {
        return archive(bytes);
    }
    if bytes.starts_with(&ELF) {
        return elf_file(bytes);
    }
    Err(ReadError::Unknown)
}

fn empty(kind: FileKind) -> Binary {
    Binary { kind, ..Binary::default() }
}

/// A bare container, or several in sequence.
fn fatbin(bytes: &[u8]) -> Result<Binary, ReadError> {
    // Such a file contains nothing else, so its first container must be valid.
    read_container(bytes, 0, "").map_err(ReadError::Damaged)?;
    let mut binary = empty(FileKind::Fatbin);
    let range = DataRange { section: String::new(), offset: 0, address: 0, bytes, only_containers: true };
    find::code(&range, &mut binary.modules, &mut binary.bare_cubins, &mut binary.damage);
    Ok(binary)
}

fn broken(offset: u64, message: &str) -> ReadError {
    ReadError::Damaged(Damage { offset, message: message.to_owned() })
}

fn elf_file(bytes: &[u8]) -> Result<Binary, ReadError> {
    // 32-bit files have no GPU code of supported toolkits.
    if bytes.get(4) == Some(&1) {
        return Ok(empty(FileKind::Elf));
    }
    let file = ElfFile64::<Endianness>::parse(bytes)
        .map_err(|error| broken(0, &format!("invalid ELF file: {error}")))?;
    if file.elf_header().e_machine(file.endian()).0 == 190 {
        return Ok(Binary { cubin: Cubin::parse(bytes), ..empty(FileKind::Cubin) });
    }
    let mut binary = empty(FileKind::Elf);
    binary.linkage = elf::linkage(&file, bytes);
    for range in elf::data_ranges(&file, bytes, 0) {
        find::code(&range, &mut binary.modules, &mut binary.bare_cubins, &mut binary.damage);
    }
    if let Some(range) = elf::relocatable(&file, bytes) {
        find::code(&range, &mut binary.relocatable, &mut binary.bare_cubins, &mut binary.damage);
        wrappers::mark_linked(&file, bytes, &mut binary.modules);
    }
    Ok(binary.without_overlaps())
}

fn archive(bytes: &[u8]) -> Result<Binary, ReadError> {
    let archive =
        ArchiveFile::parse(bytes).map_err(|error| broken(0, &format!("invalid archive: {error}")))?;
    let mut binary = empty(FileKind::Archive);
    for member in archive.members() {
        let member = match member {
            Ok(member) => member,
            Err(error) => {
                binary.damage.push(Damage { offset: 0, message: format!("invalid archive: {error}") });
                break;
            }
        };
        let (start, size) = member.file_range();
        let Ok(data) = bytes.read_bytes_at(start, size) else { continue };
        if !data.starts_with(&ELF) {
            continue;
        }
        match ElfFile64::<Endianness>::parse(data) {
            Ok(file) => {
                for range in elf::data_ranges(&file, data, start) {
                    find::code(&range, &mut binary.modules, &mut binary.bare_cubins, &mut binary.damage);
                }
            }
            Err(error) => {
                let message = format!("invalid object file: {error}");
                binary.damage.push(Damage { offset: start, message });
            }
        }
    }
    Ok(binary.without_overlaps())
}

impl Binary {
    /// Whether it has GPU code that can be removed.
    pub fn has_code(&self) -> bool {
        !self.modules.is_empty() || !self.bare_cubins.is_empty()
    }

    /// Removes containers inside of others, which occur if sections overlap.
    fn without_overlaps(mut self) -> Self {
        self.modules.sort_by_key(|module| module.offset);
        let mut end = 0;
        let mut inside = 0;
        let damage = &mut self.damage;
        self.modules.retain(|module| {
            if module.offset < end {
                let message = format!("container overlaps the one at offset {inside:#x}");
                damage.push(Damage { offset: module.offset, message });
                return false;
            }
            (inside, end) = (module.offset, module.offset + module.size);
            true
        });
        self.bare_cubins.sort_by_key(|cubin| cubin.offset);
        let mut end = 0;
        self.bare_cubins.retain(|cubin| {
            let is_apart = cubin.offset >= end;
            end = end.max(cubin.offset + cubin.stored);
            is_apart
        });
        self
    }
}

impl Module {
    /// Whether it has kernels: the linker adds modules without any, which can be ignored. Decompresses one entry; unknown if
    /// that is not SASS.
    pub fn has_kernels(&self, file: &[u8]) -> Option<bool> {
        Some(!self.smallest_cubin(file)?.kernels.is_empty())
    }

    pub fn smallest_cubin(&self, file: &[u8]) -> Option<Cubin> {
        let entry = self.smallest_entry()?;
        let payload = entry.payload(file).ok()?;
        match entry.members.first() {
            Some(member) => Cubin::parse(payload.get(usize::try_from(member.start).ok()?..)?),
            None => Cubin::parse(&payload),
        }
    }

    pub fn smallest_entry(&self) -> Option<&FatbinEntry> {
        let machine_code = |entry: &&FatbinEntry| {
            matches!(entry.kind, EntryKind::Cubin | EntryKind::Group) && !entry.is_lto()
        };
        self.entries.iter().filter(machine_code).min_by_key(|entry| entry.bytes)
    }
}
