//! Evidence of Python packages.

mod conda;
pub(in crate::gather) mod conflicts;
pub(in crate::gather) mod frameworks;
pub(in crate::gather) mod package_names;
mod packages;
pub(in crate::gather) mod wheel;
