//! The structure of texts in many languages.

mod assignments;
pub(in crate::read) mod blocks;
pub(in crate::read) mod brackets;
pub(in crate::read) mod dialect;
pub(in crate::read) mod lexer;
pub(in crate::read) mod shell;
pub(in crate::read) mod tree;
pub(in crate::read) mod variables;
pub(in crate::read) mod yaml;
