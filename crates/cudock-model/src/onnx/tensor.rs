//! One tensor of a model file.

use super::wire::{Fields, Value, varint};
use crate::format::NumberFormat;

/// A tensor, without its numbers.
pub(super) struct Found<'a> {
    pub(super) name: &'a [u8],
    pub(super) format: NumberFormat,
    pub(super) elements: u64,
    pub(super) bytes: u64,
    /// Where its numbers are, if not in the file itself.
    pub(super) external: Option<External<'a>>,
}

/// A place in a file beside the model.
pub(super) struct External<'a> {
    pub(super) location: &'a [u8],
    /// The place behind its last byte.
    pub(super) end: u64,
}

/// Reads a tensor.
pub(super) fn read(message: &[u8]) -> Result<Found<'_>, String> {
    let mut seen = Seen::default();
    for field in Fields::of(message) {
        let (number, value) = field?;
        seen.field(number, value)?;
    }
    seen.found()
}

#[derive(Default)]
struct Seen<'a> {
    name: &'a [u8],
    format: Option<NumberFormat>,
    shape: Product,
    raw: Option<u64>,
    typed: u64,
    texts: u64,
    is_external: bool,
    location: Option<&'a [u8]>,
    offset: u64,
    length: Option<u64>,
}

impl<'a> Seen<'a> {
    fn field(&mut self, number: u64, value: Value<'a>) -> Result<(), String> {
        match number {
            1 => self.shape.add(value)?,
            2 => self.format = Some(format_numbered(value.number()?)),
            // Numbers in fields of their own types, packed or one by one.
            4 | 5 | 7 | 10 | 11 => {
                self.typed = self.typed.saturating_add(match value {
                    Value::Bytes(bytes) => bytes.len() as u64,
                    Value::Fixed64 => 8,
                    Value::Fixed32 => 4,
                    Value::Varint(_) => 1,
                });
            }
            6 => {
                self.typed = self.typed.saturating_add(1);
                self.texts = self.texts.saturating_add(value.bytes()?.len() as u64);
            }
            8 => self.name = value.bytes()?,
            9 => self.raw = Some(value.bytes()?.len() as u64),
            13 => self.external(value.bytes()?)?,
            14 => self.is_external = value.number()? == 1,
            _ => {}
        }
        Ok(())
    }

    fn external(&mut self, entry: &'a [u8]) -> Result<(), String> {
        let (mut key, mut text): (&[u8], &[u8]) = (&[], &[]);
        for field in Fields::of(entry) {
            match field? {
                (1, value) => key = value.bytes()?,
                (2, value) => text = value.bytes()?,
                _ => {}
            }
        }
        let number = || std::str::from_utf8(text).ok().and_then(|text| text.trim().parse::<u64>().ok());
        match key {
            b"location" => self.location = Some(text),
            b"offset" => self.offset = number().ok_or("the offset of external data is no number")?,
            b"length" => self.length = Some(number().ok_or("the length of external data is no number")?),
            _ => {}
        }
        Ok(())
    }

    fn found(self) -> Result<Found<'a>, String> {
        let wrong = |what: String| format!("tensor `{}` {what}", short(self.name));
        let elements =
            self.shape.total().ok_or_else(|| wrong("has more numbers than can be counted".to_owned()))?;
        let format = self.format.ok_or_else(|| wrong("has no number format".to_owned()))?;
        let by_shape = format.bytes(elements);
        if format.bits().is_some() && by_shape.is_none() {
            return Err(wrong("has more bytes than can be counted".to_owned()));
        }
        let found = |bytes, external| Found { name: self.name, format, elements, bytes, external };
        if self.is_external {
            let location = self.location.ok_or_else(|| wrong("names no file for its data".to_owned()))?;
            let bytes = self.length.or(by_shape).unwrap_or_default();
            if by_shape.is_some_and(|expected| expected != bytes) {
                return Err(wrong(format!("has {bytes} bytes, which its shape does not")));
            }
            let end = self.offset.checked_add(bytes);
            let end = end.ok_or_else(|| wrong("lies beyond any file".to_owned()))?;
            return Ok(found(bytes, Some(External { location, end })));
        }
        if format == NumberFormat::Text {
            return Ok(found(self.texts, None));
        }
        if let Some(raw) = self.raw {
            if by_shape.is_some_and(|expected| expected != raw) {
                return Err(wrong(format!("has {raw} bytes, which its shape does not")));
            }
            return Ok(found(raw, None));
        }
        // The narrowest numbers are packed four to a byte.
        if elements > self.typed.saturating_mul(4) {
            return Err(wrong(format!("claims {elements} numbers and does not hold them")));
        }
        Ok(found(by_shape.unwrap_or(self.typed), None))
    }
}

/// The first part of a name, for an error.
pub(super) fn short(name: &[u8]) -> String {
    String::from_utf8_lossy(name.get(..80).unwrap_or(name)).into_owned()
}

/// How many numbers a shape holds, without keeping the shape.
#[derive(Default)]
struct Product {
    product: Option<u64>,
    too_large: bool,
    empty: bool,
}

impl Product {
    /// Dimensions, packed or one by one.
    fn add(&mut self, value: Value<'_>) -> Result<(), String> {
        match value {
            Value::Varint(size) => self.size(size),
            Value::Bytes(mut packed) => {
                while !packed.is_empty() {
                    self.size(varint(&mut packed)?)?;
                }
                Ok(())
            }
            _ => Err("a dimension is no whole number".to_owned()),
        }
    }

    fn size(&mut self, size: u64) -> Result<(), String> {
        if i64::try_from(size).is_err() {
            return Err("a dimension is negative".to_owned());
        }
        self.empty |= size == 0;
        if size > 0 {
            let product = self.product.unwrap_or(1).checked_mul(size);
            self.too_large |= product.is_none();
            self.product = product.or(Some(u64::MAX));
        }
        Ok(())
    }

    fn total(&self) -> Option<u64> {
        match (self.empty, self.too_large) {
            (true, _) => Some(0),
            (false, true) => None,
            (false, false) => Some(self.product.unwrap_or(1)),
        }
    }
}

/// The format that ONNX gives a number.
pub(super) fn format_numbered(number: u64) -> NumberFormat {
    match number {
        1 => NumberFormat::F32,
        2 | 3 => NumberFormat::I8,
        4 | 5 => NumberFormat::I16,
        6 | 12 => NumberFormat::I32,
        7 | 13 => NumberFormat::I64,
        8 => NumberFormat::Text,
        9 => NumberFormat::Bool,
        10 => NumberFormat::F16,
        11 => NumberFormat::F64,
        14 => NumberFormat::C64,
        15 => NumberFormat::C128,
        16 => NumberFormat::BF16,
        17..=20 | 24 => NumberFormat::F8,
        21 | 22 => NumberFormat::I4,
        23 => NumberFormat::F4,
        25 | 26 => NumberFormat::I2,
        _ => NumberFormat::Other,
    }
}
