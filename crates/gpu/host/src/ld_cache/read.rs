use super::{
    Cache, CacheEntry, ENTRY, EXTENSION, HEADER, HWCAPS_SECTION, Hwcap, MAGIC, NAMED_HWCAP, OLD_MAGIC,
};

/// Maximum length of a name or path.
const MAX_LENGTH: usize = 4096;
/// Maximum number of sections of an extension, and of names in one.
const MAX_SECTIONS: usize = 64;
const MAX_NAMES: usize = 1024;

impl Cache {
    /// Reads the cache of a little-endian machine; none if the bytes are not one. Entries that
    /// point outside it, or whose processors are unknown, are left out.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let cache = bytes.get(start(bytes)?..)?;
        let count = number(cache, MAGIC.len())?;
        if count > cache.len().checked_sub(HEADER)? / ENTRY {
            return None;
        }
        let names = hwcap_names(cache).unwrap_or_default();
        let table = cache.get(HEADER..)?.chunks_exact(ENTRY).take(count);
        Some(Self { entries: table.filter_map(|entry| self::entry(cache, entry, &names)).collect() })
    }
}

/// Where the newer format begins: at once, or behind the table of the older one.
fn start(bytes: &[u8]) -> Option<usize> {
    if bytes.starts_with(MAGIC) {
        return Some(0);
    }
    if !bytes.starts_with(OLD_MAGIC) {
        return None;
    }
    let end = number(bytes, 12)?.checked_mul(12)?.checked_add(16)?;
    let begins = |at: &usize| bytes.get(*at..).is_some_and(|rest| rest.starts_with(MAGIC));
    [8, 4].into_iter().filter_map(|align| end.checked_next_multiple_of(align)).find(begins)
}

fn entry(cache: &[u8], entry: &[u8], names: &[&str]) -> Option<CacheEntry> {
    let (low, high) = (number(entry, 16)? as u64, number(entry, 20)? as u64);
    let bits = high << 32 | low;
    let hwcap = if bits & NAMED_HWCAP == 0 {
        Hwcap::Bits(bits)
    } else {
        Hwcap::Named((*names.get(usize::try_from(low).ok()?)?).to_owned())
    };
    Some(CacheEntry {
        name: text(cache, number(entry, 4)?)?.to_owned(),
        path: text(cache, number(entry, 8)?)?.to_owned(),
        flags: u32::try_from(number(entry, 0)?).ok()?,
        os_version: u32::try_from(number(entry, 12)?).ok()?,
        hwcap,
    })
}

fn hwcap_names(cache: &[u8]) -> Option<Vec<&str>> {
    let at = number(cache, 32).filter(|at| *at >= HEADER)?;
    let extension = cache.get(at..)?;
    if number(extension, 0)? != usize::try_from(EXTENSION).ok()? {
        return None;
    }
    let count = number(extension, 4)?.min(MAX_SECTIONS);
    let sections = extension.get(8..)?.chunks_exact(16).take(count);
    let wanted = usize::try_from(HWCAPS_SECTION).ok()?;
    let mut sections = sections.filter(|section| number(section, 0) == Some(wanted));
    let section = sections.next()?;
    let (offset, size) = (number(section, 8)?, number(section, 12)?);
    let table = cache.get(offset..offset.checked_add(size)?)?;
    table.chunks_exact(4).take(MAX_NAMES).map(|name| text(cache, number(name, 0)?)).collect()
}

fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let four: [u8; 4] = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
    usize::try_from(u32::from_le_bytes(four)).ok()
}

fn text(bytes: &[u8], at: usize) -> Option<&str> {
    let rest = bytes.get(at..)?;
    let end = rest.iter().take(MAX_LENGTH).position(|byte| *byte == 0)?;
    let text = std::str::from_utf8(rest.get(..end)?).ok()?;
    (!text.is_empty()).then_some(text)
}
