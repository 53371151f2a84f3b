//! Days and points in time.

pub(crate) mod date;
pub(crate) mod timestamp;
