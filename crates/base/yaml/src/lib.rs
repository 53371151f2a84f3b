//! Parses YAML into a tree in which every node has its span, bounded by the size of its text.
//!
//! The underlying parser emits events. It does not expand aliases or recurse, so the cost of a file is bounded here: the
//! size of the text, the depth, and the expansion of aliases.

mod build;
mod json;
mod spans;
mod tree;
mod write;

use cudock_base::Span;

pub use build::{parse, parse_with};
pub use json::from_str;
pub use tree::{Data, MapEntry, Node, Scalar, ScalarKind};
pub use write::to_string;

/// The size limit for a text, in bytes.
pub const LARGEST: usize = 1 << 20;

/// An error at a span of a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at line {} column {}", span.line, span.column)]
pub struct Error {
    pub span: Span,
    pub kind: ErrorKind,
}

impl Error {
    fn new(span: Span, kind: ErrorKind) -> Self {
        Self { span, kind }
    }
}

/// The kinds of errors. The last three leave a tree and are reported by [`parse_with`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ErrorKind {
    #[error("larger than {} KiB", LARGEST >> 10)]
    TooLarge,
    #[error("{message}")]
    Syntax { message: String },
    #[error("lists and maps are nested too deeply")]
    TooDeep,
    #[error("expanded aliases exceed the size of the file")]
    AliasesRepeat,
    #[error("a second document in the file")]
    SecondDocument,
    #[error("the file is empty")]
    Empty,
    #[error("a key that is a list or a map")]
    KeyNotText,
    /// An unknown tag, which is ignored.
    #[error("unknown tag `{tag}`")]
    UnknownTag { tag: String },
    /// A duplicate key. The first one counts.
    #[error("duplicate key `{key}`")]
    DuplicateKey { key: String },
    #[error("expected a map for `<<`, found {found}")]
    MergeNotMap { found: &'static str },
}
