//! An event of the activity log.

use crate::resources::target::Target;
use crate::time::Seconds;

#[derive(Debug, Clone)]
pub(crate) struct LogEntry {
    pub(crate) time: Seconds,
    pub(crate) operation: String,
    pub(crate) status: &'static str,
    pub(crate) target: Target,
}
