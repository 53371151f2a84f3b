//! Errors in a group file, with position and hint.

use std::fmt;

use cudock_base::Span;
use cudock_base::text::escape;
use cudock_yaml::ErrorKind;

#[derive(Debug, thiserror::Error)]
#[error("{}", faults.iter().map(Fault::to_string).collect::<Vec<_>>().join("\n"))]
pub struct GroupError {
    /// Everything that was found wrong, in the order of the file; at least one.
    pub faults: Vec<Fault>,
}

/// One thing that is wrong. Neither text holds the value of a secret.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    pub span: Span,
    pub message: String,
    /// The text to write instead, or another fix.
    pub hint: String,
}

impl Fault {
    pub(crate) fn new(span: Span, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { span, message: message.into(), hint: hint.into() }
    }

    pub(crate) fn duplicate_key(span: Span, key: &str) -> Self {
        Self::new(span, format!("duplicate key `{}`", shown(key)), "remove one of the two")
    }

    pub(crate) fn wrong_type(span: Span, what: &str, expected: &str, found: &str) -> Self {
        let hint = match (expected, found) {
            ("text", "a number" | "true or false") => "put it in quotes".to_owned(),
            ("a number" | "a whole number" | "true or false", "text") => {
                format!("write {expected} without quotes")
            }
            ("a list", _) => "begin each member with `- ` on a separate line".to_owned(),
            ("a map", _) => "write `key: value` lines below it, two spaces further in".to_owned(),
            _ => format!("write {expected}"),
        };
        Self::new(span, format!("`{what}` should be {expected}, but is {found}"), hint)
    }
}

impl From<cudock_yaml::Error> for Fault {
    fn from(cudock_yaml::Error { span, kind }: cudock_yaml::Error) -> Self {
        let message = match &kind {
            ErrorKind::Syntax { message } => format!("not YAML: {message}"),
            ErrorKind::UnknownTag { tag } => format!("unknown tag `{}`", shown(tag)),
            other => other.to_string(),
        };
        let hint = match &kind {
            ErrorKind::TooLarge => "keep large files in an image or a volume",
            ErrorKind::Syntax { .. } => "look at indentation, quotes and brackets here and just above",
            ErrorKind::TooDeep => "a group is at most twelve levels deep",
            ErrorKind::AliasesRepeat => "write out the aliased values",
            ErrorKind::SecondDocument => "put each group in a separate file",
            ErrorKind::Empty => "begin with `name:` and `properties:`",
            ErrorKind::KeyNotText => "write a word before the colon, or quote what begins with a bracket",
            ErrorKind::UnknownTag { .. } => "remove it",
            ErrorKind::DuplicateKey { key } => return Self::duplicate_key(span, key),
            ErrorKind::MergeNotMap { found } => return Self::wrong_type(span, "<<", "a map", found),
        };
        Self::new(span, message, hint)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}; {}", self.span.line, self.span.column, self.message, self.hint)
    }
}

/// Text of the file, safe to print and not too long.
pub(crate) fn shown(text: &str) -> String {
    escape(text, 60)
}
