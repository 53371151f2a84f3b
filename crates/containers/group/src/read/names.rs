//! Names, and whether one comes twice.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

use cudock_base::Span;

use super::fields::{Fields, GroupReader};

const LABEL_RULE: &str =
    "use 1 to 63 lower-case letters, digits and `-`, with a letter or digit at both ends";
pub const GROUP_NAME_RULE: &str = "use 1 to 63 letters, digits and `-`, with a letter or digit at both ends";
const DNS_RULE: &str =
    "use 5 to 63 lower-case letters, digits and `-`, with a letter in front and a letter or digit at the end";

/// The first place of everything that must not come twice.
pub(super) struct SeenNames<K>(HashMap<K, usize>);

impl<K: Hash + Eq> SeenNames<K> {
    pub(super) fn new() -> Self {
        Self(HashMap::new())
    }

    /// The line of the first, if this is another.
    pub(super) fn again(&mut self, key: K, span: Span) -> Option<usize> {
        match self.0.entry(key) {
            Entry::Occupied(first) => Some(*first.get()),
            Entry::Vacant(place) => {
                place.insert(span.line);
                None
            }
        }
    }
}

fn is_label(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&name.len())
        && name.bytes().all(inner)
        && !name.starts_with('-')
        && !name.ends_with('-')
}

/// Whether a text is the name of a group. Microsoft's own examples have capitals in it.
pub fn is_group_name(name: &str) -> bool {
    is_label(&name.to_ascii_lowercase())
}

impl GroupReader {
    /// The `name` of a container or volume, which no other has.
    pub(super) fn label(
        &mut self,
        fields: &Fields<'_>,
        of: &'static str,
        seen: &mut SeenNames<String>,
    ) -> Option<String> {
        let name = self.required_text(fields, "name")?;
        let span = fields.span_of("name");
        if !is_label(&name) {
            self.bad_name(span, of, &name, LABEL_RULE);
            return None;
        }
        if let Some(first) = seen.again(name.clone(), span) {
            self.duplicate_name(span, of, &name, first);
            return None;
        }
        Some(name)
    }

    pub(super) fn group_name(&mut self, fields: &Fields<'_>) -> Option<String> {
        let name = self.required_text(fields, "name")?;
        if !is_group_name(&name) {
            self.bad_name(fields.span_of("name"), "a group", &name, GROUP_NAME_RULE);
        }
        Some(name)
    }

    /// The `dnsNameLabel` of the address, by the rule in Azure's own message.
    pub(super) fn dns_label(&mut self, fields: &Fields<'_>) -> Option<String> {
        let name = self.text(fields, "dnsNameLabel")?;
        let fits = is_label(&name)
            && name.len() >= 5
            && name.starts_with(|letter: char| letter.is_ascii_lowercase());
        if !fits {
            self.bad_name(fields.span_of("dnsNameLabel"), "a DNS label", &name, DNS_RULE);
        }
        Some(name)
    }
}
