//! Builds a tree from the parser's events.

use std::collections::{HashMap, HashSet};

use cudock_base::Span;
use saphyr_parser::{Event, Parser, ScalarStyle, Span as Marks, StrInput, Tag};

use crate::spans::Spans;
use crate::tree::{Data, MapEntry, Node, Scalar};
use crate::{Error, ErrorKind, LARGEST};

/// The limit for nested nodes.
const MAX_DEPTH: usize = 64;

/// The limit for open brackets, which the parser examines at every token.
const MAX_BRACKETS: usize = 100;

/// Parses a text of one document. Of two entries with the same key, the first counts.
pub fn parse(text: &str) -> Result<Node, Error> {
    parse_with(text, &mut |_| {})
}

/// Parses a text of one document, and reports errors that leave a tree to `on_error`.
pub fn parse_with(text: &str, on_error: &mut dyn FnMut(Error)) -> Result<Node, Error> {
    if text.len() > LARGEST {
        return Err(Error::new(Span::START, ErrorKind::TooLarge));
    }
    check_brackets(text)?;
    let (parser, spans) = (Parser::new_from_str(text), Spans::new(text));
    let budget = text.len().saturating_mul(4).saturating_add(1024);
    TreeBuilder { parser, spans, budget, anchors: HashMap::new(), on_error }.document()
}

fn check_brackets(text: &str) -> Result<(), Error> {
    let mut depth = 0_usize;
    let (mut line, mut column) = (1, 0);
    for (offset, ch) in text.char_indices() {
        column += 1;
        match ch {
            '\n' => (line, column) = (line + 1, 0),
            '[' | '{' => depth += 1,
            ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_BRACKETS {
            let span = Span { line, column, start: offset, end: offset + 1 };
            return Err(Error::new(span, ErrorKind::TooDeep));
        }
    }
    Ok(())
}

struct TreeBuilder<'t, 'o> {
    parser: Parser<'t, StrInput<'t>>,
    spans: Spans<'t>,
    /// The remaining nodes and bytes.
    budget: usize,
    /// Nodes with an anchor, and their costs.
    anchors: HashMap<usize, (Node, usize)>,
    on_error: &'o mut dyn FnMut(Error),
}

impl<'t> TreeBuilder<'t, '_> {
    fn document(&mut self) -> Result<Node, Error> {
        loop {
            match self.next()? {
                (Event::DocumentStart(_), _) => break,
                (Event::StreamEnd, marks) => {
                    return Err(Error::new(self.spans.point(marks.start), ErrorKind::Empty));
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
                    return Err(Error::new(self.spans.span(marks), ErrorKind::SecondDocument));
                }
                _ => {}
            }
        }
    }

    fn next(&mut self) -> Result<(Event<'t>, Marks), Error> {
        match self.parser.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => {
                let kind = ErrorKind::Syntax { message: error.info().to_owned() };
                Err(Error::new(self.spans.point(*error.marker()), kind))
            }
            // The parser ends with a StreamEnd event; this only guards against a change.
            None => Ok((Event::StreamEnd, Marks::default())),
        }
    }

    fn node(&mut self, event: Event<'t>, marks: Marks, depth: usize) -> Result<Node, Error> {
        let span = self.spans.span(marks);
        if depth > MAX_DEPTH {
            return Err(Error::new(span, ErrorKind::TooDeep));
        }
        let before = self.budget;
        let (anchor, data) = match event {
            Event::Alias(anchor) => return self.alias(anchor, span),
            Event::Scalar(text, style, anchor, tag) => {
                self.pay(text.len(), span)?;
                let quoted = style != ScalarStyle::Plain || self.is_text(tag.as_deref(), span);
                (anchor, Data::Scalar(Scalar { text: text.into_owned(), quoted }))
            }
            Event::SequenceStart(anchor, ref tag) | Event::MappingStart(anchor, ref tag) => {
                self.pay(0, span)?;
                self.is_text(tag.as_deref(), span);
                let is_list = matches!(event, Event::SequenceStart(..));
                (anchor, if is_list { Data::List(self.list(depth)?) } else { Data::Map(self.map(depth)?) })
            }
            other => {
                let message = format!("{other:?} where a value should be");
                return Err(Error::new(span, ErrorKind::Syntax { message }));
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

    fn pay(&mut self, bytes: usize, span: Span) -> Result<(), Error> {
        self.budget =
            self.budget.checked_sub(bytes + 1).ok_or_else(|| Error::new(span, ErrorKind::AliasesRepeat))?;
        Ok(())
    }

    fn alias(&mut self, anchor: usize, span: Span) -> Result<Node, Error> {
        let Some((node, cost)) = self.anchors.get(&anchor) else {
            let message = "an alias inside its own anchor".to_owned();
            return Err(Error::new(span, ErrorKind::Syntax { message }));
        };
        // It keeps the span of its anchor: that is where an error is fixed.
        let (node, cost) = (node.clone(), *cost);
        self.pay(cost, span)?;
        Ok(node)
    }

    /// Whether a tag marks the value as text; unknown tags are errors.
    fn is_text(&mut self, tag: Option<&Tag>, span: Span) -> bool {
        let Some(tag) = tag else { return false };
        match (tag.is_yaml_core_schema(), tag.suffix.as_str()) {
            (true, "str") => return true,
            (true, "null" | "bool" | "int" | "float" | "seq" | "map" | "timestamp") => {}
            _ if tag.handle.is_empty() && tag.suffix == "!" => return true,
            _ => (self.on_error)(Error::new(span, ErrorKind::UnknownTag { tag: tag.suffix.clone() })),
        }
        false
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Node>, Error> {
        let mut members = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(members),
                (event, marks) => members.push(self.node(event, marks, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Vec<MapEntry>, Error> {
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
                return Err(Error::new(span, ErrorKind::KeyNotText));
            };
            if key == "<<" && !quoted {
                self.merge(value, &mut merged);
            } else if seen.insert(key.clone()) {
                entries.push(MapEntry { key, span, value });
            } else {
                (self.on_error)(Error::new(span, ErrorKind::DuplicateKey { key }));
            }
        }
        // A map's own entries take precedence over merged ones, and of those the first.
        entries.extend(merged.into_iter().filter(|entry| seen.insert(entry.key.clone())));
        Ok(entries)
    }

    /// Merges the entries of another map for `<<: *other`, as Azure's tools do.
    fn merge(&mut self, value: Node, into: &mut Vec<MapEntry>) {
        match value.data {
            Data::Map(entries) => into.extend(entries),
            Data::List(members) => members.into_iter().for_each(|member| self.merge(member, into)),
            Data::Scalar(_) => {
                let kind = ErrorKind::MergeNotMap { found: value.found() };
                (self.on_error)(Error::new(value.span, kind));
            }
        }
    }
}
