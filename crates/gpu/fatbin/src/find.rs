//! Finds GPU code in a range of bytes.

use crate::bare::{self, BareCubin};
use crate::container::{self, Damage, Module, is_plausible, read};

/// Maximum number of bare frames in a range that turn out to be other data, before its search ends:
/// real files have a few.
const MAX_OTHERS: usize = 10_000;

/// Alignment of GPU code that is loaded: of containers by their format, and of all known bare frames.
const ALIGNMENT: usize = 8;

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

/// Parses all containers in a range, and the bare cubins if it may contain other data. Payloads are skipped, not searched:
/// what looks like a container inside of one does not belong to this file.
pub(crate) fn code(
    range: &DataRange<'_>,
    modules: &mut Vec<Module>,
    bare_cubins: &mut Vec<BareCubin>,
    damage: &mut Vec<Damage>,
) {
    let (mut at, mut others) = (0, 0);
    while let Some(start) = next_start(range, at, !range.only_containers && others <= MAX_OTHERS) {
        let bytes = range.bytes.get(start..).unwrap_or_default();
        let offset = range.offset + start as u64;
        let mut size = 1;
        if bytes.starts_with(&bare::MAGIC) {
            if let Some(cubin) = bare::parse(bytes, offset, &range.section) {
                size = cubin.stored;
                bare_cubins.push(cubin);
            } else {
                others += 1;
            }
        } else if range.only_containers || is_plausible(bytes) {
            match read(bytes, offset, &range.section) {
                Ok((module, broken)) => {
                    size = module.size;
                    modules.push(module);
                    damage.extend(broken);
                }
                Err(broken) if range.only_containers => damage.push(broken),
                Err(_) => {}
            }
        }
        at = usize::try_from(size).ok().and_then(|size| start.checked_add(size)).unwrap_or(usize::MAX);
    }
}

/// Where the next container starts, or the next bare frame if they are looked for.
fn next_start(range: &DataRange<'_>, at: usize, with_frames: bool) -> Option<usize> {
    /// Bytes that are compared by vector instructions, because no word is a branch.
    const BLOCK: usize = 128;
    let address = range.address.wrapping_add(at as u64);
    let padding = usize::try_from(address.wrapping_neg() % ALIGNMENT as u64).ok()?;
    let rest = range.bytes.get(at.checked_add(padding)?..)?;
    let first = u32::from_le_bytes(container::MAGIC);
    let other = u32::from_le_bytes(if with_frames { bare::MAGIC } else { container::MAGIC });
    let is_start = |word: &[u8; ALIGNMENT]| {
        #[allow(clippy::cast_possible_truncation, reason = "the first half")]
        let magic = u64::from_le_bytes(*word) as u32;
        magic == first || magic == other
    };
    let has_start = |block: &&[u8; BLOCK]| {
        block.as_chunks().0.iter().fold(false, |has_start, word| has_start | is_start(word))
    };
    let before = rest.as_chunks().0.iter().take_while(|block| !has_start(block)).count() * BLOCK;
    let found = rest.get(before..)?.as_chunks().0.iter().position(is_start)?;
    Some(at + padding + before + found * ALIGNMENT)
}
