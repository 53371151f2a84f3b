//! Messages as written by the classes of the official client.

use bytes::Bytes;

const MESSAGES: &str = include_str!("fixtures/messages.txt");

pub(crate) fn message(name: &str) -> Bytes {
    let digits = MESSAGES
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
        .unwrap_or_else(|| panic!("no message {name}"));
    let bytes = (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap());
    bytes.collect()
}

pub(crate) fn all() -> Vec<Bytes> {
    MESSAGES.lines().filter_map(|line| line.split_once(' ')).map(|(name, _)| message(name)).collect()
}
