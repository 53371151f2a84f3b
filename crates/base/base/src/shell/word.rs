//! Words of shell text, and their parts.

use std::ops::Range;

use smallvec::SmallVec;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Word<'t> {
    /// Its parts; empty for `''`. Most words are one literal.
    pub parts: SmallVec<[Part<'t>; 1]>,
    /// Its bytes, quotes included.
    pub span: Range<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part<'t> {
    /// Literal text. A character after a backslash is a separate part.
    Literal {
        /// The text without the backslash.
        text: &'t str,
        span: Range<usize>,
    },
    Quoted {
        /// `'` or `"`.
        quote: u8,
        /// Its parts; in single quotes one literal at most.
        parts: Vec<Part<'t>>,
        /// The bytes between the quotes.
        span: Range<usize>,
    },
    /// `$NAME`, `${NAME:-default}`, `$1`, `$@`: all of it.
    Variable { span: Range<usize> },
    /// `$(command)`, `$((1 + 1))`, `` `command` ``: all of it.
    Substitution { span: Range<usize> },
}

impl Part<'_> {
    pub fn span(&self) -> Range<usize> {
        match self {
            Self::Literal { span, .. }
            | Self::Quoted { span, .. }
            | Self::Variable { span }
            | Self::Substitution { span } => span.clone(),
        }
    }
}
