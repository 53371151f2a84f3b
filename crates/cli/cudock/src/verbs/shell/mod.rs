//! Completion, manual pages and schemas.

pub(super) mod completion;
pub(super) mod man;
pub(super) mod schema;
