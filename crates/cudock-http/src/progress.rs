//! How far a transfer has come, for those who draw it.

use std::time::Duration;

/// Observes transfers. Calls come from the thread that transfers, several at once where several threads do; they
/// should return quickly. `what` is a digest, an image's name or a file's name.
pub trait Progress: Send + Sync {
    /// A transfer begins; `already` bytes are there from an earlier run. `size` is `None` if the server does not tell it.
    fn started(&self, _what: &str, _size: Option<u64>, _already: u64) {}

    /// This many bytes are there now. The number falls when a server makes the transfer start over.
    fn at(&self, _what: &str, _bytes: u64) {}

    /// Another process writes the same file, and this one waits for it.
    fn waiting(&self, _what: &str) {}

    /// An attempt failed and another follows after `wait`.
    fn retrying(&self, _what: &str, _reason: &str, _wait: Duration) {}

    /// The transfer is complete and verified.
    fn finished(&self, _what: &str) {}
}

pub struct NoProgress;

impl Progress for NoProgress {}
