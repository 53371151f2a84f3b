//! A violation of what holds for the tables.

/// An invalid row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub table: &'static str,
    pub list: &'static str,
    pub key: String,
    pub message: String,
}
