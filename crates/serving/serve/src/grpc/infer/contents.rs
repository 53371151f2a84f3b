//! Parses tensors of protobuf numbers directly into the bytes that the engine takes.

use bytes::{BufMut, Bytes};
use cudock_base::protobuf::{FieldValue, Fields, WireValue};
use cudock_tensor::DType;

use crate::grpc::status::GrpcStatus;

/// Parses `InferTensorContents` as a tensor of `elements` elements, called `name`.
///
/// The capacity is bounded by what the message can hold, not by what the shape claims.
pub(crate) fn read(message: &[u8], dtype: DType, elements: usize, name: &str) -> Result<Bytes, GrpcStatus> {
    let Some((expected, wanted, _)) = FIELDS.iter().find(|(.., dtypes)| dtypes.contains(&dtype)) else {
        return Err(GrpcStatus::invalid(format!(
            "input `{name}`: {dtype} must be sent in raw_input_contents"
        )));
    };
    let size = dtype.size().unwrap_or(1);
    let room = elements.saturating_mul(size).min(message.len().saturating_mul(size));
    let mut reader = ContentsReader { dtype, name, elements, found: 0, out: Vec::with_capacity(room) };
    for field in Fields::new(message) {
        let (number, value) = field?;
        if number == *expected {
            reader.take(value)?;
        } else if let Some((_, other, _)) = FIELDS.iter().find(|(known, ..)| *known == number) {
            return Err(GrpcStatus::invalid(format!(
                "input `{name}`: {dtype} must be sent in {wanted}, not in {other}"
            )));
        }
    }
    if reader.found == elements { Ok(reader.out.into()) } else { Err(reader.miscounted()) }
}

/// Number, name and element types of each field.
const FIELDS: [(u32, &str, &[DType]); 8] = [
    (1, "bool_contents", &[DType::Bool]),
    (2, "int_contents", &[DType::I8, DType::I16, DType::I32]),
    (3, "int64_contents", &[DType::I64]),
    (4, "uint_contents", &[DType::U8, DType::U16, DType::U32]),
    (5, "uint64_contents", &[DType::U64]),
    (6, "fp32_contents", &[DType::F32]),
    (7, "fp64_contents", &[DType::F64]),
    (8, "bytes_contents", &[DType::String]),
];

struct ContentsReader<'request> {
    dtype: DType,
    name: &'request str,
    elements: usize,
    found: usize,
    out: Vec<u8>,
}

impl ContentsReader<'_> {
    fn take(&mut self, value: FieldValue<'_>) -> Result<(), GrpcStatus> {
        match self.dtype {
            DType::F32 => self.fixed::<4>(value),
            DType::F64 => self.fixed::<8>(value),
            DType::String => self.string(value.bytes()?),
            _ => value.numbers(|number| self.integer(number)),
        }
    }

    /// Numbers of N bytes, compressed or one.
    fn fixed<const N: usize>(&mut self, value: FieldValue<'_>) -> Result<(), GrpcStatus> {
        let bytes = match &value.wire {
            WireValue::Bytes(packed) if packed.len() % N == 0 => packed,
            WireValue::Fixed32(number) if N == 4 => &number[..],
            WireValue::Fixed64(number) if N == 8 => number,
            _ => return Err(self.invalid(format_args!("the contents are not numbers of {N} bytes"))),
        };
        self.count(bytes.len() / N)?;
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    fn string(&mut self, string: &[u8]) -> Result<(), GrpcStatus> {
        self.count(1)?;
        let length =
            u32::try_from(string.len()).map_err(|_| self.invalid(format_args!("a string is too long")))?;
        self.out.put_u32_le(length);
        self.out.extend_from_slice(string);
        Ok(())
    }

    fn integer(&mut self, number: u64) -> Result<(), GrpcStatus> {
        self.count(1)?;
        let (found, out, signed) = (self.found - 1, &mut self.out, number.cast_signed());
        let fits = match self.dtype {
            DType::Bool => u8::try_from(number.min(1)).map(|number| out.put_u8(number)),
            DType::U8 => u8::try_from(number).map(|number| out.put_u8(number)),
            DType::U16 => u16::try_from(number).map(|number| out.put_u16_le(number)),
            DType::U32 => u32::try_from(number).map(|number| out.put_u32_le(number)),
            DType::I8 => i8::try_from(signed).map(|number| out.put_i8(number)),
            DType::I16 => i16::try_from(signed).map(|number| out.put_i16_le(number)),
            DType::I32 => i32::try_from(signed).map(|number| out.put_i32_le(number)),
            _ => {
                out.put_u64_le(number);
                return Ok(());
            }
        };
        fits.map_err(|_| {
            let is_unsigned = matches!(self.dtype, DType::U8 | DType::U16 | DType::U32);
            let shown = if is_unsigned { number.to_string() } else { signed.to_string() };
            self.invalid(format_args!("element {found} is {shown}, out of range for {}", self.dtype))
        })
    }

    fn count(&mut self, more: usize) -> Result<(), GrpcStatus> {
        self.found = self.found.saturating_add(more);
        if self.found > self.elements { Err(self.miscounted()) } else { Ok(()) }
    }

    fn miscounted(&self) -> GrpcStatus {
        let Self { elements, found, .. } = self;
        let at_least = if found > elements { "at least " } else { "" };
        self.invalid(format_args!("the shape has {elements} elements, the contents have {at_least}{found}"))
    }

    fn invalid(&self, message: std::fmt::Arguments<'_>) -> GrpcStatus {
        GrpcStatus::invalid(format!("input `{}`: {message}", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grpc::status::GrpcCode;

    #[test]
    fn floats_are_parsed_packed_and_unpacked() {
        let [one, two] = [1.5_f32.to_le_bytes(), (-2.0_f32).to_le_bytes()];
        let compressed = [&[0x32, 8], &one[..], &two].concat();
        let single = [&[0x35], &one[..], &[0x35], &two].concat();
        for message in [compressed, single] {
            assert_eq!(read(&message, DType::F32, 2, "x").unwrap(), [one, two].concat());
        }
    }

    #[test]
    fn integers_have_the_size_of_their_type() {
        let minus_one = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        let message = [&[0x12, 11, 5], &minus_one[..]].concat();
        assert_eq!(*read(&message, DType::I8, 2, "x").unwrap(), [5, 0xff]);
        assert_eq!(*read(&message, DType::I16, 2, "x").unwrap(), [5, 0, 0xff, 0xff]);
        assert_eq!(*read(&message, DType::I32, 2, "x").unwrap(), [5, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(*read(&[0x22, 3, 7, 0x80, 2], DType::U16, 2, "x").unwrap(), [7, 0, 0, 1]);
        assert_eq!(*read(&[0x0a, 2, 0, 1], DType::Bool, 2, "x").unwrap(), [0, 1]);
    }

    #[test]
    fn strings_are_stored_with_their_lengths() {
        let message = [0x42, 2, b'h', b'i', 0x42, 0];
        assert_eq!(*read(&message, DType::String, 2, "x").unwrap(), [2, 0, 0, 0, b'h', b'i', 0, 0, 0, 0]);
    }

    #[test]
    fn contents_that_do_not_match_type_and_shape_are_rejected() {
        let minus_129 = [0x10, 0xff, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        let double = [&[0x3a, 8][..], &1.0_f64.to_le_bytes()].concat();
        let bools = [0x0a, 3, 0, 1, 1];
        // A huge shape allocates nothing.
        let huge = format!("the shape has {} elements, the contents have 1", usize::MAX);
        for (message, dtype, elements, expected) in [
            (&[0x22, 3, 7, 0x80, 2][..], DType::U8, 2, "element 1 is 256, out of range for UINT8"),
            (&minus_129, DType::I8, 1, "element 0 is -129, out of range for INT8"),
            (&double, DType::F32, 1, "FP32 must be sent in fp32_contents, not in fp64_contents"),
            (&double, DType::F16, 1, "FP16 must be sent in raw_input_contents"),
            (&bools, DType::Bool, 4, "the shape has 4 elements, the contents have 3"),
            (&bools, DType::Bool, 2, "the shape has 2 elements, the contents have at least 3"),
            (&[0x1a, 1, 5], DType::I64, usize::MAX, huge.as_str()),
            (&[0x32, 3, 0, 0, 0], DType::F32, 1, "the contents are not numbers of 4 bytes"),
        ] {
            let status = read(message, dtype, elements, "x").unwrap_err();
            assert_eq!(
                (status.code, status.message),
                (GrpcCode::InvalidArgument, format!("input `x`: {expected}"))
            );
        }
    }
}
