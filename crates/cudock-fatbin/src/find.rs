//! Containers anywhere in a stretch of bytes.

use memchr::memmem;

use crate::container::{Damage, MAGIC, Module, is_plausible, read};

/// A stretch of a file that may hold containers.
#[derive(Debug, Clone)]
pub(crate) struct Stretch<'a> {
    pub(crate) section: String,
    /// Where it begins in the file.
    pub(crate) offset: u64,
    /// Where it is loaded: containers are aligned there.
    pub(crate) address: u64,
    pub(crate) bytes: &'a [u8],
    /// Whether it holds nothing but containers, so that anything else in it is damage.
    pub(crate) only_containers: bool,
}

/// Reads all containers of a stretch. Payloads are passed over, not searched: what looks like a container inside one
/// is not this file's.
pub(crate) fn containers(stretch: &Stretch<'_>, modules: &mut Vec<Module>, damage: &mut Vec<Damage>) {
    let finder = memmem::Finder::new(&MAGIC);
    let mut at = 0;
    while let Some(found) = stretch.bytes.get(at..).and_then(|rest| finder.find(rest)) {
        let start = at + found;
        at = start + 1;
        if !stretch.address.wrapping_add(start as u64).is_multiple_of(8) {
            continue;
        }
        let Some(bytes) = stretch.bytes.get(start..) else { break };
        let offset = stretch.offset + start as u64;
        if !stretch.only_containers && !is_plausible(bytes) {
            continue;
        }
        match read(bytes, offset, &stretch.section) {
            Ok((module, broken)) => {
                at = usize::try_from(module.size)
                    .ok()
                    .and_then(|size| start.checked_add(size))
                    .unwrap_or(usize::MAX);
                modules.push(module);
                damage.extend(broken);
            }
            Err(broken) if stretch.only_containers => damage.push(broken),
            Err(_) => {}
        }
    }
}
