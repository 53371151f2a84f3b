//! Reads and slims GPU code in host binaries.
//!
//! Whether a program runs on a GPU depends on the SASS and PTX in its libraries, in a format that NVIDIA does not document.
//! This crate reads it from ELF executables and libraries, static archives, fat binaries and cubins. A *container* is one
//! module; the driver picks one of its *entries* for the GPU.
//!
//! All of that is in headers. Payloads are only decompressed on request.
//!
//! Files are untrusted: arithmetic is checked, memory is not allocated based on what a header claims, and unknown data is
//! counted and reported. See `docs/fatbin.md` for what is known about the format.

mod bare;
mod bytes;
mod code_target;
mod container;
mod cubin;
mod elf;
mod files;
mod find;
mod kernels;
mod libraries;
mod payload;
mod read;
mod slim;
mod summary;
mod targets;
mod wrappers;

pub use bare::BareCubin;
pub use code_target::CodeTarget;
pub use container::{Codec, Damage, EntryKind, FatbinEntry, GroupMember, Module};
pub use cubin::{Cubin, Kernel};
pub use cudock_mmap::{MapError, map};
pub use elf::{Linkage, VersionNeed, dynamic_linkage, section, sections};
pub use files::{FileError, InspectError, Inspected, inspect};
pub use libraries::{KeptLibraries, KnownUse, LinkedFile, is_cuda_library, is_library, library_stem};
pub use payload::PayloadError;
pub use read::{Binary, FileKind, ReadError, is_candidate, read};
pub use slim::{
    CompactError, Patch, SlimError, SlimJob, SlimOutput, SlimPlan, Slimmed, in_memory, plan, slim, slim_bytes,
};
pub use summary::{CodeSummary, Coverage};
pub use targets::ModuleTargets;
