//! Writes tensors as JSON.

use half::{bf16, f16};

use crate::{DType, Tensor, elements};

/// The most bytes that are reserved for a text at once.
const SMALL_TEXT: usize = 4096;

/// A string that is not UTF-8, which JSON cannot hold: its index in the tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotText(pub usize);

/// Appends the elements as arrays nested to that shape, which has as many elements as the tensor; an empty shape is a
/// single value.
///
/// Each number is the shortest that parses to the same value of its type; half floats are written as `f32`, so that a
/// parser of any width gets the same value. JSON has neither NaN nor infinities: they become null.
pub fn nested(tensor: &Tensor, shape: &[usize], out: &mut Vec<u8>) -> Result<(), NotText> {
    let data = tensor.data().as_ref();
    // Most numbers take up to three characters per byte. A long text grows in few steps anyway.
    out.reserve((data.len() * 3).min(SMALL_TEXT));
    match tensor.dtype() {
        DType::Bool => rows(shape, out, each(data, |[byte], out| boolean(byte != 0, out))),
        DType::U8 => rows(shape, out, each(data, |bytes, out| integer(u8::from_le_bytes(bytes), out))),
        DType::U16 => rows(shape, out, each(data, |bytes, out| integer(u16::from_le_bytes(bytes), out))),
        DType::U32 => rows(shape, out, each(data, |bytes, out| integer(u32::from_le_bytes(bytes), out))),
        DType::U64 => rows(shape, out, each(data, |bytes, out| integer(u64::from_le_bytes(bytes), out))),
        DType::I8 => rows(shape, out, each(data, |bytes, out| integer(i8::from_le_bytes(bytes), out))),
        DType::I16 => rows(shape, out, each(data, |bytes, out| integer(i16::from_le_bytes(bytes), out))),
        DType::I32 => rows(shape, out, each(data, |bytes, out| integer(i32::from_le_bytes(bytes), out))),
        DType::I64 => rows(shape, out, each(data, |bytes, out| integer(i64::from_le_bytes(bytes), out))),
        DType::F16 => {
            rows(shape, out, each(data, |bytes, out| single(f16::from_le_bytes(bytes).into(), out)))
        }
        DType::BF16 => {
            rows(shape, out, each(data, |bytes, out| single(bf16::from_le_bytes(bytes).into(), out)))
        }
        DType::F32 => rows(shape, out, each(data, |bytes, out| single(f32::from_le_bytes(bytes), out))),
        DType::F64 => rows(shape, out, each(data, |bytes, out| double(f64::from_le_bytes(bytes), out))),
        DType::String => strings(tensor, shape, out, string),
    }
}

/// The most bytes that [`nested`] and [`json_rows`] append for a tensor of any shape with as many elements.
pub fn most_bytes(tensor: &Tensor) -> usize {
    // With the comma or bracket after them.
    let longest = match tensor.dtype() {
        DType::Bool => "false,".len(),
        DType::U8 => "255,".len(),
        DType::U16 => "65535,".len(),
        DType::U32 => "4294967295,".len(),
        DType::U64 => "18446744073709551615,".len(),
        DType::I8 => "-128,".len(),
        DType::I16 => "-32768,".len(),
        DType::I32 => "-2147483648,".len(),
        DType::I64 => "-9223372036854775808,".len(),
        DType::F16 | DType::BF16 | DType::F32 => "-1.17549435e-38,".len(),
        DType::F64 => "-2.2250738585072014e-308,".len(),
        DType::String => {
            let escaped =
                |byte: &u8| usize::from(*byte < 0x20) * 5 + usize::from(matches!(byte, b'"' | b'\\'));
            let text =
                |string: &[u8]| string.len() + string.iter().map(escaped).sum::<usize>() + "\"\",".len();
            return tensor.strings().map(text).sum::<usize>() + brackets(tensor.shape());
        }
    };
    elements(tensor.shape()).unwrap_or(0) * longest + brackets(tensor.shape())
}

/// The most brackets of arrays nested to a shape, and commas between them.
fn brackets(shape: &[usize]) -> usize {
    // Each size of zero ends in one empty array.
    let mut arrays = 1_usize;
    shape.iter().fold(3, |sum: usize, size| {
        arrays = arrays.saturating_mul((*size).max(1));
        sum.saturating_add(arrays.saturating_mul(3))
    })
}

/// Appends strings that are JSON texts, as the values they stand for.
pub fn json_rows(tensor: &Tensor, shape: &[usize], out: &mut Vec<u8>) -> Result<(), NotText> {
    strings(tensor, shape, out, |text, out| out.extend_from_slice(text.as_bytes()))
}

fn strings(
    tensor: &Tensor,
    shape: &[usize],
    out: &mut Vec<u8>,
    write: impl Fn(&str, &mut Vec<u8>),
) -> Result<(), NotText> {
    let mut strings = tensor.strings().enumerate();
    rows(shape, out, |count, out| {
        for (index, (number, bytes)) in strings.by_ref().take(count).enumerate() {
            if index > 0 {
                out.push(b',');
            }
            write(std::str::from_utf8(bytes).map_err(|_| NotText(number))?, out);
        }
        Ok(())
    })
}

/// Returns a function that writes the next elements of `N` bytes, separated by commas.
fn each<const N: usize>(
    data: &[u8],
    write: impl Fn([u8; N], &mut Vec<u8>),
) -> impl FnMut(usize, &mut Vec<u8>) -> Result<(), NotText> {
    let mut elements = data.as_chunks::<N>().0.iter();
    move |count, out| {
        for (index, element) in elements.by_ref().take(count).enumerate() {
            if index > 0 {
                out.push(b',');
            }
            write(*element, out);
        }
        Ok(())
    }
}

/// Writes the brackets of a shape, and with `row` the elements of each innermost array.
fn rows(
    shape: &[usize],
    out: &mut Vec<u8>,
    mut row: impl FnMut(usize, &mut Vec<u8>) -> Result<(), NotText>,
) -> Result<(), NotText> {
    let Some((&innermost, outer)) = shape.split_last() else { return row(1, out) };
    let rows = elements(outer).unwrap_or(0);
    if rows == 0 || innermost == 0 {
        empty(shape, out);
        return Ok(());
    }
    out.extend(std::iter::repeat_n(b'[', shape.len()));
    for index in 0..rows {
        if index > 0 {
            // How many dimensions begin anew with this row: each whose rows have all been written.
            let mut block = 1;
            let ended = outer.iter().rev().take_while(|size| {
                block *= **size;
                index % block == 0
            });
            let brackets = 1 + ended.count();
            out.extend(std::iter::repeat_n(b']', brackets));
            out.push(b',');
            out.extend(std::iter::repeat_n(b'[', brackets));
        }
        row(innermost, out)?;
    }
    out.extend(std::iter::repeat_n(b']', shape.len()));
    Ok(())
}

/// Appends arrays with nothing in them.
fn empty(shape: &[usize], out: &mut Vec<u8>) {
    out.push(b'[');
    if let Some((size, inner)) = shape.split_first() {
        for index in 0..*size {
            if index > 0 {
                out.push(b',');
            }
            empty(inner, out);
        }
    }
    out.push(b']');
}

pub fn integer(value: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

fn boolean(value: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(if value { b"true" } else { b"false" });
}

/// Appends the shortest number that parses to the same value; null for NaN and infinities.
pub fn single(value: f32, out: &mut Vec<u8>) {
    if value.is_finite() {
        out.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
    } else {
        out.extend_from_slice(b"null");
    }
}

fn double(value: f64, out: &mut Vec<u8>) {
    if value.is_finite() {
        out.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
    } else {
        out.extend_from_slice(b"null");
    }
}

/// Appends a string in quotes.
pub fn string(text: &str, out: &mut Vec<u8>) {
    const HEX: [u8; 16] = *b"0123456789abcdef";
    out.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..0x20 => {
                let digit = |value: u8| HEX.get(usize::from(value)).copied().unwrap_or(b'0');
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte & 15)]);
            }
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}
