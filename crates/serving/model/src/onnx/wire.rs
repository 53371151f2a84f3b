//! Writes the fields of protobuf messages.

pub(super) trait WriteFields {
    fn put_number(&mut self, field: u32, number: u64);

    /// Writes a string or message.
    fn put_bytes(&mut self, field: u32, bytes: &[u8]);

    /// Writes a message of which `write` adds the fields. The length takes five bytes whatever it is, so that the
    /// message, which may have a gigabyte, need not be moved afterwards.
    fn put_large_message<T>(
        &mut self,
        field: u32,
        write: impl FnOnce(&mut Self) -> Result<T, String>,
    ) -> Result<T, String>;
}

impl WriteFields for Vec<u8> {
    fn put_number(&mut self, field: u32, number: u64) {
        put_varint(self, u64::from(field) << 3);
        put_varint(self, number);
    }

    fn put_bytes(&mut self, field: u32, bytes: &[u8]) {
        put_varint(self, u64::from(field) << 3 | 2);
        put_varint(self, bytes.len() as u64);
        self.extend_from_slice(bytes);
    }

    fn put_large_message<T>(
        &mut self,
        field: u32,
        write: impl FnOnce(&mut Self) -> Result<T, String>,
    ) -> Result<T, String> {
        put_varint(self, u64::from(field) << 3 | 2);
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

fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(low_seven_bits(number) | 0x80);
        number >>= 7;
    }
    out.push(low_seven_bits(number));
}

fn low_seven_bits(number: u64) -> u8 {
    number.to_le_bytes().first().copied().unwrap_or(0) & 0x7f
}
