//! Deleting deployments and what they left behind.

mod down;
pub(crate) mod gc;
