//! Evidence of programs and libraries.

pub(in crate::gather) mod components;
pub(in crate::gather) mod driver_copies;
pub(in crate::gather) mod linking;
pub(in crate::gather) mod loose;
pub(in crate::gather) mod program;
pub(in crate::gather) mod programs;
pub(in crate::gather) mod strings;
