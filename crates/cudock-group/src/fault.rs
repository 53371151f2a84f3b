//! Errors in a group file, with position and hint.

use std::fmt;
use std::ops::Range;

use serde::Serialize;

use crate::hide;
use crate::note::Note;
use cudock_base::Span;
use cudock_base::format::alternatives;
use cudock_base::text::escape;
use cudock_yaml::LARGEST;

/// A group that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum GroupError {
    /// It has invalid values.
    #[error("{}", summary(faults))]
    Faulty {
        /// Everything that was found wrong, in the order of the file; at least one.
        faults: Vec<Fault>,
        /// What else is worth knowing; empty if the text is not YAML.
        notes: Vec<Note>,
        /// The bytes of the text that hold secrets and must not be printed: see [`GroupError::printable`].
        hidden: Vec<Range<usize>>,
    },
}

impl GroupError {
    /// The text with stars for every byte of its secrets, so that places fit and lines of it can be shown.
    pub fn printable(&self, text: &str) -> String {
        let Self::Faulty { hidden, .. } = self;
        hide::masked(text, hidden)
    }

    /// Everything that was found wrong.
    pub fn faults(&self) -> &[Fault] {
        let Self::Faulty { faults, .. } = self;
        faults
    }
}

fn summary(faults: &[Fault]) -> String {
    let lines: Vec<String> = faults.iter().map(Fault::to_string).collect();
    lines.join("\n")
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    pub span: Span,
    pub problem: Problem,
}

impl Fault {
    pub(crate) fn new(span: Span, problem: Problem) -> Self {
        Self { span, problem }
    }

    /// What to write instead.
    pub fn hint(&self) -> String {
        self.problem.hint()
    }
}

impl From<cudock_yaml::Error> for Fault {
    fn from(error: cudock_yaml::Error) -> Self {
        use cudock_yaml::ErrorKind;

        let problem = match error.kind {
            ErrorKind::TooLarge => Problem::TooLarge,
            ErrorKind::Syntax { message } => Problem::Syntax { message },
            ErrorKind::TooDeep => Problem::TooDeep,
            ErrorKind::AliasesRepeat => Problem::AliasesRepeat,
            ErrorKind::SecondDocument => Problem::SecondDocument,
            ErrorKind::Empty => Problem::Empty,
            ErrorKind::KeyNotText => Problem::KeyNotText,
            ErrorKind::UnknownTag { tag } => Problem::UnknownTag { tag },
            ErrorKind::DuplicateKey { key } => Problem::DuplicateKey { key },
            ErrorKind::MergeNotMap { found } => {
                Problem::WrongType { what: "<<".to_owned(), expected: "a map", found }
            }
        };
        Self::new(error.span, problem)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}; {}", self.span.line, self.span.column, self.problem, self.hint())
    }
}

/// What can be wrong. None of these carries the value of a secret.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Problem {
    #[error("larger than {} KiB", LARGEST >> 10)]
    TooLarge,
    #[error("not YAML: {message}")]
    Syntax { message: String },
    #[error("too many lists and maps within each other")]
    TooDeep,
    #[error("aliases repeat more than the file holds")]
    AliasesRepeat,
    #[error("a second document in the file")]
    SecondDocument,
    #[error("nothing in the file")]
    Empty,
    #[error("unknown tag `{}`", escape(tag, 60))]
    UnknownTag { tag: String },
    #[error("a key that is a list or a map")]
    KeyNotText,
    #[error("key `{}` for the second time", escape(key, 60))]
    DuplicateKey { key: String },
    #[error("unknown key `{}` in {of}", escape(key, 60))]
    UnknownKey { key: String, of: &'static str, advice: String },
    #[error("{of} without `{key}`")]
    MissingKey { key: &'static str, of: &'static str },
    #[error("`{what}` should be {expected}, but is {found}")]
    WrongType { what: String, expected: &'static str, found: &'static str },
    #[error("`{what}` cannot be `{}`", escape(value, 60))]
    UnknownValue { what: String, value: String, known: &'static [&'static str], near: Option<&'static str> },
    #[error("`{}` cannot be the name of {of}", escape(name, 60))]
    BadName { of: &'static str, name: String, rule: &'static str },
    #[error("{of} `{}` for the second time", escape(name, 60))]
    DuplicateName { of: &'static str, name: String, first: usize },
    #[error("port {port}/{protocol} for the second time")]
    DuplicatePort { port: u16, protocol: &'static str, first: usize },
    #[error("`{what}` is {value}, which is not above zero")]
    NotPositive { what: String, value: String },
    #[error("`{what}` is {value}, which is not between {least} and {most}")]
    OutOfRange { what: String, value: String, least: i64, most: i64 },
    #[error("`{what}` is {value}, more than any machine has")]
    Unbelievable { what: String, value: String },
    #[error("the limit `{what}` is below the request")]
    LimitBelowRequest { what: &'static str },
    #[error("a probe with both `exec` and `httpGet`")]
    ProbeAsksTwice,
    #[error("a probe with neither `exec` nor `httpGet`")]
    ProbeAsksNothing,
    #[error("a probe without a command to run")]
    ProbeWithoutCommand,
    #[error("`{what}` is not base64")]
    NotBase64 { what: String },
    #[error("volume `{}` has no kind", escape(name, 60))]
    VolumeWithoutKind { name: String },
    #[error("volume `{}` of several kinds: {}", escape(name, 60), kinds.join(" and "))]
    VolumeOfKinds { name: String, kinds: Vec<&'static str> },
    #[error("`{}` cannot be the name of a file", escape(name, 60))]
    BadFileName { name: String },
    #[error("no volume `{}` to mount", escape(name, 60))]
    NoSuchVolume { name: String, near: Option<String> },
    #[error("nothing can be mounted at `{}`: {why}", escape(path, 60))]
    BadMountPath { path: String, why: &'static str },
    #[error("variable `{}` with {}", escape(name, 60), kinds.join(" and "))]
    VariableOfKinds { name: String, kinds: Vec<&'static str> },
    #[error("`{}` is not an address", escape(address, 60))]
    BadAddress { address: String },
    #[error("`{what}` holds a character that cannot be in it")]
    BadText { what: String, rule: &'static str },
    #[error("a group without containers")]
    NoContainers,
}

impl Problem {
    /// A short name that stays, for programs.
    pub fn id(&self) -> &'static str {
        match self {
            Self::TooLarge => "too-large",
            Self::Syntax { .. } => "syntax",
            Self::TooDeep => "too-deep",
            Self::AliasesRepeat => "aliases-repeat",
            Self::SecondDocument => "second-document",
            Self::Empty => "empty",
            Self::UnknownTag { .. } => "unknown-tag",
            Self::KeyNotText => "key-not-text",
            Self::DuplicateKey { .. } => "duplicate-key",
            Self::UnknownKey { .. } => "unknown-key",
            Self::MissingKey { .. } => "missing-key",
            Self::WrongType { .. } => "wrong-type",
            Self::UnknownValue { .. } => "unknown-word",
            Self::BadName { .. } => "bad-name",
            Self::DuplicateName { .. } => "duplicate-name",
            Self::DuplicatePort { .. } => "duplicate-port",
            Self::NotPositive { .. } => "not-positive",
            Self::OutOfRange { .. } => "out-of-range",
            Self::Unbelievable { .. } => "unbelievable",
            Self::LimitBelowRequest { .. } => "limit-below-request",
            Self::ProbeAsksTwice => "probe-asks-twice",
            Self::ProbeAsksNothing => "probe-asks-nothing",
            Self::ProbeWithoutCommand => "probe-without-command",
            Self::NotBase64 { .. } => "not-base64",
            Self::VolumeWithoutKind { .. } => "volume-without-kind",
            Self::VolumeOfKinds { .. } => "volume-of-kinds",
            Self::BadFileName { .. } => "bad-file-name",
            Self::NoSuchVolume { .. } => "no-such-volume",
            Self::BadMountPath { .. } => "bad-mount-path",
            Self::VariableOfKinds { .. } => "variable-of-kinds",
            Self::BadAddress { .. } => "bad-address",
            Self::BadText { .. } => "bad-text",
            Self::NoContainers => "no-containers",
        }
    }

    /// What to write instead.
    pub fn hint(&self) -> String {
        match self {
            Self::TooLarge => "keep large files in an image or a volume".to_owned(),
            Self::Syntax { .. } => "look at indentation, quotes and brackets here and just above".to_owned(),
            Self::TooDeep => "a group is at most twelve levels deep".to_owned(),
            Self::AliasesRepeat => "write out the aliased values".to_owned(),
            Self::SecondDocument => "put each group in a separate file".to_owned(),
            Self::Empty => "begin with `name:` and `properties:`".to_owned(),
            Self::UnknownTag { .. } => "remove it".to_owned(),
            Self::KeyNotText => {
                "write a word before the colon, or quote what begins with a bracket".to_owned()
            }
            Self::DuplicateKey { .. } => "remove one of the two".to_owned(),
            Self::UnknownKey { advice, .. } => advice.clone(),
            Self::MissingKey { key, .. } => format!("add `{key}:`"),
            Self::WrongType { expected, found, .. } => mend_type(expected, found),
            Self::UnknownValue { near: Some(near), .. } => format!("did you mean `{near}`?"),
            Self::UnknownValue { known, .. } => format!("write {}", alternatives(known)),
            Self::BadName { rule, .. } | Self::BadText { rule, .. } => (*rule).to_owned(),
            Self::DuplicateName { first, .. } => format!("the first is in line {first}; rename one"),
            Self::DuplicatePort { first, .. } => {
                format!(
                    "the first is in line {first}; containers of a group share their ports, so change one"
                )
            }
            Self::NotPositive { .. } => "write a number above zero".to_owned(),
            Self::OutOfRange { least, most, .. } => format!("write a whole number from {least} to {most}"),
            Self::Unbelievable { .. } => "look at the unit: cores, and gigabytes".to_owned(),
            Self::LimitBelowRequest { .. } => "raise the limit or lower the request".to_owned(),
            Self::ProbeAsksTwice => "keep one of the two".to_owned(),
            Self::ProbeAsksNothing => {
                "add `exec: {command: […]}` or `httpGet: {path: /, port: …}`".to_owned()
            }
            Self::ProbeWithoutCommand => "write `command:` as a list with the program first".to_owned(),
            Self::NotBase64 { .. } => "make it with `base64 -w0 FILE`".to_owned(),
            Self::VolumeWithoutKind { .. } => "for an empty directory write `emptyDir: {}`".to_owned(),
            Self::VolumeOfKinds { .. } => "keep one, and make volumes of the others".to_owned(),
            Self::BadFileName { .. } => {
                "write a plain name without `/`, at most 253 bytes; not `.` or `..`".to_owned()
            }
            Self::NoSuchVolume { near: Some(near), .. } => format!("did you mean `{near}`?"),
            Self::NoSuchVolume { .. } => "add it to the group's `volumes:`".to_owned(),
            Self::BadMountPath { .. } => "write an absolute path such as `/data`".to_owned(),
            Self::VariableOfKinds { .. } => "keep one of them".to_owned(),
            Self::BadAddress { .. } => "write one like `10.0.0.10` or `fd00::10`".to_owned(),
            Self::NoContainers => "add one below `properties.containers`".to_owned(),
        }
    }
}

fn mend_type(expected: &str, found: &str) -> String {
    match (expected, found) {
        ("text", "a number" | "true or false") => "put it in quotes".to_owned(),
        ("a number" | "a whole number" | "true or false", "text") => {
            format!("write {expected} without quotes")
        }
        ("a list", _) => "begin each member with `- ` on a separate line".to_owned(),
        ("a map", _) => "write `key: value` lines below it, two spaces further in".to_owned(),
        _ => format!("write {expected}"),
    }
}

/// As programs read it.
impl Serialize for Fault {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Row<'a> {
            line: usize,
            column: usize,
            id: &'a str,
            message: String,
            hint: String,
        }
        Row {
            line: self.span.line,
            column: self.span.column,
            id: self.problem.id(),
            message: self.problem.to_string(),
            hint: self.hint(),
        }
        .serialize(serializer)
    }
}
