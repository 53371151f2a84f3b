//! Commands, terminals and logs of a running deployment.

pub(crate) mod exec;
pub(crate) mod logs;
pub(crate) mod terminal;
