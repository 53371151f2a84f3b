//! Splits output into lines of bounded length.

use memchr::memchr2;

/// Bytes that are kept of a line; the rest of a longer one is dropped.
pub(crate) const MAX_LINE: usize = 64 << 10;

/// Lines of a stream that arrives in pieces. A carriage return ends a line as well, because progress bars use it.
#[derive(Debug, Default)]
pub(crate) struct LineSplitter {
    partial: Vec<u8>,
}

impl LineSplitter {
    /// Calls `on_line` for each line that these bytes complete. Bytes that are not UTF-8 are replaced.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], on_line: &mut dyn FnMut(&str)) {
        while let Some(at) = memchr2(b'\n', b'\r', bytes) {
            let (line, rest) = bytes.split_at(at);
            if self.partial.is_empty() {
                emit(line, on_line);
            } else {
                self.keep(line);
                emit(&self.partial, on_line);
                self.partial.clear();
            }
            bytes = rest.get(1..).unwrap_or_default();
        }
        self.keep(bytes);
    }

    /// The last line, if it did not end.
    pub(crate) fn finish(&mut self, on_line: &mut dyn FnMut(&str)) {
        emit(&self.partial, on_line);
        self.partial.clear();
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = MAX_LINE.saturating_sub(self.partial.len());
        self.partial.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }
}

fn emit(line: &[u8], on_line: &mut dyn FnMut(&str)) {
    if !line.is_empty() {
        on_line(&String::from_utf8_lossy(line.get(..MAX_LINE).unwrap_or(line)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]]) -> Vec<String> {
        let (mut splitter, mut lines) = (LineSplitter::default(), Vec::new());
        for piece in pieces {
            splitter.feed(piece, &mut |line| lines.push(line.to_owned()));
        }
        splitter.finish(&mut |line| lines.push(line.to_owned()));
        lines
    }

    #[test]
    fn lines_are_the_same_however_they_arrive() {
        let text = b"a=1\r50%\rb=2\r\n\nlast";
        let whole = lines(&[text]);
        assert_eq!(whole, ["a=1", "50%", "b=2", "last"]);
        for cut in 0..text.len() {
            assert_eq!(lines(&[&text[..cut], &text[cut..]]), whole);
        }
        assert_eq!(lines(&[b"\xff=1\n"]), ["\u{fffd}=1"]);
    }

    #[test]
    fn a_line_without_end_takes_bounded_memory() {
        let mut splitter = LineSplitter::default();
        let mut count = 0;
        for _ in 0..100 {
            splitter.feed(&vec![b'x'; 100_000], &mut |_| count += 1);
        }
        assert_eq!((count, splitter.partial.len()), (0, MAX_LINE));
        splitter.feed(b"\nnext\n", &mut |line| count += line.len());
        assert_eq!(count, MAX_LINE + 4);
    }
}
