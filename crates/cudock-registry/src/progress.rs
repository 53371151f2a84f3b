//! How far a transfer has come, told to whoever wants to draw it.

use std::time::Duration;

/// Listens to transfers. Calls come from the thread that transfers, several at once where several threads do; they
/// should return quickly. `what` is a digest, a daemon's image by its name, or a
/// file's name.
pub trait Progress: Send + Sync {
    /// A transfer begins; `already` bytes were there from an earlier run. `size` is known for blobs only.
    fn started(&self, what: &str, size: Option<u64>, already: u64) {
        let _ = (what, size, already);
    }

    /// So many bytes are there now. The number falls when a server makes us start over.
    fn at(&self, what: &str, bytes: u64) {
        let _ = (what, bytes);
    }

    /// Another process writes the same blob; we wait until it has done so, or has given up.
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

/// For when nobody listens.
pub struct Silent;

impl Progress for Silent {}
