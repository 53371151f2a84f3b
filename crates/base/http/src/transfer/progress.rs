//! How far a transfer has come, for those who draw it.

use std::time::Duration;

/// Observes transfers. Calls come from the thread that transfers, several at once where several threads do; they
/// should return quickly. `what` is a digest, an image's name or a file's name.
pub trait Progress: Send + Sync {
    /// A transfer begins; `already` bytes exist from an earlier run. `size` is `None` if the server
    /// does not report it.
    fn started(&self, what: &str, size: Option<u64>, already: u64) {
        let _ = (what, size, already);
    }

    /// This many bytes are there now. The number falls when a server makes the transfer start over.
    fn at(&self, what: &str, bytes: u64) {
        let _ = (what, bytes);
    }

    /// Another process writes the same file, and this one waits for it.
    fn waiting(&self, what: &str) {
        let _ = what;
    }

    /// An attempt failed and another follows after `wait`.
    fn retrying(&self, what: &str, reason: &str, wait: Duration) {
        let _ = (what, reason, wait);
    }

    /// The transfer is complete and verified.
    fn finished(&self, what: &str) {
        let _ = what;
    }
}

/// Observes nothing.
pub struct NoProgress;

impl Progress for NoProgress {}
