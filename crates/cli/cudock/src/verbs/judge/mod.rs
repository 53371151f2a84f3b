//! Predictions and their reasons: verdicts, findings, facts and prices; and files for a new project.

pub(super) mod check;
pub(super) mod doctor;
pub(super) mod explain;
pub(super) mod facts;
pub(super) mod init;
pub(super) mod inspect;
pub(super) mod lint;
pub(super) mod lsp;
pub(super) mod migrate;
pub(super) mod nvml;
pub(super) mod prices;
