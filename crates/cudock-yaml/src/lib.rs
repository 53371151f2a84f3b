//! YAML as a tree in which every node has its span, no larger than the text it comes from.
//!
//! The parser underneath gives events. It does not expand aliases and does not recurse, so what a file can cost is
//! decided here: the size of the text, the depth, and how much aliases may repeat.

mod build;
mod json;
mod spans;
mod tree;
mod write;

use cudock_base::Span;

pub use build::{Observer, parse, parse_with};
pub use json::from_str;
pub use tree::{Data, Entry, Kind, Node, Scalar};
pub use write::to_string;

/// The largest text that is read, in bytes.
pub const LARGEST: usize = 1 << 20;

/// What is wrong with a text, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at line {} column {}", span.line, span.column)]
pub struct Error {
    /// Where.
    pub span: Span,
    /// What.
    pub kind: ErrorKind,
}

impl Error {
    fn new(span: Span, kind: ErrorKind) -> Self {
        Self { span, kind }
    }
}

/// What can be wrong with a text. The last three leave a tree; [`Observer::error`] is told about them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ErrorKind {
    /// Larger than [`LARGEST`].
    #[error("larger than {} KiB", LARGEST >> 10)]
    TooLarge,
    /// Not YAML.
    #[error("{message}")]
    Syntax {
        /// What the parser says.
        message: String,
    },
    /// Deeper than the tree may be.
    #[error("too many lists and maps within each other")]
    TooDeep,
    /// More than the file holds, after aliases are expanded.
    #[error("aliases repeat more than the file holds")]
    AliasesRepeat,
    /// More than one document.
    #[error("a second document in the file")]
    SecondDocument,
    /// No document.
    #[error("the file is empty")]
    Empty,
    /// A key that is a list or a map.
    #[error("a key that is a list or a map")]
    KeyNotText,
    /// A tag that is not YAML's own. The node is taken without it.
    #[error("unknown tag `{tag}`")]
    UnknownTag {
        /// The tag.
        tag: String,
    },
    /// A key that the map has already. The first one counts.
    #[error("duplicate key `{key}`")]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// `<<` with a value that is not a map.
    #[error("`<<` should be a map, but is {found}")]
    MergeNotMap {
        /// What it is.
        found: &'static str,
    },
}
