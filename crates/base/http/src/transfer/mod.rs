//! Downloads and uploads that continue where they ended.

pub(crate) mod download;
pub(crate) mod partial;
pub(crate) mod progress;
pub(crate) mod store;
pub(crate) mod upload;
