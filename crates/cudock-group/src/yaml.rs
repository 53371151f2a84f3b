//! YAML as a tree in which every node knows its place, no larger than the text it comes from.
//!
//! The parser underneath gives events. It does not expand aliases and does not recurse, so what a file can cost is
//! decided here: the size of the text, the depth, and how much aliases may repeat.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use saphyr_parser::{Event, Parser, ScalarStyle, Span as Marks, StrInput, Tag};

use crate::fault::{Fault, Problem};
use crate::hide;
use crate::place::{Places, Span};

/// The largest text that is read. A group of sixty containers with their secrets is a tenth of this.
pub const LARGEST: usize = 1 << 20;

/// How deep nodes may lie in each other; a group needs twelve.
const DEEPEST: usize = 64;

/// The parser looks at all open brackets at every word, so they must not be many.
const MOST_BRACKETS: usize = 100;

/// A node.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) data: Data,
}

#[derive(Clone, Debug)]
pub(crate) enum Data {
    Scalar(Scalar),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A key and its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) span: Span,
    pub(crate) value: Node,
}

/// A single value, as it was written.
#[derive(Clone, Debug)]
pub(crate) struct Scalar {
    pub(crate) text: String,
    /// Quotes, a block, or `!!str`: this is text, whatever it looks like.
    quoted: bool,
}

/// What a single value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    Flag(bool),
    Number,
    Text,
}

impl Scalar {
    /// What the value is to Azure's tools: they read YAML 1.1, where `yes` and `on` are flags, too.
    pub(crate) fn kind(&self) -> Kind {
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

    /// The value as a number; also one that is none or without end, since YAML can say that.
    pub(crate) fn number(&self) -> Option<f64> {
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
    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.data, Data::Scalar(scalar) if scalar.kind() == Kind::Null)
    }

    /// What this is, for "expected text, found a list".
    pub(crate) fn found(&self) -> &'static str {
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

/// Reads a text of one document. Faults that leave a tree to go on with are added to `faults`, and the places of secrets
/// to `hidden`: here, because a value that is given twice does not get into the tree and is no less secret.
pub(crate) fn parse(
    text: &str,
    faults: &mut Vec<Fault>,
    hidden: &mut Vec<Range<usize>>,
) -> Result<Node, Fault> {
    if text.len() > LARGEST {
        return Err(Fault::new(Span::START, Problem::TooLarge));
    }
    check_brackets(text)?;
    let mut builder = Builder {
        parser: Parser::new_from_str(text),
        places: Places::new(text),
        budget: text.len().saturating_mul(4).saturating_add(1024),
        anchors: HashMap::new(),
        faults,
        hidden,
    };
    builder.document()
}

fn check_brackets(text: &str) -> Result<(), Fault> {
    let mut depth = 0_usize;
    let (mut line, mut column) = (1, 0);
    for (offset, letter) in text.char_indices() {
        column += 1;
        match letter {
            '\n' => (line, column) = (line + 1, 0),
            '[' | '{' => depth += 1,
            ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MOST_BRACKETS {
            return Err(Fault::new(Span { line, column, start: offset, end: offset + 1 }, Problem::TooDeep));
        }
    }
    Ok(())
}

struct Builder<'t, 'f> {
    parser: Parser<'t, StrInput<'t>>,
    places: Places<'t>,
    /// How many more nodes and bytes the tree may take.
    budget: usize,
    /// Finished nodes with a name, and what each costs.
    anchors: HashMap<usize, (Node, usize)>,
    faults: &'f mut Vec<Fault>,
    hidden: &'f mut Vec<Range<usize>>,
}

impl<'t> Builder<'t, '_> {
    fn document(&mut self) -> Result<Node, Fault> {
        loop {
            match self.next()? {
                (Event::DocumentStart(_), _) => break,
                (Event::StreamEnd, marks) => {
                    return Err(Fault::new(self.places.point(marks.start), Problem::Empty));
                }
                _ => {}
            }
        }
        let (event, marks) = self.next()?;
        let root = self.node(event, marks, 0)?;
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => return Ok(root),
                (Event::DocumentStart(_), marks) => {
                    return Err(Fault::new(self.places.span(marks), Problem::SecondDocument));
                }
                _ => {}
            }
        }
    }

    fn next(&mut self) -> Result<(Event<'t>, Marks), Fault> {
        match self.parser.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => {
                let problem = Problem::Syntax { message: error.info().to_owned() };
                Err(Fault::new(self.places.point(*error.marker()), problem))
            }
            // The parser ends with an event of its own; this is for its next version.
            None => Ok((Event::StreamEnd, Marks::default())),
        }
    }

    fn node(&mut self, event: Event<'t>, marks: Marks, depth: usize) -> Result<Node, Fault> {
        let span = self.places.span(marks);
        if depth > DEEPEST {
            return Err(Fault::new(span, Problem::TooDeep));
        }
        let before = self.budget;
        let (anchor, data) = match event {
            Event::Alias(anchor) => return self.alias(anchor, span),
            Event::Scalar(text, style, anchor, tag) => {
                self.pay(text.len(), span)?;
                let quoted = style != ScalarStyle::Plain || self.is_text(tag.as_deref(), span);
                (anchor, Data::Scalar(Scalar { text: text.into_owned(), quoted }))
            }
            Event::SequenceStart(anchor, tag) => {
                self.pay(0, span)?;
                self.is_text(tag.as_deref(), span);
                (anchor, Data::List(self.list(depth)?))
            }
            Event::MappingStart(anchor, tag) => {
                self.pay(0, span)?;
                self.is_text(tag.as_deref(), span);
                (anchor, Data::Map(self.map(depth)?))
            }
            other => {
                let message = format!("{other:?} where a value should be");
                return Err(Fault::new(span, Problem::Syntax { message }));
            }
        };
        let node = Node { span, data };
        if anchor > 0 {
            let cost = before - self.budget;
            self.pay(cost, span)?;
            self.anchors.insert(anchor, (node.clone(), cost));
        }
        Ok(node)
    }

    fn pay(&mut self, bytes: usize, span: Span) -> Result<(), Fault> {
        self.budget =
            self.budget.checked_sub(bytes + 1).ok_or_else(|| Fault::new(span, Problem::AliasesRepeat))?;
        Ok(())
    }

    fn alias(&mut self, anchor: usize, span: Span) -> Result<Node, Fault> {
        let Some((node, cost)) = self.anchors.get(&anchor) else {
            let message = "an alias inside of what it stands for".to_owned();
            return Err(Fault::new(span, Problem::Syntax { message }));
        };
        // It keeps the place of what it stands for: that is where a fault is mended, and a secret hidden.
        let (node, cost) = (node.clone(), *cost);
        self.pay(cost, span)?;
        Ok(node)
    }

    /// Whether a tag says that the value is text; tags nobody knows are faults.
    fn is_text(&mut self, tag: Option<&Tag>, span: Span) -> bool {
        let Some(tag) = tag else { return false };
        match (tag.is_yaml_core_schema(), tag.suffix.as_str()) {
            (true, "str") => return true,
            (true, "null" | "bool" | "int" | "float" | "seq" | "map" | "timestamp") => {}
            _ if tag.handle.is_empty() && tag.suffix == "!" => return true,
            _ => self.faults.push(Fault::new(span, Problem::UnknownTag { tag: tag.suffix.clone() })),
        }
        false
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Node>, Fault> {
        let mut members = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(members),
                (event, marks) => members.push(self.node(event, marks, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Vec<Entry>, Fault> {
        let mut entries = Vec::new();
        let mut merged = Vec::new();
        let mut seen = HashSet::new();
        loop {
            let (event, marks) = self.next()?;
            if event == Event::MappingEnd {
                break;
            }
            let key = self.node(event, marks, depth + 1)?;
            let (event, marks) = self.next()?;
            let value = self.node(event, marks, depth + 1)?;
            let span = key.span;
            let Data::Scalar(Scalar { text: key, quoted }) = key.data else {
                return Err(Fault::new(span, Problem::KeyNotText));
            };
            hide::below_key(&key, &value, self.hidden);
            if key == "<<" && !quoted {
                self.merge(value, &mut merged);
            } else if seen.insert(key.clone()) {
                entries.push(Entry { key, span, value });
            } else {
                self.faults.push(Fault::new(span, Problem::DuplicateKey { key }));
            }
        }
        // What a map says itself goes before what it takes over, and of that the first.
        entries.extend(merged.into_iter().filter(|entry| seen.insert(entry.key.clone())));
        Ok(entries)
    }

    /// `<<: *other` takes the entries of another map over, as Azure's tools do.
    fn merge(&mut self, value: Node, into: &mut Vec<Entry>) {
        match value.data {
            Data::Map(entries) => into.extend(entries),
            Data::List(members) => members.into_iter().for_each(|member| self.merge(member, into)),
            Data::Scalar(_) => {
                let problem =
                    Problem::WrongType { what: "<<".to_owned(), expected: "a map", found: value.found() };
                self.faults.push(Fault::new(value.span, problem));
            }
        }
    }
}
