//! What is right in a group and still worth knowing: what does nothing here, what cannot be done, what is otherwise.

use std::fmt;

use serde::Serialize;

use cudock_base::Span;

/// Something worth knowing about a good group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// Where.
    #[serde(flatten)]
    pub span: Span,
    /// The field, as `properties.containers[0].image`.
    pub field: String,
    /// What sort of note it is.
    pub kind: NoteKind,
    /// The reason, the difference, or what to use instead.
    pub words: String,
}

/// Sorts of notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// Means something to Azure and nothing on one machine. It is kept.
    Ignored,
    /// Cannot be done here; the words say what to use instead.
    Unsupported,
    /// Is otherwise here than in Azure.
    Differs,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            NoteKind::Ignored => "does nothing here",
            NoteKind::Unsupported => "cannot be done here",
            NoteKind::Differs => "differs from Azure",
        };
        write!(f, "{}:{}: `{}` {kind}: {}", self.span.line, self.span.column, self.field, self.words)
    }
}
