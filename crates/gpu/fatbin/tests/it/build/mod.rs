//! Builds containers and ELF files by hand.

/// A container with these entries.
pub fn container(entries: &[Vec<u8>]) -> Vec<u8> {
    let body = entries.concat();
    let mut bytes = vec![0x50, 0xED, 0x55, 0xBA, 1, 0, 16, 0];
    bytes.extend((body.len() as u64).to_le_bytes());
    bytes.extend(body);
    bytes
}

/// An entry with an uncompressed payload.
pub fn entry(kind: u16, arch: u32, flags: u64, payload: &[u8]) -> Vec<u8> {
    let mut payload = payload.to_vec();
    payload.resize(payload.len().next_multiple_of(8), 0);
    [header(kind, 64, payload.len() as u64, 0, arch, flags), payload].concat()
}

pub fn cubin_entry(arch: u32, flags: u64) -> Vec<u8> {
    entry(2, arch, 0x11 | flags, &arch.to_le_bytes())
}

pub fn ptx_entry(arch: u32, flags: u64) -> Vec<u8> {
    entry(1, arch, 0x11 | flags, b".version")
}

/// A group of cubins, with the headers of its members.
pub fn group(archs: &[u32]) -> Vec<u8> {
    let members: Vec<u8> = archs
        .iter()
        .enumerate()
        .flat_map(|(index, arch)| header(2, u32::try_from(index).unwrap() * 8, 8, 0, *arch, 0x11))
        .collect();
    let size = 64 + 8 + members.len();
    let mut bytes = header(0x100, u32::try_from(size).unwrap(), 8 * archs.len() as u64, 64, 0, 0x11);
    bytes.extend(u32::try_from(archs.len()).unwrap().to_le_bytes());
    bytes.extend(u32::try_from(members.len()).unwrap().to_le_bytes());
    bytes.extend(members);
    bytes.extend(vec![5; 8 * archs.len()]);
    bytes
}

fn header(kind: u16, header_size: u32, stored: u64, tail: u32, arch: u32, flags: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(kind.to_le_bytes());
    bytes.extend(0x0101_u16.to_le_bytes());
    bytes.extend(header_size.to_le_bytes());
    bytes.extend(stored.to_le_bytes());
    bytes.extend(0_u32.to_le_bytes());
    bytes.extend(tail.to_le_bytes());
    bytes.extend(4_u16.to_le_bytes());
    bytes.extend(9_u16.to_le_bytes());
    bytes.extend(arch.to_le_bytes());
    bytes.extend([0; 8]);
    bytes.extend(flags.to_le_bytes());
    bytes.extend([0; 16]);
    bytes
}

/// A 64-bit ELF library with one loaded, read-only segment that contains these sections, page-aligned.
pub fn elf_library(sections: &[(&str, &[u8])]) -> Vec<u8> {
    const PAGE: usize = 4096;
    let mut names = vec![0_u8];
    let mut places = Vec::new();
    let mut bytes = vec![0; PAGE];
    for (name, data) in sections {
        places.push((names.len(), bytes.len(), data.len()));
        names.extend(name.as_bytes());
        names.push(0);
        bytes.extend(*data);
        bytes.resize(bytes.len().next_multiple_of(PAGE), 0);
    }
    let loaded = bytes.len();
    let strings = names.len();
    names.extend(b".shstrtab\0");
    let names_at = bytes.len();
    bytes.extend(&names);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    let table_at = bytes.len();
    let section = |name: usize, kind: u32, flags: u64, at: usize, size: usize| {
        let mut header = Vec::new();
        header.extend(u32::try_from(name).unwrap().to_le_bytes());
        header.extend(kind.to_le_bytes());
        header.extend(flags.to_le_bytes());
        header.extend((if flags == 0 { 0 } else { at as u64 }).to_le_bytes());
        header.extend((at as u64).to_le_bytes());
        header.extend((size as u64).to_le_bytes());
        header.extend([0; 8]);
        header.extend(8_u64.to_le_bytes());
        header.extend([0; 8]);
        header
    };
    bytes.extend([0; 64]);
    for (name, at, size) in &places {
        bytes.extend(section(*name, 1, 2, *at, *size));
    }
    bytes.extend(section(strings, 3, 0, names_at, names.len()));

    let mut head = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    head.extend(3_u16.to_le_bytes());
    head.extend(62_u16.to_le_bytes());
    head.extend(1_u32.to_le_bytes());
    head.extend(0_u64.to_le_bytes());
    head.extend(64_u64.to_le_bytes());
    head.extend((table_at as u64).to_le_bytes());
    head.extend(0_u32.to_le_bytes());
    for number in [64_u16, 56, 1, 64] {
        head.extend(number.to_le_bytes());
    }
    head.extend(u16::try_from(sections.len() + 2).unwrap().to_le_bytes());
    head.extend(u16::try_from(sections.len() + 1).unwrap().to_le_bytes());
    // One read-only segment with everything so far.
    head.extend(1_u32.to_le_bytes());
    head.extend(4_u32.to_le_bytes());
    head.extend([0; 24]);
    head.extend((loaded as u64).to_le_bytes());
    head.extend((loaded as u64).to_le_bytes());
    head.extend((PAGE as u64).to_le_bytes());
    bytes[..head.len()].copy_from_slice(&head);
    bytes
}
