//! Parses one element of each type into its bytes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cudock_base::bug::Parts;

use super::cursor::{BASE64_KEY, Cursor};
use super::{JsonError, number, string};
use crate::DType;

pub(super) trait Element {
    /// Appends the bytes of the element at `at` and returns where it ends.
    fn read(text: &[u8], at: usize, out: &mut Vec<u8>) -> Result<usize, JsonError>;
}

/// Calls a function that is generic over [`Element`] with the type for a `DType`.
macro_rules! for_dtype {
    ($dtype:expr, $function:ident($($argument:expr),*)) => {
        match $dtype {
            DType::Bool => $function::<element::Bool>($($argument),*),
            DType::U8 => $function::<u8>($($argument),*),
            DType::U16 => $function::<u16>($($argument),*),
            DType::U32 => $function::<u32>($($argument),*),
            DType::U64 => $function::<u64>($($argument),*),
            DType::I8 => $function::<i8>($($argument),*),
            DType::I16 => $function::<i16>($($argument),*),
            DType::I32 => $function::<i32>($($argument),*),
            DType::I64 => $function::<i64>($($argument),*),
            DType::F16 => $function::<element::F16>($($argument),*),
            DType::BF16 => $function::<element::BF16>($($argument),*),
            DType::F32 => $function::<f32>($($argument),*),
            DType::F64 => $function::<f64>($($argument),*),
            DType::String => $function::<element::Text>($($argument),*),
        }
    };
}
pub(super) use for_dtype;

macro_rules! number {
    ($($type:ty: $read:path;)*) => {
        $(impl Element for $type {
            #[inline(always)]
            fn read(text: &[u8], at: usize, out: &mut Vec<u8>) -> Result<usize, JsonError> {
                let (value, end) = $read(text, at)?;
                out.extend_from_slice(&value.to_le_bytes());
                Ok(end)
            }
        })*
    };
}

number! {
    u8: number::read_integer::<u8>;
    u16: number::read_integer::<u16>;
    u32: number::read_integer::<u32>;
    u64: number::read_integer::<u64>;
    i8: number::read_integer::<i8>;
    i16: number::read_integer::<i16>;
    i32: number::read_integer::<i32>;
    i64: number::read_integer::<i64>;
    F16: number::read_f16;
    BF16: number::read_bf16;
    f32: number::read_f32;
    f64: number::read_f64;
}

pub(super) struct F16;
pub(super) struct BF16;
pub(super) struct Bool;
pub(super) struct Text;

impl Element for Bool {
    fn read(text: &[u8], at: usize, out: &mut Vec<u8>) -> Result<usize, JsonError> {
        const LITERALS: [(&[u8], u8); 4] = [(b"true", 1), (b"false", 0), (b"1", 1), (b"0", 0)];
        let rest = text.part(at..);
        let (literal, value) = LITERALS
            .into_iter()
            .find(|(literal, _)| rest.starts_with(literal))
            .ok_or(JsonError::NotABoolean)?;
        out.push(value);
        Ok(at + literal.len())
    }
}

impl Element for Text {
    fn read(text: &[u8], at: usize, out: &mut Vec<u8>) -> Result<usize, JsonError> {
        if text.get(at) == Some(&b'{') {
            let (bytes, end) = read_base64(text, at)?;
            push(&bytes, out)?;
            return Ok(end);
        }
        let (string, end) = string::read(text, at)?;
        push(string.as_bytes(), out)?;
        Ok(end)
    }
}

/// Appends a string with its length.
fn push(string: &[u8], out: &mut Vec<u8>) -> Result<(), JsonError> {
    let length = u32::try_from(string.len()).map_err(|_| JsonError::LongString)?;
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(string);
    Ok(())
}

/// Reads `{"b64": "…"}`, and returns the bytes and where it ends.
fn read_base64(text: &[u8], at: usize) -> Result<(Vec<u8>, usize), JsonError> {
    let mut cursor = Cursor { text, at };
    if !(cursor.eat(b'{') && cursor.literal(BASE64_KEY) && cursor.eat(b':')) {
        return Err(JsonError::NotAString);
    }
    cursor.peek();
    let (string, end) = string::read(text, cursor.at)?;
    cursor.at = end;
    let bytes = STANDARD.decode(string.as_bytes()).map_err(|_| JsonError::NotBase64)?;
    if cursor.eat(b'}') { Ok((bytes, cursor.at)) } else { Err(JsonError::NotBase64) }
}

/// The plural noun for elements of a type.
pub(super) fn noun(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "booleans",
        DType::String => "strings",
        _ => "numbers",
    }
}
