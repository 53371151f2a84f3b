//! The public price list: where it is, what is asked of it, and its pages.

pub(crate) mod endpoint;
pub(crate) mod page;
pub(crate) mod query;
