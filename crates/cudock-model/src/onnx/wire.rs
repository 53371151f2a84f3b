//! The fields of a protobuf message, one after the other, out of bytes that stay where they are.

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value<'a> {
    /// A whole number.
    Varint(u64),
    /// Eight bytes.
    Fixed64,
    /// Bytes: a text, a message, or numbers packed together.
    Bytes(&'a [u8]),
    /// Four bytes.
    Fixed32,
}

impl<'a> Value<'a> {
    /// The bytes, if it holds any.
    pub(super) fn bytes(self) -> Result<&'a [u8], String> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            _ => Err("a number stands where a text or message belongs".to_owned()),
        }
    }

    /// The number, if it is one.
    pub(super) fn number(self) -> Result<u64, String> {
        match self {
            Self::Varint(number) => Ok(number),
            _ => Err("something else stands where a number belongs".to_owned()),
        }
    }
}

/// The fields of a message.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn of(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    fn read(&mut self) -> Result<(u64, Value<'a>), String> {
        let tag = varint(&mut self.rest)?;
        let value = match tag & 7 {
            0 => Value::Varint(varint(&mut self.rest)?),
            1 => self.take(8).map(|_| Value::Fixed64)?,
            2 => {
                let length = varint(&mut self.rest)?;
                Value::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Value::Fixed32)?,
            other => return Err(format!("wire type {other} is not used by ONNX")),
        };
        match tag >> 3 {
            0 => Err("a field has the number 0".to_owned()),
            number => Ok((number, value)),
        }
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], String> {
        let split = usize::try_from(length).ok().and_then(|length| self.rest.split_at_checked(length));
        let (taken, rest) = split
            .ok_or_else(|| format!("a field claims {length} bytes, and {} are left", self.rest.len()))?;
        self.rest = rest;
        Ok(taken)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Value<'a>), String>;

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

/// A number of at most ten bytes, seven bits in each.
pub(super) fn varint(rest: &mut &[u8]) -> Result<u64, String> {
    let mut number = 0_u64;
    for place in 0..10 {
        let (byte, after) = rest.split_first().ok_or("it ends within a number")?;
        *rest = after;
        number |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err("a number has more than ten bytes".to_owned())
}
