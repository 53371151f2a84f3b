//! Keeping what does nothing here, if it has its shape.

use std::collections::BTreeMap;

use crate::fault::Problem;
use crate::kept::{Kept, KeptValue, Shape};
use crate::note::NoteKind;
use cudock_base::Secret;
use cudock_base::suggest::closest;
use cudock_yaml::{Data, MapEntry, Node, Scalar, ScalarKind};

use super::fields::{GroupReader, below};

impl GroupReader {
    pub(super) fn keep(&mut self, entry: &MapEntry, path: &str, kept: &Kept) {
        if entry.value.is_null() {
            return;
        }
        let Some(value) = self.value(&entry.value, path, &kept.shape) else { return };
        let empty = match &value {
            KeptValue::List(members) => members.is_empty(),
            KeptValue::Map(entries) => entries.is_empty(),
            _ => false,
        };
        if !empty {
            self.note(entry.span, path, NoteKind::Ignored, kept.reason);
            self.kept.insert(path.to_owned(), value);
        }
    }

    /// A value that is only kept, if it has its shape.
    fn value(&mut self, node: &Node, path: &str, shape: &Shape) -> Option<KeptValue> {
        let value = match (&node.data, shape) {
            (Data::Scalar(scalar), Shape::Secret | Shape::AnySecret) => {
                KeptValue::Secret(Secret::new(scalar.text.clone()))
            }
            (Data::Scalar(scalar), Shape::Text | Shape::Any) => plain_value(scalar),
            (Data::List(members), Shape::List(_) | Shape::Any | Shape::AnySecret) => {
                let shape = if let Shape::List(inner) = shape { inner } else { shape };
                let named = |index| format!("{path}[{index}]");
                let values = members.iter().enumerate();
                KeptValue::List(
                    values.filter_map(|(index, member)| self.value(member, &named(index), shape)).collect(),
                )
            }
            (Data::Map(entries), Shape::Map(_) | Shape::Any | Shape::AnySecret) => {
                let shape = if let Shape::Map(inner) = shape { inner } else { shape };
                let mut values = BTreeMap::new();
                for MapEntry { key, value, .. } in entries.iter().filter(|entry| !entry.value.is_null()) {
                    if let Some(value) = self.value(value, &below(path, key), shape) {
                        values.insert(key.clone(), value);
                    }
                }
                KeptValue::Map(values)
            }
            (Data::Map(entries), Shape::Object(of, known)) => {
                KeptValue::Map(self.object(entries, path, of, known))
            }
            (_, shape) => {
                let expected = match shape {
                    Shape::List(_) => "a list",
                    Shape::Map(_) | Shape::Object(..) => "a map",
                    _ => "text",
                };
                self.wrong_type(node, path, expected);
                return None;
            }
        };
        Some(value)
    }

    fn object(
        &mut self,
        entries: &[MapEntry],
        path: &str,
        of: &'static str,
        known: &'static [(&'static str, Shape)],
    ) -> BTreeMap<String, KeptValue> {
        let mut values = BTreeMap::new();
        for MapEntry { key, span, value } in entries {
            let Some((_, shape)) = known.iter().find(|(name, _)| name == key) else {
                let near = closest(key, known.iter().map(|(name, _)| *name));
                let advice = near.map_or("remove it".to_owned(), |near| format!("did you mean `{near}`?"));
                self.fault(*span, Problem::UnknownKey { key: key.clone(), of, advice });
                continue;
            };
            if !value.is_null()
                && let Some(value) = self.value(value, &below(path, key), shape)
            {
                values.insert(key.clone(), value);
            }
        }
        values
    }
}

fn plain_value(scalar: &Scalar) -> KeptValue {
    match scalar.kind() {
        ScalarKind::Flag(flag) => KeptValue::Flag(flag),
        ScalarKind::Number => {
            scalar.number().map_or_else(|| KeptValue::Text(scalar.text.clone()), KeptValue::Number)
        }
        ScalarKind::Null | ScalarKind::Text => KeptValue::Text(scalar.text.clone()),
    }
}
