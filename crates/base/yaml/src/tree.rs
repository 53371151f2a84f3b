//! The nodes of a tree.

use cudock_base::Span;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its span; for an alias, the span of its anchor.
    pub span: Span,
    pub data: Data,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    Scalar(Scalar),
    List(Vec<Node>),
    /// A mapping with unique keys.
    Map(Vec<MapEntry>),
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapEntry {
    pub key: String,
    /// The span of the key.
    pub span: Span,
    pub value: Node,
}

/// A single value, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scalar {
    /// Its text, without quotes.
    pub text: String,
    /// Whether it is text by quotes, a block, or `!!str`.
    pub(crate) quoted: bool,
}

/// The type of a single value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarKind {
    Null,
    Flag(bool),
    Number,
    Text,
}

impl Scalar {
    /// The type in YAML 1.1, which Azure's tools and Go's older parsers use: `yes` and `on` are flags, too.
    pub fn kind(&self) -> ScalarKind {
        if self.quoted {
            return ScalarKind::Text;
        }
        match self.text.to_ascii_lowercase().as_str() {
            "" | "~" | "null" => ScalarKind::Null,
            "true" | "yes" | "on" => ScalarKind::Flag(true),
            "false" | "no" | "off" => ScalarKind::Flag(false),
            _ if self.number().is_some() => ScalarKind::Number,
            _ => ScalarKind::Text,
        }
    }

    /// The value as a number, infinities and NaN included.
    pub fn number(&self) -> Option<f64> {
        let sign_free = self.text.trim_start_matches(['+', '-']);
        match sign_free.to_ascii_lowercase().as_str() {
            ".nan" => return Some(f64::NAN),
            ".inf" if self.text.starts_with('-') => return Some(f64::NEG_INFINITY),
            ".inf" => return Some(f64::INFINITY),
            _ => {}
        }
        let digits_first = sign_free.trim_start_matches('.').starts_with(|ch: char| ch.is_ascii_digit());
        digits_first.then(|| self.text.parse().ok())?
    }
}

impl Node {
    /// The value of a key, in a map.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match &self.data {
            Data::Map(entries) => entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value),
            _ => None,
        }
    }

    /// The members of a list; empty if it is not one.
    pub fn members(&self) -> &[Self] {
        match &self.data {
            Data::List(members) => members,
            _ => &[],
        }
    }

    /// The text of a single value that is not null.
    pub fn text(&self) -> Option<&str> {
        match &self.data {
            Data::Scalar(scalar) if scalar.kind() != ScalarKind::Null => Some(&scalar.text),
            _ => None,
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(&self.data, Data::Scalar(scalar) if scalar.kind() == ScalarKind::Null)
    }

    /// A description for "expected text, found a list".
    pub fn found(&self) -> &'static str {
        match &self.data {
            Data::List(_) => "a list",
            Data::Map(_) => "a map",
            Data::Scalar(scalar) => match scalar.kind() {
                ScalarKind::Null => "nothing",
                ScalarKind::Flag(_) => "true or false",
                ScalarKind::Number => "a number",
                ScalarKind::Text => "text",
            },
        }
    }
}
