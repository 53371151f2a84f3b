//! One layer while it is unpacked.

mod entries;
pub(in crate::unpack) mod finish;
pub(in crate::unpack) mod job;
pub(in crate::unpack) mod lower;
pub(in crate::unpack) mod meta;
mod sparse;
pub(in crate::unpack) mod stream;
pub(in crate::unpack) mod upper;
