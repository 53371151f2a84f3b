//! Reads protobuf messages field by field, without copying them.
//!
//! For messages that a generated parser would make expensive: inference requests, of which it makes hundreds of bytes of
//! structs out of two bytes, and models, whose gigabytes of weights are skipped. The input is untrusted: nothing is
//! allocated, and reading ends with the first error.

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
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
pub enum FieldValue<'a> {
    Varint(u64),
    Fixed64([u8; 8]),
    /// A string, a message, or packed numbers.
    Bytes(&'a [u8]),
    Fixed32([u8; 4]),
}

impl<'a> FieldValue<'a> {
    pub fn bytes(self) -> Result<&'a [u8], WireError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            _ => Err(self.unexpected("a string or message")),
        }
    }

    pub fn text(self) -> Result<&'a str, WireError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| WireError::Text)
    }

    pub fn number(self) -> Result<u64, WireError> {
        match self {
            Self::Varint(number) => Ok(number),
            _ => Err(self.unexpected("an integer")),
        }
    }

    /// Calls `take` with each number of a repeated field, packed or not.
    pub fn numbers<E: From<WireError>>(self, mut take: impl FnMut(u64) -> Result<(), E>) -> Result<(), E> {
        match self {
            Self::Varint(number) => take(number),
            Self::Bytes(mut packed) => {
                while !packed.is_empty() {
                    take(varint(&mut packed)?)?;
                }
                Ok(())
            }
            _ => Err(self.unexpected("integers").into()),
        }
    }

    fn unexpected(self, expected: &'static str) -> WireError {
        let found = if matches!(self, Self::Bytes(_)) { "bytes" } else { "a number" };
        WireError::Kind { expected, found }
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
}

impl<'a> Fields<'a> {
    pub fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
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
        let tag = varint(&mut self.rest)?;
        let number = u32::try_from(tag >> 3).ok().filter(|&number| number != 0 && number < 1 << 29);
        let number = number.ok_or(WireError::FieldNumber(tag >> 3))?;
        let value = match tag & 7 {
            0 => FieldValue::Varint(varint(&mut self.rest)?),
            1 => FieldValue::Fixed64(self.array()?),
            2 => {
                let length = varint(&mut self.rest)?;
                FieldValue::Bytes(self.take(length)?)
            }
            5 => FieldValue::Fixed32(self.array()?),
            other => return Err(WireError::WireType(other)),
        };
        Ok((number, value))
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], WireError> {
        let split = usize::try_from(length).ok().and_then(|length| self.rest.split_at_checked(length));
        let (taken, rest) = split.ok_or(WireError::Truncated { length, left: self.rest.len() })?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let left = self.rest.len();
        let taken = self.take(N as u64)?;
        taken.try_into().map_err(|_| WireError::Truncated { length: N as u64, left })
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

fn varint(rest: &mut &[u8]) -> Result<u64, WireError> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first().ok_or(WireError::UnexpectedEnd)?;
        *rest = after;
        if shift == 63 && *byte > 1 {
            return Err(if *byte < 0x80 { WireError::TooLarge } else { WireError::TooLong });
        }
        number |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Ok(number);
        }
    }
    Err(WireError::TooLong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(message: &[u8]) -> Result<Vec<(u32, FieldValue<'_>)>, WireError> {
        Fields::new(message).collect()
    }

    #[test]
    fn every_wire_type_is_parsed() {
        let message = [0x08, 0xac, 0x02, 0x11, 1, 2, 3, 4, 5, 6, 7, 8, 0x1a, 2, b'h', b'i', 0x25, 9, 8, 7, 6];
        let expected = [
            (1, FieldValue::Varint(300)),
            (2, FieldValue::Fixed64([1, 2, 3, 4, 5, 6, 7, 8])),
            (3, FieldValue::Bytes(b"hi")),
            (4, FieldValue::Fixed32([9, 8, 7, 6])),
        ];
        assert_eq!(fields(&message).unwrap(), expected);
        let encoded: Vec<u8> =
            Fields::new(&message).with_encoding().flat_map(|field| field.unwrap().encoded).copied().collect();
        assert_eq!(encoded, message);
    }

    #[test]
    fn truncated_fields_long_varints_groups_and_field_number_zero_are_rejected() {
        let most = [0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(fields(&most).unwrap(), [(1, FieldValue::Varint(u64::MAX))]);
        for (message, error) in [
            (&[0x1a, 3, b'h', b'i'][..], WireError::Truncated { length: 3, left: 2 }),
            (&[0x11, 1, 2], WireError::Truncated { length: 8, left: 2 }),
            (&[&[0x1a], &most[1..]].concat(), WireError::Truncated { length: u64::MAX, left: 0 }),
            (&[&most[..10], &[0x02]].concat(), WireError::TooLarge),
            (&[&most[..10], &[0xff, 0x01]].concat(), WireError::TooLong),
            (&[0x08, 0x80], WireError::UnexpectedEnd),
            (&[0x0b], WireError::WireType(3)),
            (&[0x08, 1, 0x00, 1], WireError::FieldNumber(0)),
        ] {
            assert_eq!(fields(message), Err(error));
        }
        assert_eq!(Fields::new(&[0x1a, 9, 0x08, 1]).count(), 1, "parsing ends with the first error");
    }

    #[test]
    fn repeated_numbers_are_parsed_packed_and_unpacked() {
        let mut seen = Vec::new();
        for (_, value) in fields(&[0x0a, 3, 1, 0xac, 0x02, 0x08, 7]).unwrap() {
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
    fn text_that_is_not_utf8_is_rejected() {
        assert_eq!(FieldValue::Bytes(&[0xff]).text(), Err(WireError::Text));
    }
}
