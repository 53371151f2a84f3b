//! Resources: their common parts.

mod delete;
pub(crate) mod groups;
pub(crate) mod operation;
pub(crate) mod provider;
pub(crate) mod resource;
pub(crate) mod target;
