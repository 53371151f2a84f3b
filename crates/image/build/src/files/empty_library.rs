//! An empty shared library, which takes the place of one that programs are linked to without using anything of it.

/// Offsets: the ELF header and three program headers come first.
const HEADER: u64 = 64;
const SEGMENT: u64 = 56;
const DYNAMIC: u64 = HEADER + 3 * SEGMENT;
const DYNAMIC_SIZE: u64 = 7 * 16;
const SYMBOLS: u64 = DYNAMIC + DYNAMIC_SIZE;
const SYMBOL: u64 = 24;
const HASH: u64 = SYMBOLS + SYMBOL;
const STRINGS: u64 = HASH + 16;
/// The largest page of the supported machines.
const PAGE: u64 = 1 << 16;

/// The bytes of a library with a name and nothing else, for an ELF machine.
pub(crate) fn empty_library(soname: &str, machine: u16) -> Vec<u8> {
    let strings = [&b"\0"[..], soname.as_bytes(), b"\0"].concat();
    let length = strings.len() as u64;
    let mut bytes = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    // A shared object without an entry point and without sections.
    for half in [3, machine, 1, 0] {
        bytes.extend(half.to_le_bytes());
    }
    for word in [0, HEADER, 0] {
        bytes.extend(word.to_le_bytes());
    }
    for half in [0_u16, 0, 64, 56, 3, 64, 0, 0] {
        bytes.extend(half.to_le_bytes());
    }
    let mut segment = |kind: u32, offset: u64, size: u64, align: u64| {
        let readable_and_writable = 6_u32;
        bytes.extend(kind.to_le_bytes());
        bytes.extend(readable_and_writable.to_le_bytes());
        for word in [offset, offset, offset, size, size, align] {
            bytes.extend(word.to_le_bytes());
        }
    };
    segment(1, 0, STRINGS + length, PAGE);
    segment(2, DYNAMIC, DYNAMIC_SIZE, 8);
    // Without this one, the loader would want an executable stack.
    segment(0x6474_e551, 0, 0, 16);
    let name_hash_strings_symbols = [(14, 1), (4, HASH), (5, STRINGS), (6, SYMBOLS)];
    for (tag, value) in name_hash_strings_symbols.into_iter().chain([(10, length), (11, SYMBOL), (0, 0)]) {
        bytes.extend(u64::to_le_bytes(tag));
        bytes.extend(value.to_le_bytes());
    }
    // The first symbol is always undefined; the hash table has one bucket with it.
    bytes.extend([0; 24]);
    for word in [1_u32, 1, 0, 0] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(strings);
    bytes
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn it_has_a_name_and_nothing_else() {
        let bytes = empty_library("libcurand.so.10", 62);
        let linkage = cudock_fatbin::dynamic_linkage(&bytes).unwrap();
        assert_eq!(linkage.soname.as_deref(), Some("libcurand.so.10"));
        assert_eq!(linkage.machine, 62);
        assert!(linkage.needed.is_empty() && linkage.defines.is_empty());
    }

    #[test]
    fn the_loader_takes_it() {
        let machine =
            cudock_fatbin::dynamic_linkage(&std::fs::read("/proc/self/exe").unwrap()).unwrap().machine;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("libempty.so.1");
        std::fs::write(&path, empty_library("libempty.so.1", machine)).unwrap();
        let program = std::env::current_exe().unwrap();
        // What cannot be preloaded is an error on the standard error output, and ignored.
        let output = Command::new(program).arg("--list").env("LD_PRELOAD", &path).output().unwrap();
        assert!(output.status.success());
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }
}
