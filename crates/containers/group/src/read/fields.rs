//! Reads typed values from a YAML tree and collects what is wrong with them.
//!
//! A reader continues after a fault, so that one pass finds all of them. Callers need not report
//! why a value is missing: the reader has done so.

use crate::fault::{Fault, shown};
use crate::note::{Note, NoteKind};
use cudock_base::Span;
use cudock_base::text::format::alternatives;
use cudock_base::text::suggest::closest;
use cudock_yaml::{Data, MapEntry, Node, Scalar, ScalarKind};

use super::ignored::IgnoredKey;

/// Which keys a map has.
pub(super) struct Keys {
    /// The kind of map, as in "unknown key in a container".
    pub(super) of: &'static str,
    pub(super) known: &'static [&'static str],
    pub(super) ignored: &'static [IgnoredKey],
    /// Keys that users often expect here, and the hint for each.
    pub(super) elsewhere: &'static [(&'static [&'static str], &'static str)],
}

impl Keys {
    pub(super) const fn new(of: &'static str, known: &'static [&'static str]) -> Self {
        Self { of, known, ignored: &[], elsewhere: &[] }
    }

    /// A replacement for an unknown key, and the known key that was probably meant.
    fn advice(&self, key: &str) -> (String, Option<&'static str>) {
        if let Some((_, advice)) = self.elsewhere.iter().find(|(keys, _)| keys.contains(&key)) {
            return ((*advice).to_owned(), None);
        }
        let near =
            closest(key, self.known.iter().copied().chain(self.ignored.iter().map(|ignored| ignored.key)));
        let few = (1..=6).contains(&self.known.len());
        let otherwise =
            if few { format!("write {}", alternatives(self.known)) } else { "remove it".to_owned() };
        (did_you_mean_or(near, &otherwise), near)
    }
}

pub(super) fn did_you_mean_or(near: Option<&str>, otherwise: &str) -> String {
    near.map_or_else(|| otherwise.to_owned(), |near| format!("did you mean `{near}`?"))
}

pub(super) struct Fields<'n> {
    entries: &'n [MapEntry],
    pub(super) span: Span,
    pub(super) path: String,
    of: &'static str,
    /// Keys that were meant and misspelled; they are not missing besides.
    misspelled: Vec<&'static str>,
}

impl<'n> Fields<'n> {
    /// The value of a key; nothing if it is left out or null.
    pub(super) fn get(&self, key: &str) -> Option<&'n Node> {
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        Some(&entry.value).filter(|value| !value.is_null())
    }

    /// Which of these keys have a value.
    pub(super) fn given(&self, keys: &[&'static str]) -> Vec<&'static str> {
        keys.iter().copied().filter(|key| self.get(key).is_some()).collect()
    }

    /// Where the value of a key is; where the map is, if it is left out.
    pub(super) fn span_of(&self, key: &str) -> Span {
        self.get(key).map_or(self.span, |node| node.span)
    }

    /// The place of a key in the file: `properties.osType`.
    pub(super) fn path_of(&self, key: &str) -> String {
        below(&self.path, key)
    }
}

pub(super) fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// The faults and notes found so far.
#[derive(Default)]
pub(super) struct GroupReader {
    pub(super) faults: Vec<Fault>,
    pub(super) notes: Vec<Note>,
}

impl GroupReader {
    pub(super) fn fault(&mut self, span: Span, message: impl Into<String>, hint: impl Into<String>) {
        self.faults.push(Fault::new(span, message, hint));
    }

    pub(super) fn bad_text(&mut self, span: Span, what: &str, rule: &str) {
        self.fault(span, format!("`{what}` holds a character that cannot be in it"), rule);
    }

    pub(super) fn bad_name(&mut self, span: Span, of: &str, name: &str, rule: &str) {
        self.fault(span, format!("`{}` cannot be the name of {of}", shown(name)), rule);
    }

    pub(super) fn duplicate_name(&mut self, span: Span, of: &str, name: &str, first: usize) {
        let hint = format!("the first is on line {first}; rename one");
        let kind = of.trim_start_matches("a ").trim_start_matches("an ");
        self.fault(span, format!("duplicate {kind} `{}`", shown(name)), hint);
    }

    pub(super) fn note(&mut self, span: Span, field: &str, kind: NoteKind, message: impl Into<String>) {
        self.notes.push(Note { span, field: field.to_owned(), kind, message: message.into() });
    }

    pub(super) fn note_at(
        &mut self,
        fields: &Fields<'_>,
        key: &str,
        kind: NoteKind,
        message: impl Into<String>,
    ) {
        self.note(fields.span_of(key), &fields.path_of(key), kind, message);
    }

    pub(super) fn wrong_type(&mut self, node: &Node, path: &str, expected: &'static str) {
        self.faults.push(Fault::wrong_type(node.span, last(path), expected, node.found()));
    }

    /// The map at a place, with its keys checked.
    pub(super) fn fields<'n>(&mut self, node: &'n Node, path: &str, keys: &Keys) -> Option<Fields<'n>> {
        let Data::Map(entries) = &node.data else {
            self.wrong_type(node, path, "a map");
            return None;
        };
        let mut misspelled = Vec::new();
        for entry in entries {
            if let Some(ignored) = keys.ignored.iter().find(|ignored| ignored.key == entry.key) {
                self.ignore(entry, &below(path, &entry.key), ignored);
            } else if !keys.known.contains(&entry.key.as_str()) {
                let (advice, near) = keys.advice(&entry.key);
                misspelled.extend(near);
                let message = format!("unknown key `{}` in {}", shown(&entry.key), keys.of);
                self.fault(entry.span, message, advice);
            }
        }
        Some(Fields { entries, span: node.span, path: path.to_owned(), of: keys.of, misspelled })
    }

    /// The map that is the value of a key, if there is one.
    pub(super) fn map<'n>(&mut self, fields: &Fields<'n>, key: &str, keys: &Keys) -> Option<Fields<'n>> {
        self.fields(fields.get(key)?, &fields.path_of(key), keys)
    }

    /// The maps in the list that is the value of a key.
    pub(super) fn maps<'n>(&mut self, fields: &Fields<'n>, key: &str, keys: &Keys) -> Vec<Fields<'n>> {
        let path = fields.path_of(key);
        let nodes = self.list(fields, key).iter().enumerate();
        nodes.filter_map(|(index, node)| self.fields(node, &format!("{path}[{index}]"), keys)).collect()
    }

    fn missing(&mut self, fields: &Fields<'_>, key: &'static str) {
        if !fields.misspelled.contains(&key) {
            self.fault(fields.span, format!("{} without `{key}`", fields.of), format!("add `{key}:`"));
        }
    }

    pub(super) fn required<'n>(&mut self, fields: &Fields<'n>, key: &'static str) -> Option<&'n Node> {
        let node = fields.get(key);
        if node.is_none() {
            self.missing(fields, key);
        }
        node
    }

    fn scalar<'n>(
        &mut self,
        fields: &Fields<'n>,
        key: &'static str,
        expected: &'static str,
        fits: impl Fn(&Scalar) -> bool,
    ) -> Option<(&'n Scalar, Span)> {
        let node = fields.get(key)?;
        match &node.data {
            Data::Scalar(scalar) if fits(scalar) => Some((scalar, node.span)),
            _ => {
                self.wrong_type(node, key, expected);
                None
            }
        }
    }

    /// Text that must not look like anything else.
    pub(super) fn text(&mut self, fields: &Fields<'_>, key: &'static str) -> Option<String> {
        let (scalar, _) = self.scalar(fields, key, "text", |scalar| scalar.kind() == ScalarKind::Text)?;
        Some(scalar.text.clone())
    }

    /// The same, which must be there and not be empty.
    pub(super) fn required_text(&mut self, fields: &Fields<'_>, key: &'static str) -> Option<String> {
        self.required(fields, key)?;
        let text = self.text(fields, key)?;
        if text.is_empty() {
            self.missing(fields, key);
            return None;
        }
        Some(text)
    }

    /// Text that people write without quotes, as it is written.
    pub(super) fn loose_text(&mut self, fields: &Fields<'_>, key: &str) -> Option<String> {
        self.loose_text_at(fields.get(key)?, &fields.path_of(key))
    }

    pub(super) fn loose_text_at(&mut self, node: &Node, path: &str) -> Option<String> {
        let Data::Scalar(scalar) = &node.data else {
            self.wrong_type(node, path, "text");
            return None;
        };
        match scalar.kind() {
            ScalarKind::Text => {}
            ScalarKind::Null => {
                self.wrong_type(node, path, "text");
                return None;
            }
            ScalarKind::Number | ScalarKind::Flag(_) => {
                let message = "taken as it is written; Azure's tools make a number or a flag of it on the way, so put \
                             it in quotes";
                self.note(node.span, path, NoteKind::Differs, message);
            }
        }
        if scalar.text.contains('\0') {
            self.bad_text(node.span, last(path), "remove the zero byte");
            return None;
        }
        Some(scalar.text.clone())
    }

    pub(super) fn flag(&mut self, fields: &Fields<'_>, key: &'static str) -> Option<bool> {
        let is_flag = |scalar: &Scalar| matches!(scalar.kind(), ScalarKind::Flag(_));
        let (scalar, _) = self.scalar(fields, key, "true or false", is_flag)?;
        Some(scalar.kind() == ScalarKind::Flag(true))
    }

    /// A number above zero that a machine may have.
    pub(super) fn amount(&mut self, fields: &Fields<'_>, key: &'static str, most: f64) -> Option<f64> {
        let (scalar, span) =
            self.scalar(fields, key, "a number", |scalar| scalar.kind() == ScalarKind::Number)?;
        let value = scalar.number().unwrap_or(f64::NAN);
        let text = shown(&scalar.text);
        if value > 0.0 && value <= most {
            return Some(value);
        } else if value > most && value.is_finite() {
            let message = format!("`{key}` is {text}, more than any machine has");
            self.fault(span, message, "look at the unit: cores, and gigabytes");
        } else {
            let message = format!("`{key}` is {text}, which is not above zero");
            self.fault(span, message, "write a number above zero");
        }
        None
    }

    /// A whole number of a range.
    pub(super) fn whole<T: TryFrom<i64>>(
        &mut self,
        fields: &Fields<'_>,
        key: &'static str,
        least: i64,
        most: i64,
    ) -> Option<T> {
        let whole = |scalar: &Scalar| {
            let digits = scalar.text.trim_start_matches(['+', '-']);
            // Leading zeros mean another base to some readers.
            scalar.kind() == ScalarKind::Number
                && digits.bytes().all(|byte| byte.is_ascii_digit())
                && (digits.len() == 1 || !digits.starts_with('0'))
        };
        let (scalar, span) = self.scalar(fields, key, "a whole number", whole)?;
        let value = scalar.text.parse().ok().filter(|value| (least..=most).contains(value));
        let value = value.and_then(|value| T::try_from(value).ok());
        if value.is_none() {
            let text = shown(&scalar.text);
            let message = format!("`{key}` is {text}, which is not between {least} and {most}");
            self.fault(span, message, format!("write a whole number from {least} to {most}"));
        }
        value
    }

    /// One of a few values, in the spelling of the table; case does not matter, as in Azure.
    pub(super) fn choice(
        &mut self,
        fields: &Fields<'_>,
        key: &'static str,
        known: &'static [&'static str],
    ) -> Option<&'static str> {
        let (scalar, span) = self.scalar(fields, key, "text", |scalar| scalar.kind() == ScalarKind::Text)?;
        let choice = known.iter().find(|name| name.eq_ignore_ascii_case(&scalar.text)).copied();
        if choice.is_none() {
            let near = closest(&scalar.text, known.iter().copied());
            let hint = did_you_mean_or(near, &format!("write {}", alternatives(known)));
            self.unknown_value(span, key, &scalar.text, hint);
        }
        choice
    }

    pub(super) fn unknown_value(&mut self, span: Span, key: &str, text: &str, hint: String) {
        self.fault(span, format!("`{key}` cannot be `{}`", shown(text)), hint);
    }

    /// The members of a list; none if it is left out.
    pub(super) fn list<'n>(&mut self, fields: &Fields<'n>, key: &str) -> &'n [Node] {
        match fields.get(key) {
            None => &[],
            Some(Node { data: Data::List(members), .. }) => members,
            Some(node) => {
                self.wrong_type(node, key, "a list");
                &[]
            }
        }
    }

    pub(super) fn texts(&mut self, fields: &Fields<'_>, key: &str) -> Vec<String> {
        let path = fields.path_of(key);
        let members = self.list(fields, key).iter().enumerate();
        members.filter_map(|(index, node)| self.loose_text_at(node, &format!("{path}[{index}]"))).collect()
    }

    /// The entries of a map with names of its own; none if it is left out.
    pub(super) fn entries<'n>(&mut self, fields: &Fields<'n>, key: &str) -> &'n [MapEntry] {
        match fields.get(key) {
            None => &[],
            Some(Node { data: Data::Map(entries), .. }) => entries,
            Some(node) => {
                self.wrong_type(node, key, "a map");
                &[]
            }
        }
    }
}
