//! Reads one tensor, without its data.

use cudock_base::protobuf::{FieldValue, Fields, WireValue};

use crate::format::NumberFormat;

/// A tensor without its data.
pub(super) struct TensorRecord<'a> {
    pub(super) name: &'a [u8],
    pub(super) format: NumberFormat,
    pub(super) elements: u64,
    pub(super) bytes: u64,
    /// The location of its data, if not in the file itself.
    pub(super) external: Option<ExternalData<'a>>,
}

pub(super) struct ExternalData<'a> {
    pub(super) location: &'a [u8],
    /// The end offset.
    pub(super) end: u64,
}

pub(super) fn read(message: &[u8]) -> Result<TensorRecord<'_>, String> {
    let mut builder = TensorBuilder::default();
    for field in Fields::new(message) {
        let (number, value) = field?;
        builder.field(number, value)?;
    }
    builder.build()
}

#[derive(Default)]
struct TensorBuilder<'a> {
    name: &'a [u8],
    format: Option<NumberFormat>,
    shape: ShapeProduct,
    raw: Option<u64>,
    typed: u64,
    texts: u64,
    is_external: bool,
    location: Option<&'a [u8]>,
    offset: u64,
    length: Option<u64>,
}

impl<'a> TensorBuilder<'a> {
    fn field(&mut self, number: u32, value: FieldValue<'a>) -> Result<(), String> {
        match number {
            1 => value.numbers(|size| self.shape.add(size))?,
            2 => self.format = Some(format_from_onnx(value.number()?)),
            // Typed data, packed or one by one.
            4 | 5 | 7 | 10 | 11 => {
                self.typed = self.typed.saturating_add(match value.wire {
                    WireValue::Bytes(bytes) => bytes.len() as u64,
                    WireValue::Fixed64(_) => 8,
                    WireValue::Fixed32(_) => 4,
                    WireValue::Varint(_) => 1,
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
        for field in Fields::new(entry) {
            match field? {
                (1, value) => key = value.bytes()?,
                (2, value) => text = value.bytes()?,
                _ => {}
            }
        }
        let number = || std::str::from_utf8(text).ok().and_then(|text| text.trim().parse::<u64>().ok());
        match key {
            b"location" => self.location = Some(text),
            b"offset" => self.offset = number().ok_or("the offset of external data is not a number")?,
            b"length" => self.length = Some(number().ok_or("the length of external data is not a number")?),
            _ => {}
        }
        Ok(())
    }

    fn build(self) -> Result<TensorRecord<'a>, String> {
        let invalid = |what: String| format!("tensor `{}` {what}", shorten(self.name));
        let elements = self.shape.total().ok_or_else(|| invalid("has too many elements".to_owned()))?;
        let format = self.format.ok_or_else(|| invalid("has no number format".to_owned()))?;
        let by_shape = format.bytes(elements);
        if format.bits().is_some() && by_shape.is_none() {
            return Err(invalid("has too many bytes".to_owned()));
        }
        let record = |bytes, external| TensorRecord { name: self.name, format, elements, bytes, external };
        if self.is_external {
            let location =
                self.location.ok_or_else(|| invalid("has no file for its external data".to_owned()))?;
            let bytes = self.length.or(by_shape).unwrap_or_default();
            if by_shape.is_some_and(|expected| expected != bytes) {
                return Err(invalid(format!("has {bytes} bytes, which does not match its shape")));
            }
            let end = self.offset.checked_add(bytes);
            let end = end.ok_or_else(|| invalid("has an invalid offset".to_owned()))?;
            return Ok(record(bytes, Some(ExternalData { location, end })));
        }
        if format == NumberFormat::Text {
            return Ok(record(self.texts, None));
        }
        if let Some(raw) = self.raw {
            if by_shape.is_some_and(|expected| expected != raw) {
                return Err(invalid(format!("has {raw} bytes, which does not match its shape")));
            }
            return Ok(record(raw, None));
        }
        // The smallest numbers are packed four to a byte.
        if elements > self.typed.saturating_mul(4) {
            return Err(invalid(format!("claims {elements} elements without data")));
        }
        Ok(record(by_shape.unwrap_or(self.typed), None))
    }
}

/// A shortened name, for errors.
pub(super) fn shorten(name: &[u8]) -> String {
    String::from_utf8_lossy(name.get(..80).unwrap_or(name)).into_owned()
}

/// The number of elements of a shape, computed without storing the shape.
#[derive(Default)]
struct ShapeProduct {
    product: Option<u64>,
    too_large: bool,
    empty: bool,
}

impl ShapeProduct {
    fn add(&mut self, size: u64) -> Result<(), String> {
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

pub(super) fn format_from_onnx(number: u64) -> NumberFormat {
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
