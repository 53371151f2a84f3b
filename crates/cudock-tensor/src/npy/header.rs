//! The header of a `.npy` file: a Python dictionary as text.

use crate::{DType, RequestError};

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Headers are padded to a multiple of this.
const ALIGNMENT: usize = 64;
/// Longest header; numpy itself stops at ten thousand bytes.
const MAX_HEADER: usize = 10_000;

pub(super) struct NpyHeader {
    pub(super) kind: NpyKind,
    pub(super) shape: Vec<usize>,
    /// Bytes before the data.
    pub(super) length: usize,
}

/// The element type of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NpyKind {
    /// The same as in a tensor.
    Plain(DType),
    /// Byte strings of this width.
    Bytes(usize),
    /// UTF-32 strings of this many characters.
    Text(usize),
}

pub(super) fn read(file: &[u8]) -> Result<NpyHeader, RequestError> {
    let not_npy = || error_at(0, "not a .npy file");
    let rest = file.strip_prefix(MAGIC).ok_or_else(not_npy)?;
    let (&[major, _minor], rest) = rest.split_first_chunk().ok_or_else(not_npy)?;
    let (length, prefix) = match major {
        1 => (rest.first_chunk().map(|bytes| u32::from(u16::from_le_bytes(*bytes))), 2),
        2 | 3 => (rest.first_chunk().map(|bytes| u32::from_le_bytes(*bytes)), 4),
        _ => return Err(error_at(6, &format!("version {major} of the format is not known"))),
    };
    let from = MAGIC.len() + 2 + prefix;
    let length = length.and_then(|length| usize::try_from(length).ok()).ok_or_else(not_npy)?;
    if length > MAX_HEADER {
        return Err(error_at(8, &format!("a header of {length} bytes")));
    }
    let text =
        file.get(from..from + length).ok_or_else(|| error_at(file.len(), "the header is cut short"))?;
    let (kind, shape) = HeaderParser { text, at: 0, offset: from }.read()?;
    Ok(NpyHeader { kind, shape, length: from + length })
}

fn error_at(offset: usize, message: &str) -> RequestError {
    RequestError::Body { path: ".npy".to_owned(), offset, message: message.to_owned() }
}

/// A parser of `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.
struct HeaderParser<'a> {
    text: &'a [u8],
    at: usize,
    /// The offset of the text in the file.
    offset: usize,
}

impl<'a> HeaderParser<'a> {
    fn read(mut self) -> Result<(NpyKind, Vec<usize>), RequestError> {
        let (mut kind, mut fortran, mut shape) = (None, None, None);
        self.expect(b'{')?;
        while !self.eat(b'}') {
            let key = self.string()?;
            self.expect(b':')?;
            match key {
                b"descr" => kind = Some(self.kind()?),
                b"fortran_order" => fortran = Some(self.boolean()?),
                b"shape" => shape = Some(self.shape()?),
                _ => return Err(self.error_at("an entry that .npy files do not have")),
            }
            if !self.eat(b',') && self.peek() != Some(b'}') {
                return Err(self.error_at("expected `,` or `}`"));
            }
        }
        let missing = |name: &str| error_at(self.offset, &format!("the header lacks '{name}'"));
        let kind = kind.ok_or_else(|| missing("descr"))?;
        let shape = shape.ok_or_else(|| missing("shape"))?;
        if fortran.ok_or_else(|| missing("fortran_order"))? {
            return Err(error_at(
                self.offset,
                "the array is in Fortran order; save numpy.ascontiguousarray(array) instead",
            ));
        }
        Ok((kind, shape))
    }

    fn kind(&mut self) -> Result<NpyKind, RequestError> {
        if self.peek() == Some(b'[') {
            return Err(self.error_at("an array of records; save one field of it"));
        }
        let start = self.at;
        let descr = String::from_utf8_lossy(self.string()?).into_owned();
        let at = self.offset + start;
        if descr.starts_with('>') {
            return Err(error_at(
                at,
                &format!("'{descr}' is big endian; save array.astype('<{}')", descr.trim_start_matches('>')),
            ));
        }
        let name = descr.strip_prefix(['<', '|', '=']).unwrap_or(&descr);
        if let Some(width) = name.strip_prefix('S').and_then(|width| width.parse().ok()) {
            return string_width(width)
                .map(NpyKind::Bytes)
                .ok_or_else(|| error_at(at, "strings without length"));
        }
        if let Some(width) = name.strip_prefix('U').and_then(|width| width.parse().ok()) {
            return string_width(width)
                .map(NpyKind::Text)
                .ok_or_else(|| error_at(at, "strings without length"));
        }
        let dtype = match name {
            "V2" => Some(DType::BF16),
            _ => DType::ALL.into_iter().find(|dtype| {
                *dtype != DType::BF16 && descr_of(*dtype).is_some_and(|known| known.get(1..) == Some(name))
            }),
        };
        dtype
            .map(NpyKind::Plain)
            .ok_or_else(|| error_at(at, &format!("elements of type '{descr}' fit no model")))
    }

    fn shape(&mut self) -> Result<Vec<usize>, RequestError> {
        self.expect(b'(')?;
        let mut shape = Vec::new();
        while !self.eat(b')') {
            self.peek();
            let digits = self.text.get(self.at..).unwrap_or_default();
            let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let size = digits.get(..length).and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
            shape.push(size.ok_or_else(|| self.error_at("expected a size"))?);
            self.at += length;
            if !self.eat(b',') && self.peek() != Some(b')') {
                return Err(self.error_at("expected `,` or `)`"));
            }
        }
        Ok(shape)
    }

    fn boolean(&mut self) -> Result<bool, RequestError> {
        self.peek();
        for (word, value) in [(&b"True"[..], true), (b"False", false)] {
            if self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.error_at("expected True or False"))
    }

    fn string(&mut self) -> Result<&'a [u8], RequestError> {
        let quote = self.peek().filter(|byte| matches!(byte, b'\'' | b'"'));
        let quote = quote.ok_or_else(|| self.error_at("expected a string"))?;
        let from = self.at + 1;
        let rest = self.text.get(from..).unwrap_or_default();
        let length = rest.iter().position(|byte| *byte == quote);
        let length = length.ok_or_else(|| self.error_at("a string that does not end"))?;
        self.at = from + length + 1;
        Ok(rest.get(..length).unwrap_or_default())
    }

    fn expect(&mut self, byte: u8) -> Result<(), RequestError> {
        if self.eat(byte) { Ok(()) } else { Err(self.error_at(&format!("expected `{}`", char::from(byte)))) }
    }

    fn eat(&mut self, byte: u8) -> bool {
        let eaten = self.peek() == Some(byte);
        self.at += usize::from(eaten);
        eaten
    }

    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn error_at(&self, message: &str) -> RequestError {
        error_at(self.offset + self.at, message)
    }
}

/// A width that strings can have. With none a file of a few bytes could claim any number of strings.
fn string_width(width: u32) -> Option<usize> {
    usize::try_from(width).ok().filter(|width| *width > 0)
}

/// What numpy calls the elements of a tensor in a file; bfloat16 is widened to float32.
pub(super) fn descr(dtype: DType) -> Option<&'static str> {
    if dtype == DType::BF16 { Some("<f4") } else { descr_of(dtype) }
}

fn descr_of(dtype: DType) -> Option<&'static str> {
    Some(match dtype {
        DType::Bool => "|b1",
        DType::U8 => "|u1",
        DType::U16 => "<u2",
        DType::U32 => "<u4",
        DType::U64 => "<u8",
        DType::I8 => "|i1",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::F16 => "<f2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        DType::BF16 | DType::String => return None,
    })
}

/// What numpy calls a type in programs.
pub(super) fn numpy_name(dtype: DType) -> Option<&'static str> {
    Some(match dtype {
        DType::Bool => "bool_",
        DType::U8 => "uint8",
        DType::U16 => "uint16",
        DType::U32 => "uint32",
        DType::U64 => "uint64",
        DType::I8 => "int8",
        DType::I16 => "int16",
        DType::I32 => "int32",
        DType::I64 => "int64",
        DType::F16 => "float16",
        DType::F32 => "float32",
        DType::F64 => "float64",
        DType::BF16 | DType::String => return None,
    })
}

/// Appends a header of version 1.
pub(super) fn write(descr: &str, shape: &[usize], out: &mut Vec<u8>) {
    let sizes: String = shape.iter().map(|size| format!("{size}, ")).collect();
    // A tuple of one has a comma; no other ends with one.
    let sizes = if shape.len() == 1 { sizes.trim_end() } else { sizes.trim_end_matches(", ") };
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({sizes}), }}");
    let before = MAGIC.len() + 4;
    let padding = (before + text.len() + 1).next_multiple_of(ALIGNMENT) - before - text.len() - 1;
    text.extend(std::iter::repeat_n(' ', padding));
    text.push('\n');
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&[1, 0]);
    // Sixty-four dimensions, the most numpy knows, make a header of less than two thousand bytes.
    out.extend_from_slice(&u16::try_from(text.len()).unwrap_or(u16::MAX).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}
