//! `/etc/hostname`.

use crate::{Error, Result};

/// The kernel keeps no more bytes of a host name.
const LONGEST: usize = 64;

/// And DNS no more of one label of it.
const LONGEST_LABEL: usize = 63;

/// The file's text: the name, if it is one that resolvers and the kernel both take.
pub fn hostname(name: &str) -> Result<String> {
    match find_mistake(name) {
        None => Ok(format!("{name}\n")),
        Some((at, reason)) => Err(Error::HostName { text: name.to_owned(), column: at + 1, reason }),
    }
}

/// What is wrong with a name, and at which character.
fn find_mistake(name: &str) -> Option<(usize, String)> {
    if name.is_empty() {
        return Some((0, "it is empty".to_owned()));
    }
    let allowed = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '.' | '_');
    if let Some((at, sign)) = name.chars().enumerate().find(|(_, sign)| !allowed(*sign)) {
        return Some((at, format!("`{}` is not allowed in it", sign.escape_debug())));
    }
    if name.len() > LONGEST {
        return Some((LONGEST, format!("it is longer than {LONGEST} characters")));
    }
    let mut from = 0;
    for label in name.split('.') {
        if label.is_empty() {
            return Some((from, "a part of it is empty".to_owned()));
        }
        if label.len() > LONGEST_LABEL {
            return Some((from, format!("a part of it is longer than {LONGEST_LABEL} characters")));
        }
        if label.starts_with('-') {
            return Some((from, "a part of it begins with a hyphen".to_owned()));
        }
        if label.ends_with('-') {
            return Some((from + label.len() - 1, "a part of it ends with a hyphen".to_owned()));
        }
        from += label.len() + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

    use super::*;

    #[test]
    fn a_good_name_is_a_line_of_its_own() {
        for name in ["a", "web-1", "node.example.org", "my_box", &"a".repeat(63)] {
            assert_eq!(hostname(name).unwrap(), format!("{name}\n"));
        }
    }

    #[test]
    fn a_bad_name_is_refused_with_its_place() {
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
                Error::HostName { column: found, .. } => assert_eq!(found, column, "{name}"),
                other => panic!("{other}"),
            }
        }
    }
}
