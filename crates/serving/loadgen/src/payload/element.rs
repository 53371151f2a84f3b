//! Generated elements and their encodings.

use std::fmt::Write as _;

use cudock_base::Rng;
use cudock_tensor::DType;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Element {
    Bool(bool),
    Whole(u8),
    Float(f64),
    Text(&'static str),
}

const WORDS: [&str; 8] = ["graph", "kernel", "tensor", "warp", "stream", "grid", "lane", "naïve"];

impl Element {
    /// Generates an element of that type. Floats are normally distributed; integers are small, since many models use
    /// them as indices, except for bytes, which are mostly pixels.
    pub(super) fn draw(dtype: DType, rng: &mut Rng) -> Self {
        let small = |below: u64, rng: &mut Rng| u8::try_from(rng.below(below)).unwrap_or_default();
        match dtype {
            DType::Bool => Self::Bool(rng.below(2) == 1),
            DType::U8 => Self::Whole(small(256, rng)),
            DType::U16 | DType::U32 | DType::U64 | DType::I8 | DType::I16 | DType::I32 | DType::I64 => {
                Self::Whole(small(10, rng))
            }
            DType::F16 => Self::Float(half::f16::from_f64(rng.normal()).to_f64()),
            DType::BF16 => Self::Float(half::bf16::from_f64(rng.normal()).to_f64()),
            #[allow(clippy::cast_possible_truncation, reason = "rounding to the type is meant")]
            DType::F32 => Self::Float(f64::from(rng.normal() as f32)),
            DType::F64 => Self::Float(rng.normal()),
            DType::String => {
                let number = usize::from(small(WORDS.len() as u64, rng));
                Self::Text(WORDS.get(number).copied().unwrap_or_default())
            }
        }
    }

    /// Writes the element as Python's `json.dumps` does.
    pub(super) fn write_json(&self, out: &mut String) {
        match self {
            Self::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Self::Whole(value) => {
                let _ = write!(out, "{value}");
            }
            Self::Float(value) => write_float(*value, out),
            Self::Text(text) => {
                out.push('"');
                for ch in text.chars() {
                    if ch.is_ascii() {
                        out.push(ch);
                    } else {
                        let _ = write!(out, "\\u{:04x}", u32::from(ch));
                    }
                }
                out.push('"');
            }
        }
    }

    /// Writes the element as in binary bodies: little endian, texts after their length.
    #[allow(clippy::cast_possible_truncation, reason = "drawn so that its type can hold it")]
    pub(super) fn write_binary(&self, dtype: DType, out: &mut Vec<u8>) {
        match self {
            Self::Bool(value) => out.push(u8::from(*value)),
            Self::Whole(value) => {
                let bytes = u64::from(*value).to_le_bytes();
                out.extend(bytes.iter().take(dtype.size().unwrap_or(8)));
            }
            Self::Float(value) => match dtype {
                DType::F16 => out.extend(half::f16::from_f64(*value).to_le_bytes()),
                DType::BF16 => out.extend(half::bf16::from_f64(*value).to_le_bytes()),
                DType::F32 => out.extend((*value as f32).to_le_bytes()),
                _ => out.extend(value.to_le_bytes()),
            },
            Self::Text(text) => {
                out.extend(u32::try_from(text.len()).unwrap_or_default().to_le_bytes());
                out.extend(text.bytes());
            }
        }
    }
}

/// The shortest digits that give the same number again, laid out as Python does: with an exponent below 1e-4 and from
/// 1e16 on, and always with a point or an exponent.
fn write_float(value: f64, out: &mut String) {
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..16).contains(&exponent) {
        let plain = format!("{value}");
        out.push_str(&plain);
        if !plain.contains('.') {
            out.push_str(".0");
        }
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "{digits}e{sign}{:02}", exponent.unsigned_abs());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(element: &Element) -> String {
        let mut out = String::new();
        element.write_json(&mut out);
        out
    }

    #[test]
    fn floats_are_written_as_python_writes_them() {
        for (value, text) in [
            (f64::from(0.496_714_15_f32), "0.49671414494514465"),
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (0.0001, "0.0001"),
            (0.000_051_234, "5.1234e-05"),
            (-1e-7, "-1e-07"),
        ] {
            assert_eq!(json(&Element::Float(value)), text);
        }
    }

    #[test]
    fn texts_are_written_with_escapes() {
        assert_eq!(json(&Element::Text("naïve")), r#""na\u00efve""#);
    }

    #[test]
    fn json_and_binary_say_the_same() {
        let mut rng = Rng::new(5);
        for dtype in DType::ALL {
            for _ in 0..100 {
                let element = Element::draw(dtype, &mut rng);
                let mut bytes = Vec::new();
                element.write_binary(dtype, &mut bytes);
                if let Some(size) = dtype.size() {
                    assert_eq!(bytes.len(), size, "{dtype}");
                }
                if dtype == DType::F32 {
                    let number = f32::from_le_bytes(bytes.as_slice().try_into().unwrap());
                    assert_eq!(json(&element).parse::<f32>().unwrap().to_bits(), number.to_bits());
                }
            }
        }
    }
}
