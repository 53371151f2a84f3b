//! Parses tensors of protobuf numbers directly into the bytes that the engine takes.

use bytes::{BufMut, Bytes};
use cudock_tensor::DType;

use crate::grpc::status::GrpcStatus;
use crate::grpc::wire::{Field, Fields, WireValue};

/// Parses `InferTensorContents` as a tensor of `elements` elements, called `name`.
///
/// The capacity is bounded by what the message can hold, not by what the shape claims.
pub(crate) fn read(message: &[u8], dtype: DType, elements: usize, name: &str) -> Result<Bytes, GrpcStatus> {
    let Some(expected) = field_of(dtype) else {
        return Err(GrpcStatus::invalid(format!(
            "input `{name}`: {dtype} must be sent in raw_input_contents"
        )));
    };
    let size = dtype.size().unwrap_or(1);
    let room = elements.saturating_mul(size).min(message.len().saturating_mul(size));
    let mut reader = ContentsReader { dtype, name, elements, found: 0, out: Vec::with_capacity(room) };
    for field in Fields::of(message) {
        let field = field?;
        match FIELDS.iter().find(|(number, _)| *number == field.number) {
            Some((number, _)) if *number == expected => reader.take(field)?,
            Some((_, other)) => {
                let wanted =
                    FIELDS.iter().find(|(number, _)| *number == expected).map_or("", |(_, name)| name);
                return Err(GrpcStatus::invalid(format!(
                    "input `{name}`: {dtype} must be sent in {wanted}, not in {other}"
                )));
            }
            None => {}
        }
    }
    if reader.found == elements { Ok(reader.out.into()) } else { Err(reader.miscounted()) }
}

const FIELDS: [(u32, &str); 8] = [
    (1, "bool_contents"),
    (2, "int_contents"),
    (3, "int64_contents"),
    (4, "uint_contents"),
    (5, "uint64_contents"),
    (6, "fp32_contents"),
    (7, "fp64_contents"),
    (8, "bytes_contents"),
];

const fn field_of(dtype: DType) -> Option<u32> {
    match dtype {
        DType::Bool => Some(1),
        DType::I8 | DType::I16 | DType::I32 => Some(2),
        DType::I64 => Some(3),
        DType::U8 | DType::U16 | DType::U32 => Some(4),
        DType::U64 => Some(5),
        DType::F32 => Some(6),
        DType::F64 => Some(7),
        DType::String => Some(8),
        DType::F16 | DType::BF16 => None,
    }
}

struct ContentsReader<'request> {
    dtype: DType,
    name: &'request str,
    elements: usize,
    found: usize,
    out: Vec<u8>,
}

impl ContentsReader<'_> {
    fn take(&mut self, field: Field<'_>) -> Result<(), GrpcStatus> {
        match self.dtype {
            DType::F32 => self.fixed::<4>(field),
            DType::F64 => self.fixed::<8>(field),
            DType::String => self.string(field.block()?),
            _ => field.varints(|number| self.integer(number)),
        }
    }

    /// Numbers of N bytes, compressed or one.
    fn fixed<const N: usize>(&mut self, field: Field<'_>) -> Result<(), GrpcStatus> {
        match field.value {
            WireValue::Block(compressed) if compressed.len() % N == 0 => {
                self.count(compressed.len() / N)?;
                self.out.extend_from_slice(compressed);
            }
            WireValue::Fixed32(number) if N == 4 => {
                self.count(1)?;
                self.out.extend_from_slice(&number);
            }
            WireValue::Fixed64(number) if N == 8 => {
                self.count(1)?;
                self.out.extend_from_slice(&number);
            }
            _ => {
                return Err(GrpcStatus::invalid(format!(
                    "input `{}`: the contents are not numbers of {N} bytes",
                    self.name
                )));
            }
        }
        Ok(())
    }

    fn string(&mut self, string: &[u8]) -> Result<(), GrpcStatus> {
        self.count(1)?;
        let length = u32::try_from(string.len())
            .map_err(|_| GrpcStatus::invalid(format!("input `{}`: a string is too long", self.name)))?;
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
            let shown = if matches!(self.dtype, DType::U8 | DType::U16 | DType::U32) {
                number.to_string()
            } else {
                signed.to_string()
            };
            GrpcStatus::invalid(format!(
                "input `{}`: element {found} is {shown}, out of range for {}",
                self.name, self.dtype
            ))
        })
    }

    fn count(&mut self, more: usize) -> Result<(), GrpcStatus> {
        self.found = self.found.saturating_add(more);
        if self.found > self.elements { Err(self.miscounted()) } else { Ok(()) }
    }

    fn miscounted(&self) -> GrpcStatus {
        let (at_least, found) = (if self.found > self.elements { "at least " } else { "" }, self.found);
        GrpcStatus::invalid(format!(
            "input `{}`: the shape has {} elements, the contents have {at_least}{found}",
            self.name, self.elements
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grpc::status::GrpcCode;

    fn rejected(message: &[u8], dtype: DType, elements: usize) -> String {
        let status = read(message, dtype, elements, "x").unwrap_err();
        assert_eq!(status.code, GrpcCode::InvalidArgument);
        status.message
    }

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
    fn an_integer_out_of_range_is_rejected_with_its_index() {
        assert_eq!(
            rejected(&[0x22, 3, 7, 0x80, 2], DType::U8, 2),
            "input `x`: element 1 is 256, out of range for UINT8"
        );
        let minus_129 = [0x10, 0xff, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(rejected(&minus_129, DType::I8, 1), "input `x`: element 0 is -129, out of range for INT8");
    }

    #[test]
    fn contents_of_another_type_are_rejected() {
        let message = [&[0x3a, 8][..], &1.0_f64.to_le_bytes()].concat();
        assert_eq!(
            rejected(&message, DType::F32, 1),
            "input `x`: FP32 must be sent in fp32_contents, not in fp64_contents"
        );
        assert!(rejected(&message, DType::F16, 1).contains("raw_input_contents"));
    }

    #[test]
    fn the_number_of_elements_must_match_the_shape() {
        let message = [0x0a, 3, 0, 1, 1];
        assert_eq!(
            rejected(&message, DType::Bool, 4),
            "input `x`: the shape has 4 elements, the contents have 3"
        );
        assert_eq!(
            rejected(&message, DType::Bool, 2),
            "input `x`: the shape has 2 elements, the contents have at least 3"
        );
    }

    #[test]
    fn a_huge_shape_allocates_nothing() {
        assert_eq!(
            rejected(&[0x1a, 1, 5], DType::I64, usize::MAX),
            format!("input `x`: the shape has {} elements, the contents have 1", usize::MAX)
        );
    }

    #[test]
    fn truncated_floats_are_rejected() {
        assert_eq!(
            rejected(&[0x32, 3, 0, 0, 0], DType::F32, 1),
            "input `x`: the contents are not numbers of 4 bytes"
        );
    }
}
