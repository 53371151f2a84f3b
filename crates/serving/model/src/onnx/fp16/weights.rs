//! Converts the data of tensors.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Component, Path};

use cudock_base::protobuf::{FieldValue, Fields, WireValue};
use cudock_mmap::Mmap;
use half::f16;
use half::slice::HalfFloatSliceExt;

use super::graph::FLOAT16;
use super::stats::Fp16Stats;
use crate::onnx::tensor::{self, shorten};
use crate::onnx::wire::WriteFields;

/// Where the weights of the converted model go.
pub enum Weights<'a> {
    /// Into the model itself, which may have 2 GiB.
    Inline,
    /// Into a file next to the model. Small tensors stay in the model.
    File { location: &'a str, file: &'a mut dyn Write },
}

/// Smallest tensor that goes into the file, in bytes.
const MIN_EXTERNAL: usize = 1024;
/// Numbers that are converted at a time.
const CHUNK: usize = 4096;

/// Reads and writes the data of tensors.
pub(super) struct WeightStore<'a> {
    /// The directory of the model, for its external data; `None` if there is none to be read.
    directory: Option<&'a Path>,
    files: HashMap<String, Mmap>,
    target: Weights<'a>,
    /// Bytes in the target's file.
    written: u64,
}

impl<'a> WeightStore<'a> {
    pub(super) fn new(directory: Option<&'a Path>, target: Weights<'a>) -> Self {
        Self { directory, files: HashMap::new(), target, written: 0 }
    }

    /// Writes an fp32 tensor as an fp16 tensor with that name.
    pub(super) fn put_half(
        &mut self,
        out: &mut Vec<u8>,
        message: &[u8],
        name: &[u8],
        stats: &mut Fp16Stats,
    ) -> Result<(), String> {
        let numbers = self.floats(message)?;
        let data = to_half(&numbers, stats);
        for field in Fields::new(message).with_encoding() {
            let field = field?;
            // All but type, data and name.
            if !matches!(field.number, 2 | 4 | 8 | 9 | 13 | 14) {
                out.extend_from_slice(field.encoded);
            }
        }
        out.put_number(2, FLOAT16);
        out.put_bytes(8, name);
        self.put_data(out, &data)
    }

    /// Copies a tensor. External data is copied as well, because the converted model is elsewhere.
    pub(super) fn copy(&mut self, out: &mut Vec<u8>, message: &[u8]) -> Result<(), String> {
        if tensor::read(message)?.external.is_none() {
            out.extend_from_slice(message);
            return Ok(());
        }
        for field in Fields::new(message).with_encoding() {
            let field = field?;
            if !matches!(field.number, 13 | 14) {
                out.extend_from_slice(field.encoded);
            }
        }
        let data = self.external(message)?.to_vec();
        self.put_data(out, &data)
    }

    fn put_data(&mut self, out: &mut Vec<u8>, data: &[u8]) -> Result<(), String> {
        let Weights::File { location, file } = &mut self.target else {
            out.put_bytes(9, data);
            return Ok(());
        };
        if data.len() < MIN_EXTERNAL {
            out.put_bytes(9, data);
            return Ok(());
        }
        file.write_all(data).map_err(|error| format!("cannot write {location}: {error}"))?;
        let entries = [
            ("location", (*location).to_owned()),
            ("offset", self.written.to_string()),
            ("length", data.len().to_string()),
        ];
        for (key, value) in entries {
            let mut entry = Vec::new();
            entry.put_bytes(1, key.as_bytes());
            entry.put_bytes(2, value.as_bytes());
            out.put_bytes(13, &entry);
        }
        out.put_number(14, 1);
        self.written += data.len() as u64;
        Ok(())
    }

    /// The bytes of an fp32 tensor, little-endian.
    fn floats<'message>(&'message mut self, message: &'message [u8]) -> Result<FloatBytes<'message>, String> {
        let record = tensor::read(message)?;
        if record.external.is_some() {
            return self.external(message).map(FloatBytes::Borrowed);
        }
        let mut typed = Vec::new();
        for field in Fields::new(message) {
            match field? {
                (9, raw) => return Ok(FloatBytes::Borrowed(raw.bytes()?)),
                (4, FieldValue { wire: WireValue::Bytes(packed), .. }) => typed.extend_from_slice(packed),
                (4, FieldValue { wire: WireValue::Fixed32(number), .. }) => typed.extend_from_slice(&number),
                _ => {}
            }
        }
        if record.elements.checked_mul(4) == Some(typed.len() as u64) {
            return Ok(FloatBytes::Owned(typed));
        }
        let (name, found) = (shorten(record.name), typed.len() / 4);
        Err(format!("tensor `{name}` has {found} numbers, but its shape has {}", record.elements))
    }

    /// The external data of a tensor.
    fn external(&mut self, message: &[u8]) -> Result<&[u8], String> {
        let record = tensor::read(message)?;
        let external = record.external.ok_or("a tensor has no external data")?;
        let location = String::from_utf8_lossy(external.location).into_owned();
        let directory =
            self.directory.ok_or_else(|| format!("no directory for the weights in `{location}`"))?;
        let path = Path::new(&location);
        if !path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
            return Err(format!("weights are in `{location}`, which is outside the model's directory"));
        }
        let file = match self.files.entry(location) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(new) => {
                let file = cudock_mmap::map(&directory.join(new.key()))
                    .map_err(|error| format!("{error}: {}", error.source))?;
                new.insert(file)
            }
        };
        let range = external.end.checked_sub(record.bytes).map(|start| (start, external.end));
        let range =
            range.and_then(|(start, end)| Some(usize::try_from(start).ok()?..usize::try_from(end).ok()?));
        range.and_then(|range| file.get(range)).ok_or_else(|| {
            format!("the weights of tensor `{}` are beyond the end of their file", shorten(record.name))
        })
    }
}

/// The bytes of fp32 numbers.
type FloatBytes<'a> = std::borrow::Cow<'a, [u8]>;

/// Rounds to fp16. Numbers beyond its range become the largest of it, and numbers too close to zero the smallest: an
/// infinity or a division by zero does more harm.
fn to_half(bytes: &[u8], stats: &mut Fp16Stats) -> Vec<u8> {
    let mut converted = Vec::with_capacity(bytes.len() / 2);
    let mut numbers = [0_f32; CHUNK];
    let mut halves = [f16::ZERO; CHUNK];
    for chunk in bytes.as_chunks::<4>().0.chunks(CHUNK) {
        for (number, bytes) in numbers.iter_mut().zip(chunk) {
            *number = f32::from_le_bytes(*bytes);
        }
        halves.convert_from_f32_slice(&numbers);
        for (half, number) in halves.iter().zip(&numbers).take(chunk.len()) {
            let half = if half.is_infinite() && number.is_finite() {
                stats.clamped += 1;
                f16::MAX.copysign(*half)
            } else if *half == f16::ZERO && *number != 0.0 {
                stats.raised += 1;
                f16::MIN_POSITIVE_SUBNORMAL.copysign(*half)
            } else {
                *half
            };
            converted.extend_from_slice(&half.to_le_bytes());
        }
    }
    converted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_beyond_the_range_of_fp16_become_the_nearest_ones_in_it() {
        let cases = [
            (0.0, 0x0000),
            (-0.0, 0x8000),
            (1.0, 0x3c00),
            (65519.0, 0x7bff),
            (65520.0, 0x7bff),
            (-3.4e38, 0xfbff),
            (6.0e-8, 0x0001),
            (1.0e-12, 0x0001),
            (-1.0e-40, 0x8001),
            (f32::INFINITY, 0x7c00),
            (f32::NEG_INFINITY, 0xfc00),
        ];
        let bytes: Vec<u8> = cases.iter().flat_map(|(number, _)| f32::to_le_bytes(*number)).collect();
        let expected: Vec<u8> = cases.iter().flat_map(|(_, half)| u16::to_le_bytes(*half)).collect();
        let mut stats = Fp16Stats::default();
        assert_eq!(to_half(&bytes, &mut stats), expected);
        assert_eq!((stats.clamped, stats.raised), (2, 2));
        let nan = to_half(&f32::NAN.to_le_bytes(), &mut stats);
        assert!(f16::from_le_bytes([nan[0], nan[1]]).is_nan());
    }

    #[test]
    fn a_tensor_of_many_chunks_is_converted_completely() {
        let numbers: Vec<f32> = (0..=2048_u16).cycle().take(2 * CHUNK + 5).map(f32::from).collect();
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        let converted = to_half(&bytes, &mut Fp16Stats::default());
        let halves = converted.as_chunks().0.iter().map(|half| f16::from_le_bytes(*half).to_f32());
        assert!(halves.eq(numbers));
    }
}
