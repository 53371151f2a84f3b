//! Parses containers and their entries.

use std::fmt;

use cudock_facts::version::{Capability, PtxArch, PtxIsa, SmArch, Variant};

use crate::bytes::{align8, u16_at, u32_at, u64_at};
use crate::code_target::CodeTarget;

/// The first four bytes of a container.
pub(crate) const MAGIC: [u8; 4] = [0x50, 0xED, 0x55, 0xBA];
/// The size of a container header, and the minimum size of an entry header.
pub(crate) const CONTAINER_HEADER: u64 = 16;
pub(crate) const ENTRY_HEADER: u64 = 64;

const FLAG_DEBUG: u64 = 0x2;
const FLAG_LZ4: u64 = 0x2000;
const FLAG_ZSTD: u64 = 0x8000;
const FLAG_LTO: u64 = 0x1_0000;
const FLAG_SPECIFIC: u64 = 0x10_0000;
const FLAG_FAMILY: u64 = 0x20_0000;
/// Bits that are understood, or known to be harmless.
const FLAGS_KNOWN: u64 =
    0x100_007d | FLAG_DEBUG | FLAG_LZ4 | FLAG_ZSTD | FLAG_LTO | FLAG_SPECIFIC | FLAG_FAMILY;

/// One module: the driver picks one of its entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// The offset of the container in the file.
    pub offset: u64,
    /// The size including the header.
    pub size: u64,
    pub section: String,
    pub entries: Vec<FatbinEntry>,
    /// Whether the device linker created it (`-rdc`, `-dlto`): only then can the driver link the PTX of its parts again.
    pub device_linked: bool,
}

/// Code for one target, or a group of such codes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FatbinEntry {
    /// The offset of the header in the file.
    pub offset: u64,
    /// The size of the header, which is followed by the payload.
    pub header_size: u32,
    pub kind: EntryKind,
    /// The target; none for a group, whose members have targets.
    pub target: Option<CodeTarget>,
    /// The PTX version, or the ELF version of the cubin.
    pub version: (u16, u16),
    /// The size of the payload in the file.
    pub stored: u64,
    /// The size of the compressed data in the payload, without padding; zero if not compressed.
    pub compressed: u32,
    /// The decompressed size.
    pub bytes: u64,
    pub codec: Codec,
    pub flags: u64,
    pub members: Vec<GroupMember>,
}

/// A cubin in a group: a range of the group's decompressed payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupMember {
    pub target: CodeTarget,
    /// The offset in the decompressed group.
    pub start: u64,
    pub bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    /// PTX, compiled by the driver.
    Ptx,
    /// SASS.
    Cubin,
    /// Intermediate code for link-time optimization at run time.
    Ir,
    /// Several cubins compressed together.
    Group,
    Unknown(u16),
}

/// The compression of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    Raw,
    /// One LZ4 block.
    Lz4,
    /// One zstd frame.
    Zstd,
}

/// The target that the header of an entry names.
fn target(kind: EntryKind, number: u32, flags: u64) -> CodeTarget {
    let variant = match (flags & FLAG_SPECIFIC != 0, flags & FLAG_FAMILY != 0) {
        (true, _) => Variant::Specific,
        (false, true) => Variant::Family,
        (false, false) => Variant::Plain,
    };
    let Some(capability) = u16::try_from(number).ok().and_then(Capability::from_number) else {
        return CodeTarget::Unknown(number);
    };
    match kind {
        _ if kind == EntryKind::Ir || flags & FLAG_LTO != 0 => {
            CodeTarget::Ir(SmArch::new(capability, variant))
        }
        EntryKind::Cubin | EntryKind::Group => CodeTarget::Sass(SmArch::new(capability, variant)),
        EntryKind::Ptx => CodeTarget::Ptx(PtxArch::new(capability, variant)),
        EntryKind::Ir | EntryKind::Unknown(_) => CodeTarget::Unknown(number),
    }
}

/// The target of PTX, of which the header may know only the number: TensorFlow packs PTX for `sm_90a` as plain 90, and the
/// driver goes by the text. LZ4 begins with the bytes as they are, so the first lines can be read there.
fn ptx_target(number: u32, flags: u64, payload: &[u8]) -> CodeTarget {
    const FIRST_LINES: usize = 512;
    let by_header = target(EntryKind::Ptx, number, flags);
    let CodeTarget::Ptx(arch) = by_header else { return by_header };
    if arch.variant() != Variant::Plain {
        return by_header;
    }
    let named = format!(".target sm_{number}");
    let text = payload.get(..FIRST_LINES.min(payload.len())).unwrap_or_default();
    let suffix = memchr::memmem::find(text, named.as_bytes())
        .and_then(|at| text.get(at + named.len()..)?.split_at_checked(2))
        .map(|(suffix, _)| suffix);
    let variant = match suffix {
        Some([b'a', b'\n' | b'\r' | b',' | b' ']) => Variant::Specific,
        Some([b'f', b'\n' | b'\r' | b',' | b' ']) => Variant::Family,
        _ => return by_header,
    };
    CodeTarget::Ptx(PtxArch::new(arch.capability(), variant))
}

impl FatbinEntry {
    /// The size of header and payload.
    pub fn size(&self) -> u64 {
        u64::from(self.header_size) + self.stored
    }

    pub(crate) fn payload_offset(&self) -> u64 {
        self.offset + u64::from(self.header_size)
    }

    /// Whether it is intermediate code, by kind or by flag.
    pub fn is_lto(&self) -> bool {
        self.kind == EntryKind::Ir || self.flags & FLAG_LTO != 0
    }

    /// Whether it is a placeholder for removed code, which no GPU loads.
    pub fn is_placeholder(&self) -> bool {
        self.kind == EntryKind::Cubin && self.stored == 0 && self.target == Some(CodeTarget::Unknown(0))
    }

    /// The PTX version, if it is PTX and the version exists.
    pub(crate) fn ptx_isa(&self) -> Option<PtxIsa> {
        let (major, minor) = self.version;
        matches!(self.target, Some(CodeTarget::Ptx(_)))
            .then(|| Some(PtxIsa::new(u8::try_from(major).ok()?, u8::try_from(minor).ok()?)))?
    }

    /// Flag bits that are not known.
    pub(crate) fn unknown_flags(&self) -> u64 {
        self.flags & !FLAGS_KNOWN
    }
}

/// A corruption in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    pub offset: u64,
    pub message: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at offset {:#x}: {}", self.offset, self.message)
    }
}

/// Whether this can be a container: the magic alone also occurs in data by chance.
pub(crate) fn is_plausible(bytes: &[u8]) -> bool {
    let Some(size) = u64_at(bytes, 8) else { return false };
    let room = bytes.len() as u64;
    let (Some(kind), Some(mark), Some(header), Some(stored)) =
        (u16_at(bytes, 16), u16_at(bytes, 18), u32_at(bytes, 20), u64_at(bytes, 24))
    else {
        return false;
    };
    bytes.starts_with(&MAGIC)
        && u16_at(bytes, 4) == Some(1)
        && u16_at(bytes, 6) == Some(16)
        && size >= ENTRY_HEADER
        && size <= room.saturating_sub(CONTAINER_HEADER)
        && kind != 0
        && mark == 0x0101
        && u64::from(header) >= ENTRY_HEADER
        && u64::from(header).checked_add(stored).is_some_and(|whole| whole <= size)
}

/// Parses the container at the start of `bytes`, which are at `offset` in the file. Entries up to the first corruption are
/// kept, and the corruption is returned.
pub(crate) fn read(bytes: &[u8], offset: u64, section: &str) -> Result<(Module, Option<Damage>), Damage> {
    let invalid = |at: u64, message: String| Damage { offset: offset + at, message };
    if !bytes.starts_with(&MAGIC) {
        return Err(invalid(0, "not a container: wrong magic".to_owned()));
    }
    match (u16_at(bytes, 4), u16_at(bytes, 6)) {
        (Some(1), Some(16)) => {}
        (Some(version), Some(header)) => {
            let message = format!("unsupported container version {version} with a header of {header} bytes");
            return Err(invalid(4, message));
        }
        _ => return Err(invalid(0, "truncated container header".to_owned())),
    }
    let size = u64_at(bytes, 8).ok_or_else(|| invalid(0, "truncated container header".to_owned()))?;
    let room = (bytes.len() as u64).saturating_sub(CONTAINER_HEADER);
    if size > room {
        return Err(invalid(8, format!("container claims {size} bytes, but {room} are left")));
    }
    let end = CONTAINER_HEADER + size;
    let mut entries = Vec::new();
    let mut damage = None;
    let mut at = CONTAINER_HEADER;
    while at < end {
        match entry(bytes, at, end, offset) {
            Ok(entry) => {
                at += entry.size();
                entries.push(entry);
            }
            Err(found) => {
                damage = Some(found);
                break;
            }
        }
    }
    Ok((Module { offset, size: end, section: section.to_owned(), entries, device_linked: false }, damage))
}

/// Parses the entry at `at`, which must end before `end`.
fn entry(bytes: &[u8], at: u64, end: u64, offset: u64) -> Result<FatbinEntry, Damage> {
    let invalid = |message: String| Damage { offset: offset + at, message };
    let truncated = || invalid("truncated entry header".to_owned());
    let start = usize::try_from(at).map_err(|_| truncated())?;
    let room = end - at;
    let header = bytes.get(start..).filter(|_| room >= ENTRY_HEADER).ok_or_else(truncated)?;
    let (Some(kind), Some(header_size), Some(stored)) =
        (u16_at(header, 0), u32_at(header, 4), u64_at(header, 8))
    else {
        return Err(truncated());
    };
    if u64::from(header_size) < ENTRY_HEADER {
        return Err(invalid(format!("entry claims a header of {header_size} bytes, the minimum is 64")));
    }
    if u64::from(header_size).checked_add(stored).is_none_or(|whole| whole > room) {
        let message =
            format!("entry claims {header_size} and {stored} bytes, but {room} are left in its container");
        return Err(invalid(message));
    }
    let tail = u32_at(header, 20).unwrap_or(0);
    let flags = u64_at(header, 40).unwrap_or(0);
    let compressed = u32_at(header, 16).unwrap_or(0);
    let codec = match (flags & FLAG_LZ4 != 0, flags & FLAG_ZSTD != 0) {
        (true, _) => Codec::Lz4,
        (false, true) => Codec::Zstd,
        (false, false) => Codec::Raw,
    };
    if codec != Codec::Raw && u64::from(compressed) > stored {
        return Err(invalid(format!("entry claims {compressed} compressed bytes in a payload of {stored}")));
    }
    let kind = match kind {
        1 => EntryKind::Ptx,
        2 => EntryKind::Cubin,
        8 => EntryKind::Ir,
        0x100 => EntryKind::Group,
        other => EntryKind::Unknown(other),
    };
    let whole_header = header.get(..header_size as usize).unwrap_or_default();
    let members =
        if kind == EntryKind::Group { members(whole_header, tail).map_err(invalid)? } else { Vec::new() };
    let number = u32_at(header, 28).unwrap_or(0);
    let target = match kind {
        EntryKind::Group => None,
        EntryKind::Ptx => {
            let payload = header.get(header_size as usize..).unwrap_or_default();
            let stored = usize::try_from(stored).unwrap_or(usize::MAX);
            Some(ptx_target(number, flags, payload.get(..stored).unwrap_or_default()))
        }
        _ => Some(target(kind, number, flags)),
    };
    Ok(FatbinEntry {
        offset: offset + at,
        header_size,
        kind,
        target,
        version: (u16_at(header, 26).unwrap_or(0), u16_at(header, 24).unwrap_or(0)),
        stored,
        compressed,
        bytes: if codec == Codec::Raw { stored } else { u64_at(header, 56).unwrap_or(0) },
        codec,
        flags,
        members,
    })
}

/// The headers of a group's members, which are part of the group's header.
fn members(header: &[u8], tail: u32) -> Result<Vec<GroupMember>, String> {
    let tail = tail as usize;
    let (Some(count), true) = (u32_at(header, tail), tail >= 64) else {
        return Err("group has no list of members".to_owned());
    };
    let mut members = Vec::new();
    let mut at = tail + 8;
    for index in 0..count {
        let member = header.get(at..).filter(|rest| rest.len() as u64 >= ENTRY_HEADER);
        let Some(member) = member else {
            return Err(format!("group claims {count} members, but its header ends after {index}"));
        };
        let flags = u64_at(member, 40).unwrap_or(0);
        members.push(GroupMember {
            target: target(EntryKind::Group, u32_at(member, 28).unwrap_or(0), flags),
            start: u64::from(u32_at(member, 4).unwrap_or(0)),
            bytes: u64_at(member, 8).unwrap_or(0),
        });
        let own_tail = u32_at(member, 20).unwrap_or(0) as usize;
        let size = if own_tail >= 64 {
            let (start, length) = (u32_at(member, own_tail), u32_at(member, own_tail + 4));
            let end = start
                .zip(length)
                .and_then(|(start, length)| align8(u64::from(start) + u64::from(length) + 1));
            end.and_then(|end| usize::try_from(end).ok()).filter(|end| *end >= 64)
        } else {
            Some(64)
        };
        at = size
            .and_then(|size| at.checked_add(size))
            .ok_or_else(|| format!("member {index} of the group has an invalid size"))?;
    }
    Ok(members)
}
