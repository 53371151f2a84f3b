//! How much clients may use.

pub(crate) mod memory;
pub(crate) mod rate_limit;
pub(crate) mod worker_pool;
