//! The journal of a sweep: an append-only file of JSON lines that is written before the outside is changed.
//!
//! Each line has the length and the CRC-32 of its record, so a line that was being written when the machine lost power is
//! recognized, and cut off when the journal is opened again. A bad line that is followed by good ones is not the end of
//! anything but damage, which is reported and never repaired. One process at a time has the file open for writing; others
//! may read it.

mod error;
mod file;
mod line;
mod log;

pub use self::error::JournalError;
pub use self::file::Journal;
pub use self::line::{Parsed, parse};
pub use self::log::SweepLog;
