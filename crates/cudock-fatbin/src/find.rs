//! Finds GPU code in a range of bytes.

use std::sync::LazyLock;

use aho_corasick::packed::Searcher;
use memchr::memmem;

use crate::bare::{self, BareCubin};
use crate::container::{self, Damage, Module, is_plausible, read};

/// Bare frames that turn out to be other data, before no more are searched in a range: no real file has more than a few.
const MAX_OTHERS: usize = 10_000;

/// Finds containers and bare frames in one pass; none on a processor without vector instructions for it.
static BOTH: LazyLock<Option<Searcher>> = LazyLock::new(|| Searcher::new([container::MAGIC, bare::MAGIC]));

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
    let containers = memmem::Finder::new(&container::MAGIC);
    let frames = memmem::Finder::new(&bare::MAGIC);
    let next = |at: usize, others: usize| {
        let rest = range.bytes.get(at..)?;
        let found = match BOTH.as_ref() {
            _ if range.only_containers || others > MAX_OTHERS => containers.find(rest),
            Some(both) => both.find(rest).map(|found| found.start()),
            None => containers.find(rest).into_iter().chain(frames.find(rest)).min(),
        };
        Some(at + found?)
    };
    let (mut at, mut others) = (0, 0);
    while let Some(start) = next(at, others) {
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
        } else if range.address.wrapping_add(start as u64).is_multiple_of(8)
            && (range.only_containers || is_plausible(bytes))
        {
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
