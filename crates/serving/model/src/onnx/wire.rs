//! Iterates over the fields of a protobuf message without copying, and writes fields.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldValue<'a> {
    Varint(u64),
    Fixed64,
    /// Bytes: a string, a message, or packed numbers.
    Bytes(&'a [u8]),
    Fixed32([u8; 4]),
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

pub(super) struct EncodedField<'a> {
    pub(super) number: u64,
    pub(super) value: FieldValue<'a>,
    pub(super) encoded: &'a [u8],
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
            5 => {
                let bytes = self.take(4)?.first_chunk().copied().unwrap_or_default();
                FieldValue::Fixed32(bytes)
            }
            other => return Err(format!("unsupported wire type {other}")),
        };
        match tag >> 3 {
            0 => Err("invalid field number 0".to_owned()),
            number => Ok((number, value)),
        }
    }

    /// The fields with their encoding, tag included, so that they can be copied.
    pub(super) fn with_encoding(mut self) -> impl Iterator<Item = Result<EncodedField<'a>, String>> {
        std::iter::from_fn(move || {
            let before = self.rest;
            let field = self.next()?;
            let encoded = before.get(..before.len() - self.rest.len()).unwrap_or_default();
            Some(field.map(|(number, value)| EncodedField { number, value, encoded }))
        })
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

/// Writes fields of a protobuf message.
pub(super) trait WriteFields {
    fn put_varint(&mut self, number: u64);

    fn put_number(&mut self, field: u64, number: u64);

    /// Writes a string or message.
    fn put_bytes(&mut self, field: u64, bytes: &[u8]);

    /// Writes a message of which `write` adds the fields. The length takes five bytes whatever it is, so that the
    /// message, which may have a gigabyte, need not be moved afterwards.
    fn put_large_message<T>(
        &mut self,
        field: u64,
        write: impl FnOnce(&mut Self) -> Result<T, String>,
    ) -> Result<T, String>;
}

impl WriteFields for Vec<u8> {
    fn put_varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.push(low_seven_bits(number) | 0x80);
            number >>= 7;
        }
        self.push(low_seven_bits(number));
    }

    fn put_number(&mut self, field: u64, number: u64) {
        self.put_varint(field << 3);
        self.put_varint(number);
    }

    fn put_bytes(&mut self, field: u64, bytes: &[u8]) {
        self.put_varint(field << 3 | 2);
        self.put_varint(bytes.len() as u64);
        self.extend_from_slice(bytes);
    }

    fn put_large_message<T>(
        &mut self,
        field: u64,
        write: impl FnOnce(&mut Self) -> Result<T, String>,
    ) -> Result<T, String> {
        self.put_varint(field << 3 | 2);
        let start = self.len();
        self.extend([0; LENGTH_BYTES]);
        let result = write(self)?;
        let mut length = (self.len() - start - LENGTH_BYTES) as u64;
        // Protobuf limits messages to 2 GiB.
        if length > i32::MAX.unsigned_abs().into() {
            return Err(format!("the model has {length} bytes, and a file may have 2 GiB"));
        }
        for (index, byte) in self.iter_mut().skip(start).take(LENGTH_BYTES).enumerate() {
            let more = if index + 1 < LENGTH_BYTES { 0x80 } else { 0 };
            *byte = low_seven_bits(length) | more;
            length >>= 7;
        }
        Ok(result)
    }
}

/// Bytes of a varint below 2^35.
const LENGTH_BYTES: usize = 5;

fn low_seven_bits(number: u64) -> u8 {
    number.to_le_bytes().first().copied().unwrap_or(0) & 0x7f
}
