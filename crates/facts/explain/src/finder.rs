//! Finds the next of many texts, faster than an automaton.
//!
//! Hundreds of texts are too many for the vector search of `aho-corasick` (64 at most), and its automaton takes a
//! step per byte: 300 MB/s where this was measured. So only every fourth byte is examined. A text of seven bytes or more
//! covers, at any offset, one whole group of four bytes that starts at a multiple of four; all groups it can cover are
//! known beforehand, and a filter in the L1 cache excludes all texts with one lookup.
//!
//! Four bytes are not enough to distinguish a text from an ordinary line: with 450 messages, one group in fourteen of such
//! lines was also a group of a text ("kern", "work", "comp"). So the filter uses the four bytes that follow as well. Nearly all texts have eleven bytes or more and so cover all eight; for a shorter one the filter accepts
//! anything where the text does not reach.

use cudock_base::bug::Parts;

/// The number of bytes per step.
const STRIDE: usize = 4;

/// The number of bytes in a filter key.
const KEY: usize = 8;

/// The length at which a text covers a whole group at any offset.
pub(crate) const SHORTEST: usize = 2 * STRIDE - 1;

/// The length at which a text covers a whole key at any offset.
const LONG: usize = KEY + STRIDE - 1;

/// Words in the filter, as a power of two: 16 KiB, half of the fastest cache. With 770 texts, one key in a hundred
/// of ordinary lines passes.
const WORDS: u32 = 11;

const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// The bits of a word, looked up because a shift by a variable takes three times as long on most x86 processors.
#[allow(clippy::indexing_slicing, reason = "checked when it is compiled")]
const BIT: [u64; 64] = {
    let mut bits = [1; 64];
    let mut index = 1;
    while index < 64 {
        bits[index] = bits[index - 1] << 1;
        index += 1;
    }
    bits
};

#[derive(Debug)]
pub(crate) struct Finder {
    texts: Vec<Vec<u8>>,
    /// A bit is clear where a text has a key.
    filter: Box<[u64; 1 << WORDS]>,
    /// The keys of the texts, in the order of their words in the filter.
    keys: Vec<Key>,
    /// Where in `keys` those of each word begin, and where the last of them ends.
    starts: Vec<usize>,
}

/// Eight bytes of a text, or fewer where it ends sooner.
#[derive(Debug)]
struct Key {
    bytes: u64,
    /// Set where the text has a byte.
    mask: u64,
    text: usize,
    /// How far from the text's start.
    offset: usize,
}

/// Where the filter keeps a key. The word and the bit `near` depend on the first five bytes only, because a bit of a
/// product depends on no higher bit of its factors; `far` depends on all eight.
struct Slot {
    word: usize,
    near: usize,
    far: usize,
}

impl Slot {
    fn of(bytes: u64) -> Self {
        let hash = bytes.wrapping_mul(MULTIPLIER);
        Self {
            word: (hash >> (40 - WORDS)) as usize & ((1 << WORDS) - 1),
            near: (hash >> (35 - WORDS)) as usize & 31,
            far: 32 + (hash >> 59) as usize,
        }
    }
}

impl Finder {
    /// Takes texts of at least [`SHORTEST`] bytes; shorter ones are not found.
    pub(crate) fn new(texts: Vec<Vec<u8>>) -> Self {
        let mut filter = Box::new([u64::MAX; 1 << WORDS]);
        let mut keys: Vec<(usize, Key)> = Vec::with_capacity(texts.len() * STRIDE);
        for (index, text) in texts.iter().enumerate() {
            let length = if text.len() >= LONG { LONG } else { SHORTEST };
            let start = rarest_window(text, length);
            for offset in start..start + STRIDE {
                let Some(known) = text.get(offset..).filter(|known| known.len() >= STRIDE) else { continue };
                let (bytes, mask) = key(known);
                // The fifth byte is part of what finds the word, so a text that ends before it has 256 words.
                let fifths = if known.len() == STRIDE { 0..=255 } else { 0..=0 };
                for fifth in fifths {
                    let slot = Slot::of(bytes | fifth << 32);
                    let far = if known.len() >= KEY { 1 << slot.far } else { u64::from(u32::MAX) << 32 };
                    if let Some(word) = filter.get_mut(slot.word) {
                        *word &= !(1 << slot.near | far);
                    }
                    keys.push((slot.word, Key { bytes, mask, text: index, offset }));
                }
            }
        }
        keys.sort_by_key(|(word, _)| *word);
        let starts = (0..=1 << WORDS).map(|word| keys.partition_point(|(other, _)| *other < word)).collect();
        Self { texts, filter, keys: keys.into_iter().map(|(_, key)| key).collect(), starts }
    }

    /// Every text in `block`, by its number and where it begins, roughly in order: of texts that overlap, a later
    /// one may come first. One that has a key twice is returned twice.
    pub(crate) fn find_all<'a>(&'a self, block: &'a [u8]) -> Matches<'a> {
        let (groups, _) = block.as_chunks::<STRIDE>();
        Matches { finder: self, block, groups, next: 0, at: 0, bytes: 0, keys: [].iter() }
    }

    /// How many groups lie before the first whose key passes the filter.
    fn next_passing(&self, groups: &[[u8; STRIDE]]) -> Option<usize> {
        groups.windows(2).position(|pair| {
            pair.as_flattened().first_chunk().is_some_and(|bytes| self.passes(u64::from_le_bytes(*bytes)))
        })
    }

    /// Whether a key may be that of a text.
    #[inline]
    fn passes(&self, bytes: u64) -> bool {
        let slot = Slot::of(bytes);
        let word = self.filter.get(slot.word).copied().unwrap_or(u64::MAX);
        let bit = |index: usize| BIT.get(index).copied().unwrap_or(0);
        word & (bit(slot.near) | bit(slot.far)) == 0
    }

    fn keys_in(&self, word: usize) -> &[Key] {
        let bounds = self.starts.get(word).zip(self.starts.get(word + 1));
        bounds.and_then(|(start, end)| self.keys.get(*start..*end)).unwrap_or_default()
    }
}

/// The texts of a finder in a block.
#[derive(Debug)]
pub(crate) struct Matches<'a> {
    finder: &'a Finder,
    block: &'a [u8],
    groups: &'a [[u8; STRIDE]],
    /// The group to go on with.
    next: usize,
    /// The key that is looked at, and the keys of texts that it may be.
    at: usize,
    bytes: u64,
    keys: std::slice::Iter<'a, Key>,
}

impl Iterator for Matches<'_> {
    type Item = (usize, usize);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            for key in self.keys.by_ref() {
                if self.bytes & key.mask == key.bytes
                    && let Some(start) = self.at.checked_sub(key.offset)
                    && let Some(text) = self.finder.texts.get(key.text)
                    && self.block.get(start..).is_some_and(|rest| rest.starts_with(text))
                {
                    return Some((key.text, start));
                }
            }
            let groups = self.groups.get(self.next..).filter(|groups| !groups.is_empty())?;
            // The last group has no whole key; a short text may end there.
            self.next += self.finder.next_passing(groups).unwrap_or(groups.len() - 1);
            self.at = self.next * STRIDE;
            self.next += 1;
            (self.bytes, _) = key(self.block.part(self.at..));
            self.keys = self.finder.keys_in(Slot::of(self.bytes).word).iter();
        }
    }
}

/// The first eight bytes as a number, and which of its bytes there are: a text may end before the eighth.
fn key(bytes: &[u8]) -> (u64, u64) {
    if let Some(whole) = bytes.first_chunk::<KEY>() {
        return (u64::from_le_bytes(*whole), u64::MAX);
    }
    let fold = |(number, mask), (index, byte): (usize, &u8)| {
        (number | u64::from(*byte) << (8 * index), mask | 0xff_u64 << (8 * index))
    };
    bytes.iter().enumerate().fold((0, 0), fold)
}

/// Where in a text the bytes are that other lines are least likely to have.
fn rarest_window(text: &[u8], length: usize) -> usize {
    let mut sum: u32 = text.iter().take(length).map(|byte| commonness(*byte)).sum();
    let mut rarest = (sum, 0);
    for (index, (left, entered)) in text.iter().zip(text.iter().skip(length)).enumerate() {
        sum = sum + commonness(*entered) - commonness(*left);
        rarest = rarest.min((sum, index + 1));
    }
    rarest.1
}

/// How common a byte is in logs, roughly.
fn commonness(byte: u8) -> u32 {
    match byte {
        b' ' | b'e' | b't' | b'a' | b'o' | b'n' | b'i' | b'r' | b's' | b'0'..=b'9' | b'.' => 8,
        b'l' | b'd' | b'c' | b'u' | b'm' | b'p' | b'-' | b'/' | b':' | b'_' => 6,
        b'g' | b'h' | b'f' | b'b' | b'y' | b'v' | b'w' => 4,
        b'A'..=b'Z' => 3,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(finder: &Finder, block: &str) -> Vec<(usize, usize)> {
        let mut found: Vec<(usize, usize)> = finder.find_all(block.as_bytes()).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    #[test]
    fn a_text_is_found_at_every_alignment() {
        let finder = Finder::new(vec![b"driver/library".to_vec()]);
        for before in 0..16 {
            let block = format!("{}driver/library mismatch", "x".repeat(before));
            assert_eq!(found(&finder, &block), [(0, before)]);
        }
    }

    #[test]
    fn a_text_cut_off_at_the_end_is_not_found() {
        let finder = Finder::new(vec![b"driver/library".to_vec()]);
        assert!(found(&finder, "the driver/librar").is_empty());
    }

    proptest! {
        #[test]
        fn it_finds_what_a_plain_search_finds(block in "[ab ]{0,80}", texts in prop::collection::vec("[ab ]{7,9}", 1..6)) {
            let finder = Finder::new(texts.iter().map(|text| text.as_bytes().to_vec()).collect());
            let mut plain: Vec<(usize, usize)> = Vec::new();
            for (number, text) in texts.iter().enumerate() {
                plain.extend((0..block.len()).filter(|start| block[*start..].starts_with(text)).map(|start| (number, start)));
            }
            prop_assert_eq!(found(&finder, &block), plain);
        }
    }
}
