//! Scans logs for messages.

use cudock_base::bug::Parts;
use std::borrow::Cow;
use std::io::{self, Read};
use std::ops::Range;

use memchr::{memchr, memchr_iter, memrchr};

use crate::catalog::{Catalog, Owner};
use crate::input::{NotText, judge};
use crate::normal::normal;
use crate::report::{Hit, LogReport, ranked};
use crate::smi::SmiTable;

/// The block size: large enough that reading is cheap, small enough for the CPU cache.
const BLOCK: usize = 1 << 20;

/// How far a message may extend beyond the text it was found by, on either side.
const REACH: usize = 8 << 10;

/// The length limit for excerpts.
const EXCERPT: usize = 400;

#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// It could not be read.
    #[error("cannot read the log")]
    Io(#[from] io::Error),
    #[error("this is {}, not a log", .0.what())]
    NotText(NotText),
}

impl<'a> Catalog<'a> {
    /// Reads a log to its end. `progress` is called after each block with the number of bytes read so far.
    pub fn scan(
        &self,
        mut log: impl Read,
        mut progress: impl FnMut(u64),
    ) -> Result<LogReport<'a>, ScanError> {
        let mut scan = Scan::new(self);
        let mut buffer = vec![0; BLOCK + 2 * REACH];
        let mut kept = 0;
        loop {
            let filled = fill(&mut log, &mut buffer, kept)?;
            let block = buffer.part(..filled);
            let last = filled < buffer.len();
            if scan.offset == 0 {
                judge(block).map_err(ScanError::NotText)?;
            }
            let done = scan.block(block, last);
            progress(scan.offset);
            if last {
                return Ok(scan.finish());
            }
            buffer.copy_within(done..filled, 0);
            kept = filled - done;
        }
    }

    pub fn explain(&self, text: &str) -> LogReport<'a> {
        let mut scan = Scan::new(self);
        scan.block(text.as_bytes(), true);
        scan.finish()
    }
}

/// Reads until the buffer is full or the log ends.
fn fill(log: &mut impl Read, buffer: &mut [u8], kept: usize) -> io::Result<usize> {
    let mut filled = kept;
    while let Some(free) = buffer.get_mut(filled..).filter(|free| !free.is_empty()) {
        match log.read(free) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// A message whose fixed text is in the current window.
#[derive(Clone, Copy)]
struct Candidate<'c> {
    owner: &'c Owner,
    /// The start of the text in the block.
    start: usize,
}

struct Scan<'c, 'a> {
    catalog: &'c Catalog<'a>,
    hits: Vec<Option<Hit<'a>>>,
    /// The offset of the current block.
    offset: u64,
    /// The number of newlines before the current block.
    lines: u64,
    /// Whether the last byte was not a newline, so that a last line without one counts too.
    open_line: bool,
    /// The messages to try and those found in the current window, kept to reuse their memory.
    candidates: Vec<Candidate<'c>>,
    matched: Vec<(usize, Range<usize>)>,
    smi: Option<SmiTable>,
}

impl<'c, 'a> Scan<'c, 'a> {
    fn new(catalog: &'c Catalog<'a>) -> Self {
        let hits = vec![None; catalog.entries.len()];
        let (candidates, matched) = (Vec::new(), Vec::new());
        Self { catalog, hits, offset: 0, lines: 0, open_line: false, candidates, matched, smi: None }
    }

    /// Scans a block and returns how far: the rest is scanned again with the next block, so that no message is lost
    /// between blocks. The last block is scanned to its end.
    fn block(&mut self, block: &[u8], last: bool) -> usize {
        let done = if last {
            block.len()
        } else {
            // Enough must follow a line for a message that spans lines; a line without an end is cut.
            let safe = block.len().saturating_sub(2 * REACH);
            block.get(..safe).and_then(|whole| memrchr(b'\n', whole)).map_or(safe, |end| end + 1)
        };
        let mut window = 0..0;
        let catalog = self.catalog;
        let mut candidates = std::mem::take(&mut self.candidates);
        for (text, start) in catalog.finder.find_all(block) {
            if start >= done {
                break;
            }
            if text == catalog.smi {
                let table = || block.get(start..(start + 2 * REACH).min(block.len())).map(SmiTable::parse);
                self.smi = self.smi.take().or_else(|| table().flatten());
                continue;
            }
            if start >= window.end {
                self.window(block, &window, &mut candidates);
                window = window_around(block, window.end, start);
            }
            for owner in catalog.owners.get(text).into_iter().flatten() {
                if !candidates.iter().any(|known| known.owner.entry == owner.entry) {
                    candidates.push(Candidate { owner, start });
                }
            }
        }
        self.window(block, &window, &mut candidates);
        self.candidates = candidates;

        let seen = block.part(..done);
        self.lines += memchr_iter(b'\n', seen).count() as u64;
        self.open_line = seen.last().map_or(self.open_line, |byte| *byte != b'\n');
        self.offset += done as u64;
        done
    }

    /// Tries the messages whose fixed text is in a window, and clears the list of them.
    fn window(&mut self, block: &[u8], window: &Range<usize>, candidates: &mut Vec<Candidate<'c>>) {
        if candidates.is_empty() {
            return;
        }
        // The common case of an error that is logged repeatedly: one message, already known.
        if let [candidate] = candidates.as_slice()
            && self.count_again(candidate.owner.entry)
        {
            candidates.clear();
            return;
        }
        let text = normal(block.get(window.clone()).unwrap_or_default());
        let mut matched = std::mem::take(&mut self.matched);
        for candidate in candidates.drain(..) {
            let entry = candidate.owner.entry;
            // In a line that had to be rewritten, the text is elsewhere.
            let is_as_written = matches!(text, Cow::Borrowed(_));
            let range = if is_as_written && self.is_proven(candidate, window, &text) {
                Some(0..0)
            } else {
                self.find(entry, block, window, &text)
            };
            matched.extend(range.map(|range| (entry, range)));
        }
        for (entry, range) in &matched {
            if matched.len() == 1 || !matched.iter().any(|(other, _)| self.wins(*other, *entry)) {
                self.hit(*entry, block, window.start, &text, range);
            }
        }
        matched.clear();
        self.matched = matched;
    }

    /// Whether a known message is proven to be on a line again, without its expression.
    fn is_proven(&self, candidate: Candidate<'_>, window: &Range<usize>, line: &[u8]) -> bool {
        let known = self.hits.get(candidate.owner.entry).is_some_and(Option::is_some);
        match (&candidate.owner.proof, candidate.start.checked_sub(window.start)) {
            (Some(proof), Some(start)) if known => proof.holds(line, start),
            _ => false,
        }
    }

    /// Counts a known message that consists of its fixed text only; returns whether it did.
    fn count_again(&mut self, entry: usize) -> bool {
        let fixed = self.catalog.entries.get(entry).is_some_and(|entry| entry.is_fixed);
        match self.hits.get_mut(entry) {
            Some(Some(hit)) if fixed => {
                hit.count += 1;
                true
            }
            _ => false,
        }
    }

    /// The range of a message on a line, or beyond its end. For a known message, only its presence matters.
    fn find(&self, entry: usize, block: &[u8], close: &Range<usize>, text: &[u8]) -> Option<Range<usize>> {
        let known = self.hits.get(entry).is_some_and(Option::is_some);
        let entry = self.catalog.entries.get(entry)?;
        let found = if known { entry.is_in(text).then_some(0..0) } else { entry.find(text) };
        found.or_else(|| {
            if !entry.crosses_lines {
                return None;
            }
            let wider = block.get(close.start..(close.end + REACH).min(block.len()))?;
            entry.find(&normal(wider))
        })
    }

    fn wins(&self, winner: usize, loser: usize) -> bool {
        match (self.catalog.entries.get(winner), self.catalog.entries.get(loser)) {
            (Some(winner), Some(loser)) => winner.message.wins_over.contains(&loser.message.id),
            _ => false,
        }
    }

    fn hit(&mut self, entry: usize, block: &[u8], start: usize, text: &[u8], range: &Range<usize>) {
        let Some((entry, slot)) = self.catalog.entries.get(entry).zip(self.hits.get_mut(entry)) else {
            return;
        };
        if let Some(hit) = slot {
            hit.count += 1;
            return;
        }
        let before = block.part(..start);
        *slot = Some(Hit {
            message: entry.message,
            line: self.lines + memchr_iter(b'\n', before).count() as u64 + 1,
            count: 1,
            excerpt: excerpt(text, range),
            group: entry.group(text),
        });
    }

    fn finish(self) -> LogReport<'a> {
        let hits = ranked(self.hits.into_iter().flatten().collect());
        LogReport { hits, bytes: self.offset, lines: self.lines + u64::from(self.open_line), smi: self.smi }
    }
}

/// The line around an offset, not before `from`, bounded by the reach of a message: a line may be megabytes long.
fn window_around(block: &[u8], from: usize, at: usize) -> Range<usize> {
    let from = from.max(at.saturating_sub(REACH));
    let to = block.len().min(at + REACH);
    let start =
        block.get(from..at).and_then(|before| memrchr(b'\n', before)).map_or(from, |end| from + end + 1);
    let end = block.get(at..to).and_then(|after| memchr(b'\n', after)).map_or(to, |end| at + end);
    start..end
}

/// The matched line, or the part around the match.
fn excerpt(text: &[u8], range: &Range<usize>) -> String {
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let shown = if line.len() <= EXCERPT {
        line
    } else {
        let start = range.start.min(line.len()).saturating_sub(EXCERPT / 4);
        line.get(start..(start + EXCERPT).min(line.len())).unwrap_or_default()
    };
    String::from_utf8_lossy(shown).trim().chars().filter(|c| !c.is_control() || *c == '\t').collect()
}
