//! Finds containers in a range of bytes.

use memchr::memmem;

use crate::container::{Damage, MAGIC, Module, is_plausible, read};

/// A range of a file that may contain containers.
#[derive(Debug, Clone)]
pub(crate) struct DataRange<'a> {
    pub(crate) section: String,
    pub(crate) offset: u64,
    /// The address at which it is loaded: containers are aligned there.
    pub(crate) address: u64,
    pub(crate) bytes: &'a [u8],
    /// Whether it contains only containers, so that anything else is a corruption.
    pub(crate) only_containers: bool,
}

/// Parses all containers in a range. Payloads are skipped, not searched: what looks like a container inside of one does not
/// belong to this file.
pub(crate) fn containers(range: &DataRange<'_>, modules: &mut Vec<Module>, damage: &mut Vec<Damage>) {
    let finder = memmem::Finder::new(&MAGIC);
    let mut at = 0;
    while let Some(found) = range.bytes.get(at..).and_then(|rest| finder.find(rest)) {
        let start = at + found;
        at = start + 1;
        if !range.address.wrapping_add(start as u64).is_multiple_of(8) {
            continue;
        }
        let Some(bytes) = range.bytes.get(start..) else { break };
        let offset = range.offset + start as u64;
        if !range.only_containers && !is_plausible(bytes) {
            continue;
        }
        match read(bytes, offset, &range.section) {
            Ok((module, broken)) => {
                at = usize::try_from(module.size)
                    .ok()
                    .and_then(|size| start.checked_add(size))
                    .unwrap_or(usize::MAX);
                modules.push(module);
                damage.extend(broken);
            }
            Err(broken) if range.only_containers => damage.push(broken),
            Err(_) => {}
        }
    }
}
