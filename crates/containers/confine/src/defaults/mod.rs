//! Default capabilities, masked paths and read-only paths.

mod capabilities;
mod paths;

pub use capabilities::{STANDARD_CAPABILITIES, capabilities};
pub use paths::{READ_ONLY_PATHS, masked_paths};
