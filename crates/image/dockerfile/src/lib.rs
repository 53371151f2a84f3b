//! Dockerfiles: instructions with spans, and a model of what a build does with them.
//!
//! [`parse`] reads the text as `BuildKit` does. [`Build`] resolves stages, variables and the commands of scripts as far as
//! the text determines them. Nothing is run, and no other file is read.

pub mod expand;
mod model;
mod shell;
mod syntax;

pub use model::*;
pub use shell::{Argument, ExpandedCommand, NoteAt};
pub use syntax::{Dockerfile, HereDoc, Instruction, Joined, parse};

/// An error in the syntax of a Dockerfile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}")]
pub struct SyntaxError {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    pub message: String,
}

impl SyntaxError {
    fn new(line: usize, column: usize, message: impl Into<String>) -> Self {
        Self { line, column, message: message.into() }
    }
}

/// Shortens a text so that it fits in a message.
fn excerpt(text: &str) -> String {
    cudock_base::text::truncate(text, 80)
}
