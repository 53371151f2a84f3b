//! Any file that may hold GPU code.

use object::read::archive::ArchiveFile;
use object::read::elf::{ElfFile64, FileHeader};
use object::{Endianness, ReadRef};

use crate::container::{Damage, Entry, EntryKind, MAGIC, Module, read as read_container};
use crate::cubin::Cubin;
use crate::elf::{self, Linkage};
use crate::find::{self, Stretch};
use crate::wrappers;

/// What kind of file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// An ELF executable, library or object file.
    Elf,
    /// A static archive.
    Archive,
    /// A bare container.
    Fatbin,
    /// A bare cubin.
    Cubin,
}

/// A file and the GPU code in it.
#[derive(Debug, Clone)]
pub struct Binary {
    /// What kind of file it is.
    pub kind: FileKind,
    /// What the dynamic loader is told.
    pub linkage: Linkage,
    /// Modules, in the order of the file.
    pub modules: Vec<Module>,
    /// Modules the device linker was given. Drivers link their PTX anew where the linked code has nothing for a card.
    pub relocatable: Vec<Module>,
    /// A bare cubin's own account.
    pub cubin: Option<Cubin>,
    /// What is not as it should be.
    pub damage: Vec<Damage>,
}

/// Why a file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// It is none of the files that hold GPU code.
    #[error("not an ELF file, an archive, a fat binary or a cubin")]
    Unknown,
    /// It is one, and broken.
    #[error("{0}")]
    Damaged(Damage),
}

const ELF: [u8; 4] = [0x7f, b'E', b'L', b'F'];
const ARCHIVE: &[u8] = b"!<arch>\n";

/// Whether a file that begins so is worth reading.
pub fn is_candidate(start: &[u8]) -> bool {
    start.starts_with(&ELF) || start.starts_with(ARCHIVE) || start.starts_with(&MAGIC)
}

/// Reads a file from its bytes.
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
    Binary {
        kind,
        linkage: Linkage::default(),
        modules: Vec::new(),
        relocatable: Vec::new(),
        cubin: None,
        damage: Vec::new(),
    }
}

/// A bare container; several may stand one after the other.
fn fatbin(bytes: &[u8]) -> Result<Binary, ReadError> {
    // Nothing else can be in such a file, so its first container must be whole.
    read_container(bytes, 0, "").map_err(ReadError::Damaged)?;
    let mut binary = empty(FileKind::Fatbin);
    let stretch = Stretch { section: String::new(), offset: 0, address: 0, bytes, only_containers: true };
    find::containers(&stretch, &mut binary.modules, &mut binary.damage);
    Ok(binary)
}

fn broken(offset: u64, message: &str) -> ReadError {
    ReadError::Damaged(Damage { offset, message: message.to_owned() })
}

fn elf_file(bytes: &[u8]) -> Result<Binary, ReadError> {
    // 32-bit files cannot hold GPU code of this century.
    if bytes.get(4) == Some(&1) {
        return Ok(empty(FileKind::Elf));
    }
    let file = ElfFile64::<Endianness>::parse(bytes)
        .map_err(|error| broken(0, &format!("broken ELF file: {error}")))?;
    if file.elf_header().e_machine(file.endian()).0 == 190 {
        return Ok(Binary { cubin: Cubin::parse(bytes), ..empty(FileKind::Cubin) });
    }
    let mut binary = empty(FileKind::Elf);
    binary.linkage = elf::linkage(&file, bytes);
    for stretch in elf::stretches(&file, bytes, 0) {
        find::containers(&stretch, &mut binary.modules, &mut binary.damage);
    }
    if let Some(stretch) = elf::relocatable(&file, bytes) {
        find::containers(&stretch, &mut binary.relocatable, &mut binary.damage);
        wrappers::mark_linked(&file, bytes, &mut binary.modules);
    }
    Ok(binary.without_overlaps())
}

fn archive(bytes: &[u8]) -> Result<Binary, ReadError> {
    let archive =
        ArchiveFile::parse(bytes).map_err(|error| broken(0, &format!("broken archive: {error}")))?;
    let mut binary = empty(FileKind::Archive);
    for member in archive.members() {
        let member = match member {
            Ok(member) => member,
            Err(error) => {
                binary.damage.push(Damage { offset: 0, message: format!("broken archive: {error}") });
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
                for stretch in elf::stretches(&file, data, start) {
                    find::containers(&stretch, &mut binary.modules, &mut binary.damage);
                }
            }
            Err(error) => {
                binary.damage.push(Damage { offset: start, message: format!("broken object file: {error}") });
            }
        }
    }
    Ok(binary.without_overlaps())
}

impl Binary {
    /// Takes out containers that lie in others, as they do where sections overlap: only one of them can be meant.
    fn without_overlaps(mut self) -> Self {
        self.modules.sort_by_key(|module| module.offset);
        let mut end = 0;
        let mut inside = 0;
        let damage = &mut self.damage;
        self.modules.retain(|module| {
            if module.offset < end {
                let message = format!("this container lies in the one at offset {inside:#x}");
                damage.push(Damage { offset: module.offset, message });
                return false;
            }
            (inside, end) = (module.offset, module.offset + module.size);
            true
        });
        self
    }
}

impl Module {
    /// Whether it holds no kernel: the linker adds such modules, and whether they load says nothing. Opens one entry;
    /// unknown where that is not machine code.
    pub fn has_kernels(&self, file: &[u8]) -> Option<bool> {
        Some(!self.smallest_cubin(file)?.kernels.is_empty())
    }

    /// The smallest piece of machine code in it, opened.
    pub fn smallest_cubin(&self, file: &[u8]) -> Option<Cubin> {
        let entry = self.smallest_entry()?;
        let payload = entry.payload(file).ok()?;
        match entry.members.first() {
            Some(member) => Cubin::parse(payload.get(usize::try_from(member.start).ok()?..)?),
            None => Cubin::parse(&payload),
        }
    }

    /// The smallest entry with machine code.
    pub fn smallest_entry(&self) -> Option<&Entry> {
        let machine_code =
            |entry: &&Entry| matches!(entry.kind, EntryKind::Cubin | EntryKind::Group) && !entry.is_lto();
        self.entries.iter().filter(machine_code).min_by_key(|entry| entry.bytes)
    }
}
