//! Prints the output of a group's containers, each line after the name of its container.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crate::container::log::Stream;
use crate::error::{OnError, RuntimeError};

/// Maximum length of a line; longer ones are split.
const MAX_LINE: u64 = 16 << 10;

#[derive(Debug)]
pub(super) struct LogMux {
    width: usize,
    attached: bool,
}

impl LogMux {
    pub(super) fn new<'a>(names: impl Iterator<Item = &'a str>, attached: bool) -> Arc<Self> {
        Arc::new(Self { width: names.map(str::len).max().unwrap_or_default(), attached })
    }

    pub(super) fn is_attached(&self) -> bool {
        self.attached
    }

    /// Prints what happened to a container or to the group, on standard error.
    pub(super) fn announce(&self, name: &str, text: &str) {
        if self.attached {
            self.line(name, ": ", text.as_bytes(), Stream::Err);
        }
    }

    /// Prints what a container writes, in a thread that ends with its output.
    pub(super) fn follow(
        self: &Arc<Self>,
        name: &str,
        from: impl Read + Send + 'static,
        stream: Stream,
    ) -> Result<JoinHandle<()>, RuntimeError> {
        let (mux, name) = (Arc::clone(self), name.to_owned());
        spawn(format!("output of {name}"), move || {
            let mut from = BufReader::new(from);
            let mut line = Vec::new();
            while matches!(from.by_ref().take(MAX_LINE).read_until(b'\n', &mut line), Ok(1..)) {
                mux.line(&name, "| ", line.strip_suffix(b"\n").unwrap_or(&line), stream);
                line.clear();
            }
        })
    }

    fn line(&self, name: &str, separator: &str, text: &[u8], stream: Stream) {
        let line = self.format(name, separator, text);
        // The reader of our output may be gone; the containers continue, and their logs are kept.
        let _ = match stream {
            Stream::Out => io::stdout().lock().write_all(&line).and_then(|()| io::stdout().flush()),
            Stream::Err => io::stderr().lock().write_all(&line),
        };
    }

    fn format(&self, name: &str, separator: &str, text: &[u8]) -> Vec<u8> {
        let mut whole = format!("{name:width$} {separator}", width = self.width).into_bytes();
        whole.extend_from_slice(text);
        whole.push(b'\n');
        whole
    }
}

/// Starts a thread that only waits, with a small stack.
pub(super) fn spawn(
    name: String,
    task: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, RuntimeError> {
    thread::Builder::new().name(name).stack_size(128 << 10).spawn(task).when("cannot start a thread")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_aligned_in_one_column() {
        let mux = LogMux::new(["a", "gateway"].into_iter(), true);
        assert_eq!(mux.format("a", "| ", b"hi"), b"a       | hi\n");
        assert_eq!(mux.format("gateway", ": ", b""), b"gateway : \n");
    }
}
