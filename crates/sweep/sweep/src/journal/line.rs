//! The lines of a journal: JSON objects with the length and the checksum of the record in them.
//!
//! A line is `{"length":     123,"crc32":"1a2b3c4d","record":{…}}`. All but the record has a fixed width, so a line is
//! checked without parsing it, and still is JSON that other tools read.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::JournalError;
use crate::event::Record;

const VERSION: u32 = 1;
const NAME: &str = "cudock-sweep";

const LENGTH_AT: usize = br#"{"length":"#.len();
const LENGTH_WIDTH: usize = 8;
const MIDDLE: &[u8] = br#","crc32":""#;
const CHECKSUM_WIDTH: usize = 8;
const BEFORE_RECORD: &[u8] = br#"","record":"#;
/// Bytes before the record.
const PREFIX: usize = LENGTH_AT + LENGTH_WIDTH + MIDDLE.len() + CHECKSUM_WIDTH + BEFORE_RECORD.len();
/// The brace and the line feed after it.
const SUFFIX: &[u8] = b"}\n";
/// The largest record that is written.
const MAX_RECORD: usize = 16 << 20;

/// The first record.
#[derive(Debug, Serialize, Deserialize)]
struct JournalHeader {
    journal: String,
    version: u32,
}

/// The contents of a journal.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    pub records: Vec<Record>,
    /// Bytes up to the end of the last whole line; the rest was not written completely.
    pub length: usize,
}

pub(super) fn header() -> Vec<u8> {
    let mut bytes = Vec::new();
    let header = JournalHeader { journal: NAME.to_owned(), version: VERSION };
    // Two fields of which neither can fail.
    encode(&header, &mut bytes).unwrap_or_default();
    bytes
}

/// Appends the line of a record.
pub(super) fn encode(record: &impl Serialize, bytes: &mut Vec<u8>) -> Result<(), String> {
    let json = serde_json::to_vec(record).map_err(|error| error.to_string())?;
    if json.len() > MAX_RECORD {
        return Err(format!("a record of {} bytes is too large", json.len()));
    }
    let checksum = crc32fast::hash(&json);
    bytes.reserve(PREFIX + json.len() + SUFFIX.len());
    bytes.extend_from_slice(
        format!(r#"{{"length":{:>LENGTH_WIDTH$},"crc32":"{checksum:08x}","record":"#, json.len()).as_bytes(),
    );
    bytes.extend_from_slice(&json);
    bytes.extend_from_slice(SUFFIX);
    Ok(())
}

/// The record in a line with its line feed; none if the line is not whole.
fn decode(line: &[u8]) -> Option<&[u8]> {
    let (prefix, rest) = line.split_at_checked(PREFIX)?;
    let record = rest.strip_suffix(SUFFIX)?;
    // Comparing with the prefix that would have been written checks all of it at once.
    let expected = format!(
        r#"{{"length":{:>LENGTH_WIDTH$},"crc32":"{:08x}","record":"#,
        record.len(),
        crc32fast::hash(record)
    );
    (prefix == expected.as_bytes()).then_some(record)
}

/// Reads a journal; `path` is for errors. No bytes make it panic or allocate more than they take.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<Parsed, JournalError> {
    let damaged = |offset: usize, problem: &str| JournalError::Damaged {
        path: path.to_owned(),
        offset: offset as u64,
        problem: problem.to_owned(),
    };
    let mut records = Vec::new();
    let (mut length, mut end, mut torn) = (0, 0, None);
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let start = end;
        end += line.len();
        let Some(record) = decode(line) else {
            torn = torn.or(Some(start));
            continue;
        };
        if let Some(torn) = torn {
            return Err(damaged(torn, "a line has a wrong length or checksum"));
        }
        if start == 0 {
            check_header(path, record)?;
        } else {
            records.push(serde_json::from_slice(record).map_err(|error| damaged(start, &error.to_string()))?);
        }
        length = end;
    }
    if length == 0 {
        return Err(damaged(0, "it has no header"));
    }
    Ok(Parsed { records, length })
}

fn check_header(path: &Path, record: &[u8]) -> Result<(), JournalError> {
    let header: JournalHeader = serde_json::from_slice(record)
        .ok()
        .filter(|header: &JournalHeader| header.journal == NAME)
        .ok_or_else(|| JournalError::Damaged {
            path: path.to_owned(),
            offset: 0,
            problem: "not the journal of a sweep".to_owned(),
        })?;
    if header.version > VERSION {
        return Err(JournalError::TooNew {
            path: path.to_owned(),
            version: header.version,
            supported: VERSION,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_json_with_a_prefix_of_fixed_width() {
        let mut bytes = Vec::new();
        encode(&serde_json::json!({"a": [1, 2.5]}), &mut bytes).unwrap();
        let text = std::str::from_utf8(&bytes).unwrap();
        assert_eq!(text, "{\"length\":      13,\"crc32\":\"2995aea8\",\"record\":{\"a\":[1,2.5]}}\n");
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(value.get("record"), Some(&serde_json::json!({"a": [1, 2.5]})));
        assert_eq!(decode(&bytes), Some(br#"{"a":[1,2.5]}"#.as_slice()));
    }

    #[test]
    fn a_line_with_any_byte_changed_is_recognized() {
        let mut bytes = Vec::new();
        encode(&serde_json::json!({"value": 0.61}), &mut bytes).unwrap();
        for index in 0..bytes.len() {
            let mut changed = bytes.clone();
            if let Some(byte) = changed.get_mut(index) {
                *byte ^= 1;
            }
            assert_eq!(decode(&changed), None, "byte {index}");
        }
    }
}
