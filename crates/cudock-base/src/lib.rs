//! Small things every other crate needs, written once.
//!
//! Nothing here knows about CUDA, containers or Azure. A helper that two crates need moves here in the commit that adds
//! the second use.

mod arch;
mod date;
pub mod files;
pub mod format;
pub mod percent;
mod report;
mod secret;
pub mod shell;
mod span;
pub mod suggest;
pub mod text;
mod timestamp;

pub use arch::Arch;
pub use date::{Date, DateError};
pub use report::{Failure, Report};
pub use secret::Secret;
pub use span::{LineIndex, Span};
pub use timestamp::Timestamp;
