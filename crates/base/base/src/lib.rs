//! Small helpers that other crates share.
//!
//! Nothing here knows about CUDA, containers or Azure. A helper that two crates need moves here in the commit that adds
//! the second use.

mod arch;
pub mod bug;
pub mod chart;
mod codec;
mod digest;
mod environment;
pub mod files;
mod number;
pub mod process;
pub mod protobuf;
mod report;
mod secret;
pub mod shell;
pub mod svg;
mod sync;
pub mod text;
mod time;
mod usage;

pub use arch::{Arch, NamedArch};
pub use codec::Codec;
pub use digest::{Algorithm, Digest, DigestError, Hasher};
pub use environment::{CUDOCK_CACHE, CUDOCK_STATE, Environment};
pub use files::FileError;
pub use files::generated::{NewFilesError, write_new_files};
pub use files::scratch::ScratchDir;
pub use files::stamp::FileStamp;
pub use number::arithmetic::mul_div_ceil;
pub use number::money::{Usd, UsdError, usd_text};
pub use number::quantity::{ByteRate, ByteSize, NUMBER_PATTERN, QuantityError, TimeSpan};
pub use number::rate::Rate;
pub use number::rng::Rng;
pub use process::sys::tie_to_parent;
pub use process::{OutputError, bounded_output};
pub use report::{ErrorKind, Excerpt, Report, did_you_mean};
pub use secret::Secret;
pub use sync::{cores, lock, parallel, try_parallel};
pub use text::span::{LineIndex, Span};
pub use time::date::{Date, DateError};
pub use time::timestamp::Timestamp;
pub use usage::UsageError;
