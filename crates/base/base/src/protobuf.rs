//! Reads protobuf messages field by field, without copying them.
//!
//! For messages that a generated parser would make expensive: inference requests, of which it makes hundreds of bytes of
//! structs out of two bytes, and models, whose gigabytes of weights are skipped. The input is untrusted: nothing is
//! allocated, and reading ends with the first error.

/// An invalid message, and where it is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} ({}at byte {at})", show_field(*.field))]
pub struct WireError {
    pub kind: WireErrorKind,
    /// The number of the field, if it is known.
    pub field: Option<u32>,
    /// Where the field begins in its message.
    pub at: usize,
}

fn show_field(number: Option<u32>) -> String {
    number.map_or_else(String::new, |number| format!("field {number} "))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireErrorKind {
    #[error("field claims {length} bytes, but {left} are left")]
    Truncated { length: u64, left: usize },
    #[error("unexpected end in a number")]
    UnexpectedEnd,
    #[error("number has more than ten bytes")]
    TooLong,
    #[error("number has more than 64 bits")]
    TooLarge,
    #[error("invalid field number {0}")]
    FieldNumber(u64),
    #[error("unsupported wire type {0}")]
    WireType(u64),
    #[error("expected {expected}, found {found}")]
    Kind { expected: &'static str, found: &'static str },
    #[error("a string is not UTF-8")]
    Text,
}

/// For readers whose errors are text.
impl From<WireError> for String {
    fn from(error: WireError) -> Self {
        error.to_string()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireValue<'a> {
    Varint(u64),
    Fixed64([u8; 8]),
    /// A string, a message, or packed numbers.
    Bytes(&'a [u8]),
    Fixed32([u8; 4]),
}

/// The value of a field, which knows its field for errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldValue<'a> {
    pub wire: WireValue<'a>,
    number: u32,
    at: usize,
}

impl<'a> FieldValue<'a> {
    pub fn bytes(self) -> Result<&'a [u8], WireError> {
        match self.wire {
            WireValue::Bytes(bytes) => Ok(bytes),
            _ => Err(self.unexpected("a string or message")),
        }
    }

    pub fn text(self) -> Result<&'a str, WireError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| self.error(WireErrorKind::Text))
    }

    pub fn number(self) -> Result<u64, WireError> {
        match self.wire {
            WireValue::Varint(number) => Ok(number),
            _ => Err(self.unexpected("an integer")),
        }
    }

    /// Calls `take` with each number of a repeated field, packed or not.
    pub fn numbers<E: From<WireError>>(self, mut take: impl FnMut(u64) -> Result<(), E>) -> Result<(), E> {
        match self.wire {
            WireValue::Varint(number) => take(number),
            WireValue::Bytes(mut packed) => {
                while !packed.is_empty() {
                    take(varint(&mut packed).map_err(|kind| self.error(kind))?)?;
                }
                Ok(())
            }
            _ => Err(self.unexpected("integers").into()),
        }
    }

    fn unexpected(self, expected: &'static str) -> WireError {
        let found = if matches!(self.wire, WireValue::Bytes(_)) { "bytes" } else { "a number" };
        self.error(WireErrorKind::Kind { expected, found })
    }

    fn error(self, kind: WireErrorKind) -> WireError {
        WireError { kind, field: Some(self.number), at: self.at }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodedField<'a> {
    pub number: u32,
    pub value: FieldValue<'a>,
    /// The field as it was written, tag included.
    pub encoded: &'a [u8],
}

/// The fields of a message with their numbers, in the order in which they were written.
#[derive(Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
    /// The length of the whole message.
    length: usize,
}

impl<'a> Fields<'a> {
    pub fn new(message: &'a [u8]) -> Self {
        Self { rest: message, length: message.len() }
    }

    /// The fields with their encoding, so that they can be copied.
    pub fn with_encoding(mut self) -> impl Iterator<Item = Result<EncodedField<'a>, WireError>> {
        std::iter::from_fn(move || {
            let before = self.rest;
            let field = self.next()?;
            let encoded = before.get(..before.len() - self.rest.len()).unwrap_or_default();
            Some(field.map(|(number, value)| EncodedField { number, value, encoded }))
        })
    }

    fn read(&mut self) -> Result<(u32, FieldValue<'a>), WireError> {
        let at = self.length - self.rest.len();
        let (number, wire_type) = self.tag().map_err(|kind| WireError { kind, field: None, at })?;
        let wire = self.value(wire_type).map_err(|kind| WireError { kind, field: Some(number), at })?;
        Ok((number, FieldValue { wire, number, at }))
    }

    /// The number of a field, and its wire type.
    fn tag(&mut self) -> Result<(u32, u64), WireErrorKind> {
        let tag = varint(&mut self.rest)?;
        let number = u32::try_from(tag >> 3).ok().filter(|&number| number != 0 && number < 1 << 29);
        Ok((number.ok_or(WireErrorKind::FieldNumber(tag >> 3))?, tag & 7))
    }

    fn value(&mut self, wire_type: u64) -> Result<WireValue<'a>, WireErrorKind> {
        Ok(match wire_type {
            0 => WireValue::Varint(varint(&mut self.rest)?),
            1 => WireValue::Fixed64(self.array()?),
            2 => {
                let length = varint(&mut self.rest)?;
                WireValue::Bytes(self.take(length)?)
            }
            5 => WireValue::Fixed32(self.array()?),
            other => return Err(WireErrorKind::WireType(other)),
        })
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], WireErrorKind> {
        let split = usize::try_from(length).ok().and_then(|length| self.rest.split_at_checked(length));
        let (taken, rest) = split.ok_or(WireErrorKind::Truncated { length, left: self.rest.len() })?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireErrorKind> {
        let left = self.rest.len();
        let taken = self.take(N as u64)?;
        taken.try_into().map_err(|_| WireErrorKind::Truncated { length: N as u64, left })
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, FieldValue<'a>), WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.read();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

fn varint(rest: &mut &[u8]) -> Result<u64, WireErrorKind> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first().ok_or(WireErrorKind::UnexpectedEnd)?;
        *rest = after;
        if shift == 63 && *byte > 1 {
            return Err(if *byte < 0x80 { WireErrorKind::TooLarge } else { WireErrorKind::TooLong });
        }
        number |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Ok(number);
        }
    }
    Err(WireErrorKind::TooLong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(message: &[u8]) -> Result<Vec<(u32, WireValue<'_>)>, WireError> {
        Fields::new(message).map(|field| field.map(|(number, value)| (number, value.wire))).collect()
    }

    #[test]
    fn every_wire_type_is_parsed() {
        let message = [0x08, 0xac, 0x02, 0x11, 1, 2, 3, 4, 5, 6, 7, 8, 0x1a, 2, b'h', b'i', 0x25, 9, 8, 7, 6];
        let expected = [
            (1, WireValue::Varint(300)),
            (2, WireValue::Fixed64([1, 2, 3, 4, 5, 6, 7, 8])),
            (3, WireValue::Bytes(b"hi")),
            (4, WireValue::Fixed32([9, 8, 7, 6])),
        ];
        assert_eq!(fields(&message).unwrap(), expected);
        let encoded: Vec<u8> =
            Fields::new(&message).with_encoding().flat_map(|field| field.unwrap().encoded).copied().collect();
        assert_eq!(encoded, message);
    }

    #[test]
    fn truncated_fields_long_varints_groups_and_field_number_zero_are_rejected() {
        use WireErrorKind::{FieldNumber, TooLarge, TooLong, Truncated, UnexpectedEnd, WireType};
        let most = [0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(fields(&most).unwrap(), [(1, WireValue::Varint(u64::MAX))]);
        for (message, kind, field, at) in [
            (&[0x1a, 3, b'h', b'i'][..], Truncated { length: 3, left: 2 }, Some(3), 0),
            (&[0x11, 1, 2], Truncated { length: 8, left: 2 }, Some(2), 0),
            (&[&[0x1a], &most[1..]].concat(), Truncated { length: u64::MAX, left: 0 }, Some(3), 0),
            (&[&most[..10], &[0x02]].concat(), TooLarge, Some(1), 0),
            (&[&most[..10], &[0xff, 0x01]].concat(), TooLong, Some(1), 0),
            (&[0x10, 5, 0x08, 0x80], UnexpectedEnd, Some(1), 2),
            (&[0x08, 1, 0x80], UnexpectedEnd, None, 2),
            (&[0x0b], WireType(3), Some(1), 0),
            (&[0x08, 1, 0x00, 1], FieldNumber(0), None, 2),
        ] {
            assert_eq!(fields(message), Err(WireError { kind, field, at }), "{message:?}");
        }
        assert_eq!(Fields::new(&[0x1a, 9, 0x08, 1]).count(), 1, "parsing ends with the first error");
    }

    #[test]
    fn repeated_numbers_are_parsed_packed_and_unpacked() {
        let mut seen = Vec::new();
        for field in Fields::new(&[0x0a, 3, 1, 0xac, 0x02, 0x08, 7]) {
            let (_, value) = field.unwrap();
            value
                .numbers(|number| {
                    seen.push(number);
                    Ok::<_, WireError>(())
                })
                .unwrap();
        }
        assert_eq!(seen, [1, 300, 7]);
    }

    #[test]
    fn an_error_names_the_field_and_where_it_begins() {
        let message = [0x08, 1, 0x12, 1, 0xff];
        let (_, value) = Fields::new(&message).nth(1).unwrap().unwrap();
        for (error, text) in [
            (value.text().unwrap_err(), "a string is not UTF-8 (field 2 at byte 2)"),
            (value.number().unwrap_err(), "expected an integer, found bytes (field 2 at byte 2)"),
            (
                value.numbers(|_| Ok::<_, WireError>(())).unwrap_err(),
                "unexpected end in a number (field 2 at byte 2)",
            ),
            (fields(&[0x08, 1, 0]).unwrap_err(), "invalid field number 0 (at byte 2)"),
        ] {
            assert_eq!(error.to_string(), text);
        }
    }
}
