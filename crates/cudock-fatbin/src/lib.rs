//! GPU code in host binaries.
//!
//! Whether a program runs on a card is decided by the machine code and PTX inside its libraries, in a format that
//! NVIDIA does not document. This crate reads it from bytes: ELF executables and libraries, static archives, bare fat
//! binaries and cubins. A *container* is one module; the driver picks one of its *entries* for the card at hand.
//!
//! Headers tell all of that without decompressing anything. Payloads are opened only when asked for.
//!
//! Nothing is trusted: sums are checked, nothing is allocated because a header claims it, and what is not known is
//! counted and reported. See `docs/fatbin.md` for what is known of the format and how it was found out.

mod bytes;
mod container;
mod cubin;
mod elf;
mod files;
mod find;
mod kernels;
mod payload;
mod read;
mod slim;
mod summary;
mod targets;
mod wrappers;

pub use container::{Arch, Codec, Damage, Entry, EntryKind, Member, Module, Variant};
pub use cubin::{Cubin, Kernel};
pub use cudock_map::{MapError, map};
pub use elf::{Linkage, VersionNeed, section, sections};
pub use files::{FileError, Inspected, Trouble, inspect};
pub use payload::PayloadError;
pub use read::{Binary, FileKind, ReadError, is_candidate, read};
pub use slim::{Code, CompactError, Job, Output, Patch, Plan, SlimError, Slimmed, in_memory, plan, slim};
pub use summary::{CodeKind, Coverage, Line};
pub use targets::{PtxTarget, Targets};
