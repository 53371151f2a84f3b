//! Iterates over the fields of a protobuf message, without copying.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldValue<'a> {
    Varint(u64),
    Fixed64,
    /// Bytes: a string, a message, or packed numbers.
    Bytes(&'a [u8]),
    Fixed32,
}

impl<'a> FieldValue<'a> {
    pub(super) fn bytes(self) -> Result<&'a [u8], String> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            _ => Err("expected a string or message, found a number".to_owned()),
        }
    }

    pub(super) fn number(self) -> Result<u64, String> {
        match self {
            Self::Varint(number) => Ok(number),
            _ => Err("expected a number".to_owned()),
        }
    }
}

pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    fn read(&mut self) -> Result<(u64, FieldValue<'a>), String> {
        let tag = varint(&mut self.rest)?;
        let value = match tag & 7 {
            0 => FieldValue::Varint(varint(&mut self.rest)?),
            1 => self.take(8).map(|_| FieldValue::Fixed64)?,
            2 => {
                let length = varint(&mut self.rest)?;
                FieldValue::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| FieldValue::Fixed32)?,
            other => return Err(format!("unsupported wire type {other}")),
        };
        match tag >> 3 {
            0 => Err("invalid field number 0".to_owned()),
            number => Ok((number, value)),
        }
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], String> {
        let split = usize::try_from(length).ok().and_then(|length| self.rest.split_at_checked(length));
        let (taken, rest) =
            split.ok_or_else(|| format!("field claims {length} bytes, but {} are left", self.rest.len()))?;
        self.rest = rest;
        Ok(taken)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, FieldValue<'a>), String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let read = self.read();
        if read.is_err() {
            self.rest = &[];
        }
        Some(read)
    }
}

/// A varint of at most ten bytes.
pub(super) fn varint(rest: &mut &[u8]) -> Result<u64, String> {
    let mut number = 0_u64;
    for index in 0..10 {
        let (byte, after) = rest.split_first().ok_or("unexpected end in a number")?;
        *rest = after;
        number |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err("number has more than ten bytes".to_owned())
}
