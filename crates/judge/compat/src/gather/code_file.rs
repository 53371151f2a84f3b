//! Files with GPU code, and whether everything that they load is in the subject.

use super::binary::components::vendor_library;
use super::file_facts::FileCode;
use crate::evidence::{CodeFile, Role};

/// Whether a library that is not in the subject is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Completeness {
    /// Everything that will be there is in it.
    Complete,
    /// Other parts bring the rest.
    Partial,
}

/// A file with GPU code, by its path.
pub(crate) struct CodeAt {
    pub(crate) path: String,
    pub(crate) code: FileCode,
}

/// A file's code in a role; NVIDIA's own libraries have theirs.
pub(crate) fn code_file(at: CodeAt, role: Role) -> CodeFile {
    let role = if vendor_library(&at.path).is_some() { Role::Vendor } else { role };
    CodeFile {
        path: at.path,
        role,
        patterns: at.code.patterns,
        device_linked: at.code.device_linked,
        loose: at.code.loose,
        toolkit: at.code.toolkit,
        embeds: if role == Role::Vendor { Vec::new() } else { at.code.embeds },
        needed: at.code.needed,
    }
}
