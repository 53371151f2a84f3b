//! Notes about a valid group: settings that are ignored, unsupported or different here.

use std::fmt;

use cudock_base::Span;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub span: Span,
    /// The field, as `properties.containers[0].image`.
    pub field: String,
    pub kind: NoteKind,
    /// The reason, the difference, or what to use instead.
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteKind {
    /// Has no meaning on one machine.
    Ignored,
    /// Azure writes it into its answers and reads it nowhere.
    WrittenByAzure,
    /// Is not supported here; the message says what to use instead.
    Unsupported,
    /// Works differently than on Azure.
    Differs,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            NoteKind::Ignored | NoteKind::WrittenByAzure => "is ignored here",
            NoteKind::Unsupported => "is not supported here",
            NoteKind::Differs => "differs from Azure",
        };
        write!(f, "{}:{}: `{}` {kind}: {}", self.span.line, self.span.column, self.field, self.message)
    }
}
