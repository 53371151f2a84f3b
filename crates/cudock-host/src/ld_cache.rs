//! Reads the loader's cache, `/etc/ld.so.cache`.

/// The magic of the format that glibc has used since 1999, alone or after the older format.
const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const HEADER: usize = 48;
const ENTRY: usize = 24;

/// A cached library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheEntry<'a> {
    /// `libcuda.so.1`
    pub name: &'a str,
}

/// The entries of a cache; none if the bytes are not a cache. Entries that point outside the file are skipped.
pub fn parse(bytes: &[u8]) -> Option<Vec<CacheEntry<'_>>> {
    let start = bytes.windows(MAGIC.len()).position(|window| window == MAGIC)?;
    let cache = bytes.get(start..)?;
    let count = number(cache, MAGIC.len())?;
    let entries = cache.get(HEADER..)?.chunks_exact(ENTRY).take(count);
    // A count beyond the end of the file would read strings as entries.
    if count > cache.len() / ENTRY {
        return None;
    }
    Some(entries.filter_map(|entry| Some(CacheEntry { name: text(cache, number(entry, 4)?)? })).collect())
}

fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let four: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
    usize::try_from(u32::from_le_bytes(four)).ok()
}

fn text(bytes: &[u8], at: usize) -> Option<&str> {
    let rest = bytes.get(at..)?;
    let end = rest.iter().take(4096).position(|byte| *byte == 0)?;
    std::str::from_utf8(rest.get(..end)?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A cache with these libraries, in the format of ldconfig.
    fn cache_with(names: &[&str]) -> Vec<u8> {
        let count = u32::try_from(names.len()).unwrap();
        let mut bytes = MAGIC.to_vec();
        bytes.extend(count.to_le_bytes());
        bytes.resize(HEADER, 0);
        let mut strings = Vec::new();
        for name in names {
            let at = u32::try_from(HEADER + names.len() * ENTRY + strings.len()).unwrap();
            bytes.extend(3_i32.to_le_bytes());
            bytes.extend(at.to_le_bytes());
            bytes.extend(at.to_le_bytes());
            bytes.extend([0; 12]);
            strings.extend(name.as_bytes());
            strings.push(0);
        }
        bytes.extend(strings);
        bytes
    }

    #[test]
    fn names_are_read() {
        let bytes = cache_with(&["libcuda.so.1", "libc.so.6"]);
        let names: Vec<&str> = parse(&bytes).unwrap().iter().map(|cached| cached.name).collect();
        assert_eq!(names, ["libcuda.so.1", "libc.so.6"]);
    }

    #[test]
    fn the_cache_of_this_machine_lists_the_c_library() {
        let Ok(bytes) = std::fs::read("/etc/ld.so.cache") else {
            cudock_testkit::missing("ld-cache", "this machine has no /etc/ld.so.cache");
            return;
        };
        assert!(parse(&bytes).unwrap().iter().any(|cached| cached.name.starts_with("libc.so.")));
    }

    proptest! {
        #[test]
        fn no_input_causes_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            parse(&bytes);
        }

        #[test]
        fn no_corruption_causes_a_panic(at in 0..200_usize, byte: u8, cut in 0..200_usize) {
            let mut bytes = cache_with(&["libcuda.so.1", "libnvidia-ml.so.1", "libc.so.6"]);
            if let Some(target) = bytes.get_mut(at) {
                *target = byte;
            }
            bytes.truncate(bytes.len().saturating_sub(cut));
            parse(&bytes);
        }
    }
}
