//! Files of containers and volumes, of which either side may be hostile.

pub mod copy;
mod directory;
pub(crate) mod in_root;
pub(crate) mod remove;
pub(crate) mod trash;
pub(crate) mod tree;
