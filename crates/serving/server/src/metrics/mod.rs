//! Information for operators: metrics and the log.

pub(crate) mod histogram;
pub(crate) mod log;
pub(crate) mod prometheus;
