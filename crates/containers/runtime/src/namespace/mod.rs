//! Processes that enter namespaces: those of a container, and those of a user without privileges.

pub(crate) mod enter;
pub(crate) mod in_mount_ns;
pub(crate) mod join;
pub(crate) mod memfd;
pub mod reexec;
pub mod rootless;
pub(crate) mod sys;
