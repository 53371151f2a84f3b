//! Reads typed values from a YAML tree and collects what is wrong with them.
//!
//! A reader goes on after a fault, so that all of them are found in one go. Whoever gets nothing from it need not say
//! why: that has been noted.

use std::collections::BTreeMap;

use crate::fault::{Fault, Problem};
use crate::kept::{Kept, KeptValue};
use crate::note::{Note, NoteKind};
use cudock_base::Span;
use cudock_base::format::alternatives;
use cudock_base::suggest::closest;
use cudock_base::text::escape;
use cudock_yaml::{Data, MapEntry, Node, Scalar, ScalarKind};

/// Which keys a map has.
pub(super) struct Keys {
    /// What the map is, as in "unknown key in a container".
    pub(super) of: &'static str,
    pub(super) known: &'static [&'static str],
    /// Those that do nothing here.
    pub(super) kept: &'static [Kept],
    /// Keys that users often expect here, and the hint for each.
    pub(super) elsewhere: &'static [(&'static [&'static str], &'static str)],
}

impl Keys {
    pub(super) const fn new(of: &'static str, known: &'static [&'static str]) -> Self {
        Self { of, known, kept: &[], elsewhere: &[] }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &'static str> {
        self.known.iter().copied().chain(self.kept.iter().map(|kept| kept.key))
    }

    /// What to write instead of an unknown key, and the known key that was probably meant.
    fn advice(&self, key: &str) -> (String, Option<&'static str>) {
        if let Some((_, advice)) = self.elsewhere.iter().find(|(keys, _)| keys.contains(&key)) {
            return ((*advice).to_owned(), None);
        }
        match closest(key, self.all()) {
            Some(near) => (format!("did you mean `{near}`?"), Some(near)),
            None if (1..=6).contains(&self.known.len()) => {
                (format!("write {}", alternatives(self.known)), None)
            }
            None => ("remove it".to_owned(), None),
        }
    }
}

/// A map of the file.
pub(super) struct Fields<'n> {
    entries: &'n [MapEntry],
    pub(super) span: Span,
    pub(super) path: String,
    of: &'static str,
    /// Keys that were meant and misspelt; they are not missing besides.
    misspelt: Vec<&'static str>,
}

impl<'n> Fields<'n> {
    /// The value of a key; nothing if it is left out or null.
    pub(super) fn get(&self, key: &str) -> Option<&'n Node> {
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        Some(&entry.value).filter(|value| !value.is_null())
    }

    /// The place of a key in the file: `properties.osType`.
    pub(super) fn path_of(&self, key: &str) -> String {
        below(&self.path, key)
    }
}

pub(super) fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// What was found so far.
#[derive(Default)]
pub(super) struct GroupReader {
    pub(super) faults: Vec<Fault>,
    pub(super) notes: Vec<Note>,
    pub(super) kept: BTreeMap<String, KeptValue>,
}

impl GroupReader {
    pub(super) fn fault(&mut self, span: Span, problem: Problem) {
        self.faults.push(Fault::new(span, problem));
    }

    pub(super) fn note(&mut self, span: Span, field: &str, kind: NoteKind, message: impl Into<String>) {
        self.notes.push(Note { span, field: field.to_owned(), kind, message: message.into() });
    }

    pub(super) fn wrong_type(&mut self, node: &Node, path: &str, expected: &'static str) {
        let what = path.rsplit('.').next().unwrap_or(path).to_owned();
        self.fault(node.span, Problem::WrongType { what, expected, found: node.found() });
    }

    /// The map at a place, with its keys checked and what is only kept taken out.
    pub(super) fn fields<'n>(&mut self, node: &'n Node, path: &str, keys: &Keys) -> Option<Fields<'n>> {
        let Data::Map(entries) = &node.data else {
            self.wrong_type(node, path, "a map");
            return None;
        };
        let mut misspelt = Vec::new();
        for entry in entries {
            if let Some(kept) = keys.kept.iter().find(|kept| kept.key == entry.key) {
                self.keep(entry, &below(path, &entry.key), kept);
            } else if !keys.known.contains(&entry.key.as_str()) {
                let (advice, near) = keys.advice(&entry.key);
                misspelt.extend(near);
                let key = entry.key.clone();
                self.fault(entry.span, Problem::UnknownKey { key, of: keys.of, advice });
            }
        }
        Some(Fields { entries, span: node.span, path: path.to_owned(), of: keys.of, misspelt })
    }

    fn missing(&mut self, fields: &Fields<'_>, key: &'static str) {
        if !fields.misspelt.contains(&key) {
            self.fault(fields.span, Problem::MissingKey { key, of: fields.of });
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
    pub(super) fn loose_text(&mut self, node: &Node, path: &str) -> Option<String> {
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
            let what = path.rsplit('.').next().unwrap_or(path).to_owned();
            self.fault(node.span, Problem::BadText { what, rule: "remove the zero byte" });
            return None;
        }
        Some(scalar.text.clone())
    }

    pub(super) fn flag(&mut self, fields: &Fields<'_>, key: &'static str) -> Option<bool> {
        let is_flag = |scalar: &Scalar| matches!(scalar.kind(), ScalarKind::Flag(_));
        let (scalar, _) = self.scalar(fields, key, "true or false", is_flag)?;
        Some(scalar.kind() == ScalarKind::Flag(true))
    }

    /// A number above zero, which is what every amount is.
    pub(super) fn amount(&mut self, fields: &Fields<'_>, key: &'static str) -> Option<f64> {
        let (scalar, span) =
            self.scalar(fields, key, "a number", |scalar| scalar.kind() == ScalarKind::Number)?;
        let value = scalar.number().unwrap_or(f64::NAN);
        if value > 0.0 && value.is_finite() {
            return Some(value);
        }
        let (what, value) = (key.to_owned(), escape(&scalar.text, 60));
        self.fault(span, Problem::NotPositive { what, value });
        None
    }

    /// A whole number of a range.
    pub(super) fn whole(
        &mut self,
        fields: &Fields<'_>,
        key: &'static str,
        least: i64,
        most: i64,
    ) -> Option<i64> {
        let whole = |scalar: &Scalar| {
            let digits = scalar.text.trim_start_matches(['+', '-']);
            // Leading zeros mean another base to some readers.
            scalar.kind() == ScalarKind::Number
                && digits.bytes().all(|byte| byte.is_ascii_digit())
                && (digits.len() == 1 || !digits.starts_with('0'))
        };
        let (scalar, span) = self.scalar(fields, key, "a whole number", whole)?;
        let value = scalar.text.parse().ok().filter(|value| (least..=most).contains(value));
        if value.is_none() {
            let (what, value) = (key.to_owned(), escape(&scalar.text, 60));
            self.fault(span, Problem::OutOfRange { what, value, least, most });
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
            let (what, value) = (key.to_owned(), scalar.text.clone());
            self.fault(span, Problem::UnknownValue { what, value, known, near });
        }
        choice
    }

    /// The members of a list; none if it is left out.
    pub(super) fn list<'n>(&mut self, fields: &Fields<'n>, key: &'static str) -> &'n [Node] {
        match fields.get(key) {
            None => &[],
            Some(Node { data: Data::List(members), .. }) => members,
            Some(node) => {
                self.wrong_type(node, key, "a list");
                &[]
            }
        }
    }

    pub(super) fn texts(&mut self, fields: &Fields<'_>, key: &'static str) -> Vec<String> {
        let path = fields.path_of(key);
        let members = self.list(fields, key).iter().enumerate();
        members.filter_map(|(index, node)| self.loose_text(node, &format!("{path}[{index}]"))).collect()
    }

    /// The entries of a map with names of its own; none if it is left out.
    pub(super) fn entries<'n>(&mut self, node: &'n Node, path: &str) -> &'n [MapEntry] {
        if let Data::Map(entries) = &node.data {
            return entries;
        }
        self.wrong_type(node, path, "a map");
        &[]
    }
}
