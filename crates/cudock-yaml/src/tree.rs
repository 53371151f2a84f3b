//! The nodes of a tree.

use cudock_base::Span;

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Where it stands; for an alias, where what it stands for does.
    pub span: Span,
    /// What it is.
    pub data: Data,
}

/// What a node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// A single value.
    Scalar(Scalar),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping; every key is there once.
    Map(Vec<Entry>),
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub span: Span,
    /// The value.
    pub value: Node,
}

/// A single value, as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scalar {
    /// Its text, without quotes.
    pub text: String,
    /// Quotes, a block, or `!!str`: this is text, whatever it looks like.
    pub(crate) quoted: bool,
}

/// What a single value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing.
    Null,
    /// True or false.
    Flag(bool),
    /// A number.
    Number,
    /// Anything else.
    Text,
}

impl Scalar {
    /// What the value is in YAML 1.1, which Azure's tools and Go's older parsers read: `yes` and `on` are flags, too.
    pub fn kind(&self) -> Kind {
        if self.quoted {
            return Kind::Text;
        }
        match self.text.to_ascii_lowercase().as_str() {
            "" | "~" | "null" => Kind::Null,
            "true" | "yes" | "on" => Kind::Flag(true),
            "false" | "no" | "off" => Kind::Flag(false),
            _ if self.number().is_some() => Kind::Number,
            _ => Kind::Text,
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
        let digits_first =
            sign_free.trim_start_matches('.').starts_with(|letter: char| letter.is_ascii_digit());
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
            Data::Scalar(scalar) if scalar.kind() != Kind::Null => Some(&scalar.text),
            _ => None,
        }
    }

    /// Whether it is nothing.
    pub fn is_null(&self) -> bool {
        matches!(&self.data, Data::Scalar(scalar) if scalar.kind() == Kind::Null)
    }

    /// What this is, for "expected text, found a list".
    pub fn found(&self) -> &'static str {
        match &self.data {
            Data::List(_) => "a list",
            Data::Map(_) => "a map",
            Data::Scalar(scalar) => match scalar.kind() {
                Kind::Null => "nothing",
                Kind::Flag(_) => "true or false",
                Kind::Number => "a number",
                Kind::Text => "text",
            },
        }
    }
}
