//! The header of a `.npy` file: a Python dictionary as text.

use crate::json::Cursor;
use crate::{DType, RequestError};
use cudock_base::bug::Parts;

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
        _ => return Err(error_at(6, format!("version {major} of the format is not known"))),
    };
    let from = MAGIC.len() + 2 + prefix;
    let length = length.and_then(|length| usize::try_from(length).ok()).ok_or_else(not_npy)?;
    if length > MAX_HEADER {
        return Err(error_at(8, format!("a header of {length} bytes")));
    }
    if file.len() < from + length {
        return Err(error_at(file.len(), "the header is cut short"));
    }
    let (kind, shape) = read_fields(Cursor::new(file).part(from..from + length))?;
    Ok(NpyHeader { kind, shape, length: from + length })
}

fn error_at(offset: usize, message: impl Into<String>) -> RequestError {
    RequestError::Body { path: ".npy".to_owned(), offset, message: message.into() }
}

/// Parses `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.
fn read_fields(mut text: Cursor<'_>) -> Result<(NpyKind, Vec<usize>), RequestError> {
    let start = text.at;
    let (mut kind, mut fortran, mut shape) = (None, None, None);
    text.expect(b'{', &".npy")?;
    while !text.eat(b'}') {
        let key = read_string(&mut text)?;
        text.expect(b':', &".npy")?;
        match key {
            b"descr" => kind = Some(read_kind(&mut text)?),
            b"fortran_order" => fortran = Some(read_boolean(&mut text)?),
            b"shape" => shape = Some(read_shape(&mut text)?),
            _ => return Err(error_at(text.at, "an entry that .npy files do not have")),
        }
        if !text.eat(b',') && text.peek() != Some(b'}') {
            return Err(text.unexpected(&".npy", "`,` or `}`"));
        }
    }
    let missing = |name: &str| error_at(start, format!("the header lacks '{name}'"));
    let kind = kind.ok_or_else(|| missing("descr"))?;
    let shape = shape.ok_or_else(|| missing("shape"))?;
    if fortran.ok_or_else(|| missing("fortran_order"))? {
        let message = "the array is in Fortran order; save numpy.ascontiguousarray(array) instead";
        return Err(error_at(start, message));
    }
    Ok((kind, shape))
}

fn read_kind(text: &mut Cursor<'_>) -> Result<NpyKind, RequestError> {
    if text.peek() == Some(b'[') {
        return Err(error_at(text.at, "an array of records; save one field of it"));
    }
    let at = text.at;
    let descr = String::from_utf8_lossy(read_string(text)?);
    if let Some(name) = descr.strip_prefix('>') {
        return Err(error_at(at, format!("'{descr}' is big endian; save array.astype('<{name}')")));
    }
    let name = descr.strip_prefix(['<', '|', '=']).unwrap_or(&descr);
    match name.strip_prefix(['S', 'U']).map(str::parse) {
        // With no width a file of a few bytes could claim any number of strings.
        Some(Ok(0_u32)) => return Err(error_at(at, "strings without length")),
        Some(Ok(width)) if name.starts_with('S') => return Ok(NpyKind::Bytes(width as usize)),
        Some(Ok(width)) => return Ok(NpyKind::Text(width as usize)),
        _ => {}
    }
    dtype_of(name)
        .map(NpyKind::Plain)
        .ok_or_else(|| error_at(at, format!("elements of type '{descr}' fit no model")))
}

fn read_shape(text: &mut Cursor<'_>) -> Result<Vec<usize>, RequestError> {
    text.expect(b'(', &".npy")?;
    let mut shape = Vec::new();
    while !text.eat(b')') {
        text.peek();
        let digits = text.text.part(text.at..);
        let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let size = digits.get(..length).and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        shape.push(size.ok_or_else(|| error_at(text.at, "expected a size"))?);
        text.at += length;
        if !text.eat(b',') && text.peek() != Some(b')') {
            return Err(text.unexpected(&".npy", "`,` or `)`"));
        }
    }
    Ok(shape)
}

fn read_boolean(text: &mut Cursor<'_>) -> Result<bool, RequestError> {
    if text.literal(b"True") {
        return Ok(true);
    }
    if text.literal(b"False") { Ok(false) } else { Err(error_at(text.at, "expected True or False")) }
}

fn read_string<'a>(text: &mut Cursor<'a>) -> Result<&'a [u8], RequestError> {
    let quote = text.peek().filter(|byte| matches!(byte, b'\'' | b'"'));
    let quote = quote.ok_or_else(|| error_at(text.at, "expected a string"))?;
    let from = text.at + 1;
    let rest = text.text.part(from..);
    let length = rest.iter().position(|byte| *byte == quote);
    let length = length.ok_or_else(|| error_at(text.at, "a string that does not end"))?;
    text.at = from + length + 1;
    Ok(rest.get(..length).unwrap_or_default())
}

/// The kind of number and its bytes, of which numpy makes the name of a type.
fn kind_and_size(dtype: DType) -> Option<(&'static str, usize)> {
    let kind = match dtype {
        DType::Bool => "bool_",
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => "uint",
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => "int",
        DType::F16 | DType::F32 | DType::F64 => "float",
        DType::BF16 | DType::String => return None,
    };
    Some((kind, dtype.size()?))
}

/// The type that numpy calls `name` in a file, without its byte order: the kind's first letter and the bytes.
fn dtype_of(name: &str) -> Option<DType> {
    if name == "V2" {
        return Some(DType::BF16);
    }
    DType::ALL.into_iter().find(|dtype| {
        kind_and_size(*dtype).is_some_and(|(kind, size)| {
            let rest = name.strip_prefix(kind.get(..1).unwrap_or_default());
            rest == Some(itoa::Buffer::new().format(size))
        })
    })
}

/// The name of a type in numpy programs.
pub(super) fn numpy_name(dtype: DType) -> Option<String> {
    let (kind, size) = kind_and_size(dtype)?;
    Some(if dtype == DType::Bool { kind.to_owned() } else { format!("{kind}{}", size * 8) })
}

/// Appends a header of version 1; `None` for strings. bfloat16 is widened to float32.
pub(super) fn write(dtype: DType, shape: &[usize], out: &mut Vec<u8>) -> Option<()> {
    let (kind, size) = kind_and_size(if dtype == DType::BF16 { DType::F32 } else { dtype })?;
    let (order, letter) = (if size == 1 { '|' } else { '<' }, kind.get(..1)?);
    let sizes: String = shape.iter().map(|size| format!("{size}, ")).collect();
    // A tuple of one has a comma; no other ends with one.
    let sizes = if shape.len() == 1 { sizes.trim_end() } else { sizes.trim_end_matches(", ") };
    let mut text =
        format!("{{'descr': '{order}{letter}{size}', 'fortran_order': False, 'shape': ({sizes}), }}");
    let before = MAGIC.len() + 4;
    let padding = (before + text.len() + 1).next_multiple_of(ALIGNMENT) - before - text.len() - 1;
    text.extend(std::iter::repeat_n(' ', padding));
    text.push('\n');
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&[1, 0]);
    // Sixty-four dimensions, the most numpy knows, make a header of less than two thousand bytes.
    out.extend_from_slice(&u16::try_from(text.len()).unwrap_or(u16::MAX).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    Some(())
}
