//! Compressed cubins outside of containers.
//!
//! cuBLASLt 13 keeps a part of its kernels as bare zstd frames in its data sections, one cubin each. No header lists them, so
//! they are recognized by what they decompress to: the header of a cubin. Only the first block of a frame is opened.

use std::io::Read;

use cudock_facts::version::{Capability, SmArch, Variant};

use crate::bytes::{u16_at, u32_at};

pub(crate) const MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
/// The size of an ELF header.
const ELF_HEADER: usize = 64;
/// The largest window that is opened: the largest known frame needs a quarter of it.
const MAX_WINDOW_LOG: u32 = 27;

/// A compressed cubin outside of a container. The library itself chooses among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BareCubin {
    /// The offset of the frame in the file.
    pub offset: u64,
    /// The size of the frame.
    pub stored: u64,
    /// The decompressed size; zero if the frame does not say it.
    pub bytes: u64,
    pub section: String,
    /// The architecture; `a` and `f` are not distinguished from plain.
    pub arch: SmArch,
}

/// Parses the frame at the start of `bytes`; none if it is not a cubin.
pub(crate) fn parse(bytes: &[u8], offset: u64, section: &str) -> Option<BareCubin> {
    let mut header = [0; ELF_HEADER];
    let mut decoder = zstd::stream::read::Decoder::with_buffer(bytes).ok()?;
    decoder.window_log_max(MAX_WINDOW_LOG).ok()?;
    decoder.read_exact(&mut header).ok()?;
    let arch = cubin_arch(&header)?;
    let stored = zstd::zstd_safe::find_frame_compressed_size(bytes).ok()?;
    let size = zstd::zstd_safe::get_frame_content_size(bytes).ok().flatten().unwrap_or(0);
    (stored <= bytes.len()).then(|| BareCubin {
        offset,
        stored: stored as u64,
        bytes: size,
        section: section.to_owned(),
        arch,
    })
}

/// The architecture of a cubin with this ELF header. All constant fields are compared, so that nothing else passes.
fn cubin_arch(header: &[u8; ELF_HEADER]) -> Option<SmArch> {
    const CUDA: u16 = 190;
    let is_elf64 = header.starts_with(&[0x7f, b'E', b'L', b'F', 2, 1, 1]);
    let sizes = (u16_at(header, 52)?, u16_at(header, 58)?);
    if !is_elf64 || u16_at(header, 18)? != CUDA || sizes != (64, 64) {
        return None;
    }
    let (abi_version, flags) = (*header.get(8)?, u32_at(header, 48)?);
    let number = if abi_version >= 8 { flags >> 8 & 0xff } else { flags & 0xff };
    let capability = Capability::from_number(u16::try_from(number).ok()?)?;
    Some(SmArch::new(capability, Variant::Plain))
}
