//! YAML as a plain tree, no larger than the text it comes from.
//!
//! The parser underneath lets aliases repeat a node a hundred times for each event of the file. That ends, but not
//! before memory does; so here every node and byte of a tree is counted while it is built.

use std::cell::Cell;
use std::fmt;

use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_yaml_ng::Deserializer;

use super::Fault;

/// The largest YAML that is read: the parser needs a hundred times the memory of the text.
pub(super) const LARGEST: usize = 1 << 20;

/// The parser looks at all open brackets at every word, so they must not be many.
const DEEPEST: usize = 100;

/// A node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    Null,
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Node {
    /// The value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        match self {
            Self::Map(entries) => entries.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }

    /// The members of a list; nothing if it is none.
    pub(super) fn members(&self) -> &[Node] {
        match self {
            Self::List(members) => members,
            _ => &[],
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// Reads a file of one document.
pub(super) fn parse(text: &str) -> Result<Node, Fault> {
    if text.len() > LARGEST {
        return Err(Fault::new(1, 1, format!("larger than {} MiB", LARGEST >> 20)));
    }
    check_brackets(text)?;
    let budget = Cell::new(text.len().saturating_mul(4).saturating_add(1024));
    Seed { budget: &budget }.deserialize(Deserializer::from_str(text)).map_err(|error| {
        let (line, column) = error.location().map_or((1, 1), |place| (place.line(), place.column()));
        Fault::new(line.max(1), column.max(1), error.to_string())
    })
}

fn check_brackets(text: &str) -> Result<(), Fault> {
    let mut depth = 0_usize;
    for (index, line) in text.lines().enumerate() {
        for (column, letter) in line.chars().enumerate() {
            match letter {
                '[' | '{' => depth += 1,
                ']' | '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth > DEEPEST {
                return Err(Fault::new(index + 1, column + 1, "too many brackets within each other"));
            }
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Seed<'a> {
    budget: &'a Cell<usize>,
}

impl Seed<'_> {
    fn pay<E: de::Error>(self, bytes: usize) -> Result<(), E> {
        let left = self.budget.get().checked_sub(bytes + 1);
        self.budget.set(left.ok_or_else(|| E::custom("aliases repeat more than the file holds"))?);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Node;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text, a list or a map")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Node, E> {
        self.pay(text.len())?;
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Node, E> {
        self.visit_str(&value.to_string())
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Node, E> {
        self.visit_str(&value.to_string())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Node, E> {
        self.visit_str(&value.to_string())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Node, E> {
        self.visit_str(&value.to_string())
    }

    fn visit_unit<E: de::Error>(self) -> Result<Node, E> {
        self.pay(0)?;
        Ok(Node::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        self.pay(0)?;
        let mut members = Vec::new();
        while let Some(member) = list.next_element_seed(self)? {
            members.push(member);
        }
        Ok(Node::List(members))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        self.pay(0)?;
        let mut entries = Vec::new();
        while let Some(key) = map.next_key_seed(self)? {
            let Node::Text(key) = key else { return Err(de::Error::custom("a key that is not text")) };
            entries.push((key, map.next_value_seed(self)?));
        }
        Ok(Node::Map(entries))
    }
}
