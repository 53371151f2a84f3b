//! `/etc/hostname`.

use crate::{NetnsError, Result};

/// The limit of the kernel.
const MAX_LENGTH: usize = 64;

/// The limit of DNS for one label.
const MAX_LABEL_LENGTH: usize = 63;

/// The contents of the file, if both the kernel and resolvers accept the name.
pub fn hostname(name: &str) -> Result<String> {
    match find_error(name) {
        None => Ok(format!("{name}\n")),
        Some((at, reason)) => Err(NetnsError::HostName { text: name.to_owned(), column: at + 1, reason }),
    }
}

/// The position and reason of the first error in a name.
fn find_error(name: &str) -> Option<(usize, String)> {
    if name.is_empty() {
        return Some((0, "name is empty".to_owned()));
    }
    let allowed = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '.' | '_');
    if let Some((at, character)) = name.chars().enumerate().find(|(_, character)| !allowed(*character)) {
        return Some((at, format!("character `{}` is not allowed", character.escape_debug())));
    }
    if name.len() > MAX_LENGTH {
        return Some((MAX_LENGTH, format!("name is longer than {MAX_LENGTH} characters")));
    }
    let mut from = 0;
    for label in name.split('.') {
        if label.is_empty() {
            return Some((from, "empty label".to_owned()));
        }
        if label.len() > MAX_LABEL_LENGTH {
            return Some((from, format!("label is longer than {MAX_LABEL_LENGTH} characters")));
        }
        if label.starts_with('-') {
            return Some((from, "label starts with a hyphen".to_owned()));
        }
        if label.ends_with('-') {
            return Some((from + label.len() - 1, "label ends with a hyphen".to_owned()));
        }
        from += label.len() + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_valid_name_is_a_line() {
        for name in ["a", "web-1", "node.example.org", "my_box", &"a".repeat(63)] {
            assert_eq!(hostname(name).unwrap(), format!("{name}\n"));
        }
    }

    #[test]
    fn an_invalid_name_is_rejected_with_its_column() {
        let long = "a".repeat(65);
        for (name, column) in [
            ("", 1),
            ("two words", 4),
            ("line\nbreak", 5),
            ("-a", 1),
            ("a.b-", 4),
            ("a..b", 3),
            ("ä", 1),
            (&long, 65),
            (&long[..64], 1),
        ] {
            match hostname(name).unwrap_err() {
                NetnsError::HostName { column: found, .. } => assert_eq!(found, column, "{name}"),
                other => panic!("{other}"),
            }
        }
    }
}
