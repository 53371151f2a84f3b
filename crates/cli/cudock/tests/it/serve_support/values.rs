//! Values of every type as the protocols write them, made and read here without the code under test.

use cudock_tensor::DType;
use serde_json::Value;

use super::made::Random;

/// Elements of one type: numbers as their bytes, little endian, and strings as theirs.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    dtype: DType,
    elements: Vec<Vec<u8>>,
}

impl Values {
    /// Values that every protocol can carry: finite, and with no more digits than a JSON reader keeps.
    pub fn random(dtype: DType, count: usize, random: &mut Random) -> Self {
        let mut element = || match dtype {
            DType::Bool => vec![u8::from(random.bits() & 1 == 1)],
            DType::String => {
                const LETTERS: [&str; 8] = ["a", "Z", "0", "\"", "\\", "\u{e9}", "\u{1f600}", " "];
                let length = 1 + random.below(10);
                let text: String = (0..length).map(|_| LETTERS[random.below(LETTERS.len())]).collect();
                // numpy drops zeros at the end, and the width of a string there is fixed.
                text.into_bytes()
            }
            DType::F64 => (f64::from(random.unit()) * 1024.0).to_le_bytes().to_vec(),
            DType::F16 | DType::BF16 | DType::F32 => loop {
                let bytes = random.bits().to_le_bytes()[..size(dtype)].to_vec();
                let value = float(dtype, &bytes);
                // Of the many ways to write zero one has a sign, which JSON keeps, and numbers too small to
                // differ from zero are another matter.
                if value.is_finite() && value.abs() > 1e-30 {
                    break bytes;
                }
            },
            _ => random.bits().to_le_bytes()[..size(dtype)].to_vec(),
        };
        Self { dtype, elements: (0..count).map(|_| element()).collect() }
    }

    /// As one JSON array.
    pub fn flat(&self) -> String {
        let texts: Vec<String> = self.elements.iter().map(|element| text(self.dtype, element)).collect();
        format!("[{}]", texts.join(", "))
    }

    /// As a JSON array of rows.
    pub fn nested(&self, columns: usize) -> String {
        let rows: Vec<String> = self
            .elements
            .chunks(columns)
            .map(|row| Self { dtype: self.dtype, elements: row.to_vec() }.flat())
            .collect();
        format!("[{}]", rows.join(","))
    }

    /// As the binary extension of the Open Inference Protocol has them.
    pub fn blob(&self) -> Vec<u8> {
        let prefix = |element: &Vec<u8>| match self.dtype {
            DType::String => u32::try_from(element.len()).unwrap().to_le_bytes().to_vec(),
            _ => Vec::new(),
        };
        self.elements.iter().flat_map(|element| [prefix(element), element.clone()].concat()).collect()
    }

    pub fn from_blob(dtype: DType, mut data: &[u8]) -> Self {
        let mut elements = Vec::new();
        while !data.is_empty() {
            let mut length = size(dtype);
            if dtype == DType::String {
                length = u32::from_le_bytes(*data.first_chunk().unwrap()) as usize;
                data = &data[4..];
            }
            let (element, rest) = data.split_at(length);
            elements.push(element.to_vec());
            data = rest;
        }
        Self { dtype, elements }
    }

    pub fn from_json(dtype: DType, values: &[Value]) -> Self {
        Self { dtype, elements: values.iter().map(|value| bytes(dtype, value)).collect() }
    }

    /// From the data of a `.npy` file; numpy knows no bfloat16, which comes as the upper half of a float.
    pub fn from_npy_data(dtype: DType, data: &[u8]) -> Self {
        if dtype != DType::BF16 {
            return Self::from_blob(dtype, data);
        }
        let halves = data.as_chunks::<4>().0.iter().map(|four| {
            assert_eq!(four[..2], [0, 0]);
            four[2..].to_vec()
        });
        Self { dtype, elements: halves.collect() }
    }
}

fn size(dtype: DType) -> usize {
    dtype.size().unwrap_or(0)
}

/// The value of a float of any width.
fn float(dtype: DType, bytes: &[u8]) -> f64 {
    match dtype {
        DType::F32 => f32::from_le_bytes(*bytes.first_chunk().unwrap()).into(),
        DType::BF16 => f32::from_le_bytes([0, 0, bytes[0], bytes[1]]).into(),
        DType::F16 => {
            let bits = u16::from_le_bytes([bytes[0], bytes[1]]);
            let (sign, exponent, fraction) = (bits >> 15, i32::from(bits >> 10 & 31), f64::from(bits & 1023));
            let size = match exponent {
                31 => f64::INFINITY,
                0 => fraction / 1024.0 * 2_f64.powi(-14),
                _ => (1.0 + fraction / 1024.0) * 2_f64.powi(exponent - 15),
            };
            if sign == 1 { -size } else { size }
        }
        _ => f64::from_le_bytes(*bytes.first_chunk().unwrap()),
    }
}

/// Sixteen bytes that hold a whole number of any width.
fn whole(dtype: DType, bytes: &[u8]) -> i128 {
    let signed = matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64);
    let fill = if signed && bytes.last().is_some_and(|last| *last > 127) { 255 } else { 0 };
    let mut wide = [fill; 16];
    wide[..bytes.len()].copy_from_slice(bytes);
    i128::from_le_bytes(wide)
}

fn text(dtype: DType, bytes: &[u8]) -> String {
    match dtype {
        DType::Bool => (bytes[0] == 1).to_string(),
        DType::String => Value::from(String::from_utf8(bytes.to_vec()).unwrap()).to_string(),
        DType::F16 | DType::BF16 | DType::F32 | DType::F64 => format!("{:e}", float(dtype, bytes)),
        _ => whole(dtype, bytes).to_string(),
    }
}

fn bytes(dtype: DType, value: &Value) -> Vec<u8> {
    match dtype {
        DType::Bool => vec![u8::from(value.as_bool().unwrap())],
        DType::String => value.as_str().unwrap().as_bytes().to_vec(),
        DType::F64 => value.as_f64().unwrap().to_le_bytes().to_vec(),
        #[allow(clippy::cast_possible_truncation, reason = "the text is that of a float of 32 bits")]
        DType::F32 => (value.as_f64().unwrap() as f32).to_le_bytes().to_vec(),
        DType::F16 | DType::BF16 => half_bytes(dtype, value.as_f64().unwrap()),
        _ => {
            let number = value.as_i64().map(i128::from).or(value.as_u64().map(i128::from)).unwrap();
            number.to_le_bytes()[..size(dtype)].to_vec()
        }
    }
}

/// The one pattern of sixteen bits nearest to a value: the patterns of one sign are in the order of their values.
fn half_bytes(dtype: DType, value: f64) -> Vec<u8> {
    let of = |bits: u16| float(dtype, &bits.to_le_bytes());
    let (mut low, mut high) = (0_u16, 0x7fff_u16);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if of(middle) <= value.abs() { low = middle } else { high = middle }
    }
    let nearest = if (of(high) - value.abs()).abs() < (value.abs() - of(low)).abs() { high } else { low };
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    (nearest | sign).to_le_bytes().to_vec()
}

pub fn floats(values: &[Value]) -> Vec<f32> {
    #[allow(clippy::cast_possible_truncation, reason = "the text is that of a float of 32 bits")]
    values.iter().map(|value| value.as_f64().unwrap() as f32).collect()
}

/// A file as `numpy.save` writes it.
pub fn npy(values: &Values, shape: &[usize]) -> Vec<u8> {
    let width = values.elements.iter().map(Vec::len).max().unwrap_or(1);
    let descr = match values.dtype {
        DType::Bool => "|b1".to_owned(),
        DType::String => format!("|S{width}"),
        DType::BF16 => "<V2".to_owned(),
        DType::F16 | DType::F32 | DType::F64 => format!("<f{width}"),
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => format!("<u{width}"),
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => format!("<i{width}"),
    };
    let sizes: Vec<String> = shape.iter().map(ToString::to_string).collect();
    let mut head =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}), }}", sizes.join(", "));
    while (head.len() + 11) % 64 != 0 {
        head.push(' ');
    }
    head.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend(u16::try_from(head.len()).unwrap().to_le_bytes());
    file.extend(head.as_bytes());
    for element in &values.elements {
        file.extend(element);
        file.extend(std::iter::repeat_n(0, width - element.len()));
    }
    file
}

/// The shape, as Python writes it, and the data of a `.npy` file.
pub fn from_npy(file: &[u8]) -> (String, &[u8]) {
    assert_eq!(file[..8], *b"\x93NUMPY\x01\x00");
    let length = usize::from(u16::from_le_bytes([file[8], file[9]]));
    let (head, data) = file[10..].split_at(length);
    let head = String::from_utf8(head.to_vec()).unwrap();
    let shape = head.split("'shape': ").nth(1).unwrap().split(')').next().unwrap();
    (format!("{shape})"), data)
}
