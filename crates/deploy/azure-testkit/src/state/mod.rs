//! What the cloud remembers of each service, as plain data.

pub(crate) mod batch;
pub(crate) mod cluster_node;
pub(crate) mod identity;
pub(crate) mod log_entry;
pub(crate) mod operation;
pub(crate) mod storage;
pub(crate) mod template_run;
pub(crate) mod terminal;
