//! The files of an image: where they come from, and which are left out.

pub(crate) mod empty_library;
pub(crate) mod file;
pub(crate) mod own;
pub(crate) mod rules;
pub(crate) mod system;
