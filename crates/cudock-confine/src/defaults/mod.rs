//! What a container gets when nobody says otherwise: capabilities, hidden and read-only paths, limits.

mod capabilities;
mod limits;
mod paths;

pub use capabilities::{STANDARD_CAPABILITIES, capabilities};
pub use limits::{INFINITE, Limit};
pub use paths::{READ_ONLY_PATHS, masked_paths};
