//! The protobuf wire format, as far as parsing requests needs it.
//!
//! Inference requests are parsed by hand: a generated parser makes hundreds of bytes of structs out of two bytes of
//! message, and copies numbers twice before the engine gets them.

use prost::encoding::{WireType, encode_key, encode_varint};

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WireError {
    #[error("field {number} runs beyond the end of its message")]
    Truncated { number: u32 },
    /// A varint of more than 64 bits, or one that does not end.
    #[error("invalid varint at byte {at}")]
    Varint { at: usize },
    #[error("invalid field tag at byte {at}")]
    Key { at: usize },
    #[error("field {number} is not {expected}")]
    Kind { number: u32, expected: &'static str },
    #[error("field {number} is not UTF-8")]
    Text { number: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WireValue<'message> {
    Varint(u64),
    Fixed64([u8; 8]),
    Fixed32([u8; 4]),
    Block(&'message [u8]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field<'message> {
    pub(crate) number: u32,
    pub(crate) value: WireValue<'message>,
}

impl<'message> Field<'message> {
    /// The bytes of a field that contains bytes, a string, a message or packed numbers.
    pub(crate) fn block(self) -> Result<&'message [u8], WireError> {
        match self.value {
            WireValue::Block(block) => Ok(block),
            _ => Err(WireError::Kind { number: self.number, expected: "bytes or a message" }),
        }
    }

    pub(crate) fn text(self) -> Result<&'message str, WireError> {
        std::str::from_utf8(self.block()?).map_err(|_| WireError::Text { number: self.number })
    }

    pub(crate) fn varint(self) -> Result<u64, WireError> {
        match self.value {
            WireValue::Varint(number) => Ok(number),
            _ => Err(WireError::Kind { number: self.number, expected: "an integer" }),
        }
    }

    /// Calls `take` with each number of a repeated field, packed or not.
    pub(crate) fn varints<E: From<WireError>>(
        self,
        mut take: impl FnMut(u64) -> Result<(), E>,
    ) -> Result<(), E> {
        match self.value {
            WireValue::Varint(number) => take(number),
            WireValue::Block(compressed) => {
                let mut reader = WireReader { message: compressed, at: 0 };
                while reader.at < compressed.len() {
                    take(reader.varint()?)?;
                }
                Ok(())
            }
            _ => Err(WireError::Kind { number: self.number, expected: "a list of integers" }.into()),
        }
    }
}

/// The fields of a message, in the order in which they were written.
pub(crate) struct Fields<'message> {
    reader: WireReader<'message>,
    broken: bool,
}

impl<'message> Fields<'message> {
    pub(crate) fn of(message: &'message [u8]) -> Self {
        Self { reader: WireReader { message, at: 0 }, broken: false }
    }
}

impl<'message> Iterator for Fields<'message> {
    type Item = Result<Field<'message>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.broken || self.reader.at >= self.reader.message.len() {
            return None;
        }
        let field = self.reader.field();
        self.broken = field.is_err();
        Some(field)
    }
}

struct WireReader<'message> {
    message: &'message [u8],
    at: usize,
}

impl<'message> WireReader<'message> {
    fn field(&mut self) -> Result<Field<'message>, WireError> {
        let at = self.at;
        let key = self.varint()?;
        let number = u32::try_from(key >> 3).ok().filter(|&number| number != 0 && number < 1 << 29);
        let number = number.ok_or(WireError::Key { at })?;
        let value = match key & 7 {
            0 => WireValue::Varint(self.varint()?),
            1 => WireValue::Fixed64(self.array(number)?),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| WireError::Truncated { number })?;
                WireValue::Block(self.take(length, number)?)
            }
            5 => WireValue::Fixed32(self.array(number)?),
            _ => return Err(WireError::Key { at }),
        };
        Ok(Field { number, value })
    }

    fn take(&mut self, length: usize, number: u32) -> Result<&'message [u8], WireError> {
        let end = self.at.checked_add(length).ok_or(WireError::Truncated { number })?;
        let block = self.message.get(self.at..end).ok_or(WireError::Truncated { number })?;
        self.at = end;
        Ok(block)
    }

    fn array<const N: usize>(&mut self, number: u32) -> Result<[u8; N], WireError> {
        self.take(N, number)?.try_into().map_err(|_| WireError::Truncated { number })
    }

    fn varint(&mut self) -> Result<u64, WireError> {
        let broken = WireError::Varint { at: self.at };
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = *self.message.get(self.at).ok_or(broken)?;
            self.at += 1;
            if shift == 63 && byte > 1 {
                return Err(broken);
            }
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(broken)
    }
}

/// Writes the tag and length of a length-delimited field.
pub(crate) fn put_block_head(number: u32, length: usize, out: &mut impl bytes::BufMut) {
    encode_key(number, WireType::LengthDelimited, out);
    encode_varint(length as u64, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(message: &[u8]) -> Result<Vec<Field<'_>>, WireError> {
        Fields::of(message).collect()
    }

    #[test]
    fn every_wire_type_is_parsed() {
        let message = [0x08, 0xac, 0x02, 0x11, 1, 2, 3, 4, 5, 6, 7, 8, 0x1a, 2, b'h', b'i', 0x25, 9, 8, 7, 6];
        let expected = [
            Field { number: 1, value: WireValue::Varint(300) },
            Field { number: 2, value: WireValue::Fixed64([1, 2, 3, 4, 5, 6, 7, 8]) },
            Field { number: 3, value: WireValue::Block(b"hi") },
            Field { number: 4, value: WireValue::Fixed32([9, 8, 7, 6]) },
        ];
        assert_eq!(fields(&message).unwrap(), expected);
    }

    #[test]
    fn truncated_fields_long_varints_groups_and_field_number_zero_are_rejected() {
        let most = [0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(fields(&most).unwrap(), [Field { number: 1, value: WireValue::Varint(u64::MAX) }]);
        for (message, error) in [
            (&[0x1a, 3, b'h', b'i'][..], WireError::Truncated { number: 3 }),
            (&[0x11, 1, 2], WireError::Truncated { number: 2 }),
            (&[&[0x1a], &most[1..]].concat(), WireError::Truncated { number: 3 }),
            (&[&most[..10], &[0x02]].concat(), WireError::Varint { at: 1 }),
            (&[0x08, 0x80], WireError::Varint { at: 1 }),
            (&[0x0b], WireError::Key { at: 0 }),
            (&[0x08, 1, 0x00, 1], WireError::Key { at: 2 }),
        ] {
            assert_eq!(fields(message), Err(error));
        }
        assert_eq!(Fields::of(&[0x1a, 9, 0x08, 1]).count(), 1, "parsing ends with the first error");
    }

    #[test]
    fn repeated_numbers_are_parsed_packed_and_unpacked() {
        let mut seen = Vec::new();
        for field in fields(&[0x0a, 3, 1, 0xac, 0x02, 0x08, 7]).unwrap() {
            field
                .varints(|number| {
                    seen.push(number);
                    Ok::<_, WireError>(())
                })
                .unwrap();
        }
        assert_eq!(seen, [1, 300, 7]);
    }

    #[test]
    fn block_headers_round_trip() {
        for length in [0, 1, 127, 128, 300, 70_000] {
            let mut message = Vec::new();
            put_block_head(6, length, &mut message);
            message.resize(message.len() + length, 7);
            let field = Field { number: 6, value: WireValue::Block(&vec![7; length]) };
            assert_eq!(fields(&message).unwrap(), [field]);
        }
    }

    #[test]
    fn text_that_is_not_utf8_is_rejected() {
        let field = Field { number: 1, value: WireValue::Block(&[0xff]) };
        assert_eq!(field.text(), Err(WireError::Text { number: 1 }));
    }
}
