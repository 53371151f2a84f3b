//! What the containers of a group write, for people: each line behind its container's name.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// Lines are broken here, so that one without end does not fill the memory.
const LONGEST: u64 = 16 << 10;

/// Where a line goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    /// To standard output.
    Out,
    /// To standard error.
    Err,
}

/// The one that speaks for all containers.
#[derive(Debug)]
pub(super) struct Voice {
    width: usize,
    /// Whether anyone listens.
    attached: bool,
}

impl Voice {
    pub(super) fn new<'a>(names: impl Iterator<Item = &'a str>, attached: bool) -> Arc<Self> {
        Arc::new(Self { width: names.map(str::len).max().unwrap_or_default(), attached })
    }

    pub(super) fn is_attached(&self) -> bool {
        self.attached
    }

    /// Says what happened to a container, or to the group. It goes to standard error: it is not theirs.
    pub(super) fn say(&self, name: &str, text: &str) {
        if self.attached {
            self.line(name, ": ", text.as_bytes(), Stream::Err);
        }
    }

    /// Passes on what a container writes, until its end.
    pub(super) fn follow(
        self: &Arc<Self>,
        name: &str,
        from: impl Read + Send + 'static,
        stream: Stream,
    ) -> io::Result<JoinHandle<()>> {
        let (voice, name) = (Arc::clone(self), name.to_owned());
        thread::Builder::new().name(format!("output of {name}")).stack_size(128 << 10).spawn(move || {
            let mut from = BufReader::new(from);
            let mut line = Vec::new();
            while matches!(from.by_ref().take(LONGEST).read_until(b'\n', &mut line), Ok(1..)) {
                voice.line(&name, "| ", line.strip_suffix(b"\n").unwrap_or(&line), stream);
                line.clear();
            }
        })
    }

    fn line(&self, name: &str, sign: &str, text: &[u8], stream: Stream) {
        let whole = self.written(name, sign, text);
        // Whoever read our output may be gone; the containers go on, and their logs are kept.
        let _ = match stream {
            Stream::Out => io::stdout().lock().write_all(&whole).and_then(|()| io::stdout().flush()),
            Stream::Err => io::stderr().lock().write_all(&whole),
        };
    }

    fn written(&self, name: &str, sign: &str, text: &[u8]) -> Vec<u8> {
        let mut whole = format!("{name:width$} {sign}", width = self.width).into_bytes();
        whole.extend_from_slice(text);
        whole.push(b'\n');
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_in_front_in_one_column() {
        let voice = Voice::new(["a", "gateway"].into_iter(), true);
        assert_eq!(voice.written("a", "| ", b"hi"), b"a       | hi\n");
        assert_eq!(voice.written("gateway", ": ", b""), b"gateway : \n");
    }
}
