//! Nodes of clusters of Machine Learning.

use crate::time::Seconds;

/// A node of a cluster. It is billed while it exists.
#[derive(Debug)]
pub(crate) struct ClusterNode {
    /// Key of the node, which is within that of the cluster.
    pub(crate) key: String,
    pub(crate) cluster: String,
    /// The key of the job that it runs.
    pub(crate) job: Option<String>,
    /// When its last job ended.
    pub(crate) idle_since: Seconds,
}
