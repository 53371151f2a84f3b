//! Images: building, locking, signing, slimming and copying them.

pub(super) mod build;
pub(super) mod lock;
pub(super) mod sign;
pub(super) mod slim;
pub(super) mod transfer;
