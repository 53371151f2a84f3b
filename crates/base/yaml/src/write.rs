//! Serializes serde types as YAML, in the order of their fields, with a formatter for `serde_json`'s serializer.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter, Serializer};

use crate::tree::{Scalar, ScalarKind};

/// Serializes a value as block-style YAML that means the same in YAML 1.1 and 1.2.
pub fn to_string<T: Serialize>(value: &T) -> Result<String, serde_json::Error> {
    let mut out = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut out, Yaml::default()))?;
    out.push(b'\n');
    String::from_utf8(out).map_err(serde::ser::Error::custom)
}

#[derive(Default)]
struct Yaml {
    open: Vec<Container>,
    /// The text of the current string.
    string: Vec<u8>,
    position: Position,
}

/// The text before the next value in its line.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Position {
    #[default]
    Start,
    Key,
    AfterKey,
    AfterDash,
}

struct Container {
    is_list: bool,
    is_empty: bool,
    indent: usize,
}

impl Yaml {
    fn begin(&mut self, is_list: bool) {
        let indent = match (self.open.last(), self.position) {
            (None, _) => 0,
            (Some(outer), Position::AfterKey) if is_list => outer.indent,
            (Some(outer), _) => outer.indent + 2,
        };
        self.open.push(Container { is_list, is_empty: true, indent });
    }

    fn end<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        match self.open.pop() {
            Some(Container { is_list: true, is_empty: true, .. }) => self.scalar(out, b"[]"),
            Some(Container { is_list: false, is_empty: true, .. }) => self.scalar(out, b"{}"),
            _ => Ok(()),
        }
    }

    /// Starts an entry or a member.
    fn entry<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        let Some(container) = self.open.last_mut() else { return Ok(()) };
        let continues_line =
            container.is_empty && matches!(self.position, Position::Start | Position::AfterDash);
        container.is_empty = false;
        if !continues_line {
            write!(out, "\n{:indent$}", "", indent = container.indent)?;
        }
        Ok(())
    }

    fn scalar<W: ?Sized + Write>(&mut self, out: &mut W, text: &[u8]) -> io::Result<()> {
        if self.position == Position::AfterKey {
            out.write_all(b" ")?;
        }
        out.write_all(text)
    }
}

impl Formatter for Yaml {
    fn write_null<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.scalar(out, b"null")
    }

    fn write_bool<W: ?Sized + Write>(&mut self, out: &mut W, value: bool) -> io::Result<()> {
        self.scalar(out, if value { b"true" } else { b"false" })
    }

    fn write_i64<W: ?Sized + Write>(&mut self, out: &mut W, value: i64) -> io::Result<()> {
        self.scalar(out, value.to_string().as_bytes())
    }

    fn write_u64<W: ?Sized + Write>(&mut self, out: &mut W, value: u64) -> io::Result<()> {
        self.scalar(out, value.to_string().as_bytes())
    }

    fn write_i8<W: ?Sized + Write>(&mut self, out: &mut W, value: i8) -> io::Result<()> {
        self.write_i64(out, value.into())
    }

    fn write_i16<W: ?Sized + Write>(&mut self, out: &mut W, value: i16) -> io::Result<()> {
        self.write_i64(out, value.into())
    }

    fn write_u8<W: ?Sized + Write>(&mut self, out: &mut W, value: u8) -> io::Result<()> {
        self.write_u64(out, value.into())
    }

    fn write_u16<W: ?Sized + Write>(&mut self, out: &mut W, value: u16) -> io::Result<()> {
        self.write_u64(out, value.into())
    }

    fn write_f32<W: ?Sized + Write>(&mut self, out: &mut W, value: f32) -> io::Result<()> {
        self.scalar(out, value.to_string().as_bytes())
    }

    fn write_i32<W: ?Sized + Write>(&mut self, out: &mut W, value: i32) -> io::Result<()> {
        self.write_i64(out, value.into())
    }

    fn write_u32<W: ?Sized + Write>(&mut self, out: &mut W, value: u32) -> io::Result<()> {
        self.write_u64(out, value.into())
    }

    fn write_f64<W: ?Sized + Write>(&mut self, out: &mut W, value: f64) -> io::Result<()> {
        self.scalar(out, value.to_string().as_bytes())
    }

    fn begin_string<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.string.clear();
        Ok(())
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, _: &mut W, text: &str) -> io::Result<()> {
        self.string.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn write_char_escape<W: ?Sized + Write>(&mut self, _: &mut W, escape: CharEscape) -> io::Result<()> {
        self.string.push(match escape {
            CharEscape::Quote => b'"',
            CharEscape::ReverseSolidus => b'\\',
            CharEscape::Solidus => b'/',
            CharEscape::Backspace => 8,
            CharEscape::FormFeed => 12,
            CharEscape::LineFeed => b'\n',
            CharEscape::CarriageReturn => b'\r',
            CharEscape::Tab => b'\t',
            CharEscape::AsciiControl(byte) => byte,
        });
        Ok(())
    }

    fn end_string<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        let text = String::from_utf8_lossy(&self.string).into_owned();
        if is_plain(&text) {
            self.scalar(out, text.as_bytes())
        } else if text.contains(char::is_control) {
            // Escapes of JSON are escapes of YAML.
            self.scalar(out, serde_json::to_string(&text)?.as_bytes())
        } else {
            self.scalar(out, format!("'{}'", text.replace('\'', "''")).as_bytes())
        }
    }

    fn begin_array<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.begin(true);
        Ok(())
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, _: bool) -> io::Result<()> {
        self.entry(out)?;
        self.position = Position::AfterDash;
        out.write_all(b"- ")
    }

    fn begin_object<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.begin(false);
        Ok(())
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, _: bool) -> io::Result<()> {
        self.entry(out)?;
        self.position = Position::Key;
        Ok(())
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.position = Position::AfterKey;
        out.write_all(b":")
    }
}

/// Whether a text needs no quotes in YAML 1.1 or 1.2.
fn is_plain(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:@+=, ".contains(&byte);
    let is_text = Scalar { text: text.to_owned(), quoted: false }.kind() == ScalarKind::Text;
    // YAML 1.1 has times and dates, octal numbers and numbers in base 60.
    let is_number_like = text.contains([':', '-', '_'])
        && text.bytes().all(|byte| byte.is_ascii_digit() || b":-_. ".contains(&byte));
    let year = text.get(..5).and_then(|start| start.strip_suffix('-')).unwrap_or_default();
    let is_date = !year.is_empty() && year.bytes().all(|byte| byte.is_ascii_digit());
    let is_based = ["0x", "0o", "0b"].iter().any(|prefix| text.starts_with(prefix));
    is_text
        && !is_number_like
        && !is_date
        && !is_based
        && !["y", "Y", "n", "N"].contains(&text)
        && text.starts_with(|first: char| first.is_ascii_alphanumeric() || matches!(first, '/' | '_' | '.'))
        && text.bytes().all(is_inner)
        && !text.ends_with([':', ' '])
        && !text.contains(": ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::from_str;

    #[test]
    fn values_are_written_in_block_style() {
        #[derive(Serialize)]
        struct File {
            version: &'static str,
            devices: Vec<Value>,
            none: Vec<u8>,
            edits: Value,
        }
        let file = File {
            version: "0.5.0",
            devices: vec![json!({"name": "0", "nodes": [{"path": "/dev/nvidia0"}]}), json!([1, [2]])],
            none: Vec::new(),
            edits: json!({"a": {}, "env": ["A=b c", "it's: x", "two\nlines", "2026-11-18T02:00:00Z"], "x": null}),
        };
        let expected = "version: 0.5.0\ndevices:\n- name: '0'\n  nodes:\n  - path: /dev/nvidia0\n- - 1\n  - - 2\n\
                        none: []\nedits:\n  a: {}\n  env:\n  - A=b c\n  - 'it''s: x'\n  - \"two\\nlines\"\n  \
                        - '2026-11-18T02:00:00Z'\n  x: null\n";
        assert_eq!(to_string(&file).unwrap(), expected);
    }

    #[test]
    fn numbers_of_every_size_are_numbers() {
        #[derive(Serialize)]
        struct Numbers {
            a: i8,
            b: i16,
            c: i32,
            d: u8,
            e: u16,
            f: u32,
            g: f32,
            h: f64,
        }
        let numbers = Numbers { a: -1, b: -2, c: -3, d: 4, e: 8000, f: 6, g: 0.5, h: 1.5 };
        let text = to_string(&numbers).unwrap();
        assert_eq!(text, "a: -1\nb: -2\nc: -3\nd: 4\ne: 8000\nf: 6\ng: 0.5\nh: 1.5\n");
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-z0-9:.~'\" \\-\n#\u{e9}]{0,6}".prop_map(Value::from),
            prop_oneof![
                Just("2026-11-18T02:00:00Z"),
                Just("yes"),
                Just("0x1"),
                Just("1_0"),
                Just("null"),
                Just("12:30")
            ]
            .prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-z0-9:]{0,3}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(value in values()) {
            let text = to_string(&value).unwrap();
            prop_assert_eq!(from_str::<Value>(&text).unwrap(), value, "{}", text);
        }
    }
}
