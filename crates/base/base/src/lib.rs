//! Small helpers that other crates share.
//!
//! Nothing here knows about CUDA, containers or Azure. A helper that two crates need moves here in the commit that adds
//! the second use.

mod arch;
mod arithmetic;
mod date;
mod digest;
mod environment;
mod file_stamp;
pub mod files;
pub mod format;
mod money;
mod new_files;
pub mod percent;
mod process;
pub mod process_tree;
mod rate;
mod report;
mod rng;
mod scratch;
mod secret;
pub mod shell;
mod span;
pub mod suggest;
pub mod svg;
mod sync;
mod sys;
pub mod table;
pub mod terminal;
pub mod text;
mod timestamp;
mod usage;

pub use arch::Arch;
pub use arithmetic::mul_div_ceil;
pub use date::{Date, DateError};
pub use digest::{Algorithm, Digest, DigestError, Hasher};
pub use environment::{CUDOCK_CACHE, CUDOCK_STATE, Environment};
pub use file_stamp::FileStamp;
pub use files::FileError;
pub use money::{Usd, UsdError, usd_text};
pub use new_files::{NewFilesError, write_new_files};
pub use process::{OutputError, bounded_output};
pub use rate::Rate;
pub use report::{ErrorKind, Excerpt, Report, did_you_mean};
pub use rng::Rng;
pub use scratch::ScratchDir;
pub use secret::Secret;
pub use span::{LineIndex, Span};
pub use sync::{lock, try_parallel};
pub use sys::tie_to_parent;
pub use timestamp::Timestamp;
pub use usage::UsageError;
