//! Parses pip's configuration files as Python's `configparser` does.

use std::collections::BTreeMap;

/// The settings of one file, by section and key. Keys are in lower case, with dashes, without a leading `--`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Ini {
    values: BTreeMap<(String, String), String>,
}

impl Ini {
    /// Parses a file's text; the error names the invalid line, without its content.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut ini = Self::default();
        let mut section: Option<String> = None;
        // The key that an indented line continues, and its own indentation.
        let mut open: Option<((String, String), usize)> = None;
        for (number, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let bare = line.trim();
            if bare.is_empty() || bare.starts_with(['#', ';']) {
                continue;
            }
            let indent = line.len() - line.trim_start().len();
            if let Some((key, of_key)) = &open
                && indent > *of_key
            {
                if let Some(value) = ini.values.get_mut(key) {
                    value.push('\n');
                    value.push_str(bare);
                }
                continue;
            }
            let wrong = |what: &str| Err(format!("line {}: {what}", number + 1));
            if let Some(name) = bare.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
                section = Some(name.to_owned());
                open = None;
                continue;
            }
            let Some(section) = &section else { return wrong("is before any [section]") };
            let Some((key, value)) = bare.split_once(['=', ':']) else { return wrong("has no =") };
            let key = (section.clone(), normalized(key));
            if ini.values.insert(key.clone(), value.trim().to_owned()).is_some() {
                return wrong("repeats a key of its section");
            }
            open = Some((key, indent));
        }
        Ok(ini)
    }

    pub(super) fn get(&self, section: &str, key: &str) -> Option<&str> {
        self.values.get(&(section.to_owned(), key.to_owned())).map(String::as_str)
    }
}

fn normalized(key: &str) -> String {
    let key = key.trim().to_ascii_lowercase().replace('_', "-");
    key.strip_prefix("--").map_or_else(|| key.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_lists_and_comments_are_parsed_as_by_pip() {
        let ini = Ini::parse(
            "# ours\n[global]\nindex_url = https://a.b/simple?x=y\nExtra-Index-URL:\n    https://c.d/\n\n    ; not this\n  \
             https://e.f/\n--no-index=yes\n[install]\nfind-links = /a /b\n",
        )
        .unwrap();
        assert_eq!(ini.get("global", "index-url"), Some("https://a.b/simple?x=y"));
        assert_eq!(ini.get("global", "extra-index-url"), Some("\nhttps://c.d/\nhttps://e.f/"));
        assert_eq!(ini.get("global", "no-index"), Some("yes"));
        assert_eq!(ini.get("install", "find-links"), Some("/a /b"));
        assert_eq!(ini.get("install", "index-url"), None);
    }

    #[test]
    fn an_invalid_line_is_reported_without_its_content() {
        for (text, error) in [
            ("password = secret", "line 1: is before any [section]"),
            ("[global]\n\nsecret", "line 3: has no ="),
            ("[global]\na = 1\nA = secret", "line 3: repeats a key of its section"),
        ] {
            assert_eq!(Ini::parse(text), Err(error.to_owned()));
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[ \\[\\]=:#;a-c\n\t\u{feff}é]{0,60}") {
            let _ = Ini::parse(&text);
        }
    }
}
