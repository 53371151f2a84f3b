//! What a service makes of a workload.

use cudock_facts::finding::Finding;

use crate::deployment::Step;
use crate::services::reaper::Outside;

/// A workload as requests of a service.
#[derive(Debug, Default)]
pub(crate) struct Translation<'s> {
    /// Steps after the groups and the reaper exist.
    pub(crate) steps: Vec<Step>,
    pub(crate) outside: Outside<'s>,
    pub(crate) losses: Vec<Finding>,
}
