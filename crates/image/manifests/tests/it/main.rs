//! Tests the readers of Dockerfiles and of Python environment files.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::format_push_string,
    reason = "a test fails by panicking"
)]

mod dockerfile;
mod environments;

use cudock_base::Arch;
use cudock_manifests::{Declared, DeclaredError, FileKind, NoFiles, read_with_files};

/// Reads a file by itself, for a machine with an x86-64 processor.
fn read(kind: FileKind, name: &str, text: &str) -> Result<Declared, DeclaredError> {
    read_for(kind, name, text, Arch::X86_64)
}

fn read_for(kind: FileKind, name: &str, text: &str, arch: Arch) -> Result<Declared, DeclaredError> {
    read_with_files(kind, name, text, arch, "", &NoFiles)
}
