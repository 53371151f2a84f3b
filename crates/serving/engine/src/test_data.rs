//! Inputs that most models accept, and the numbers of outputs.

use cudock_tensor::DType;
use half::{bf16, f16};

/// Pseudo-random elements.
pub(crate) struct TestData(u64);

impl TestData {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        self.0
    }

    /// A multiple of 1/4 below one.
    pub(crate) fn quarter(&mut self) -> f32 {
        f32::from(u8::try_from(self.next() >> 62).unwrap_or(0)) / 4.0
    }

    /// A number of an approximately normal distribution: the sum of twelve even ones.
    pub(crate) fn normal(&mut self) -> f32 {
        let even = |bits: u64| f32::from(u16::try_from(bits >> 48).unwrap_or(0)) / 65536.0;
        (0..12).map(|_| even(self.next())).sum::<f32>() - 6.0
    }

    /// Appends an element: a number that `float` returns, or 0 or 1 for integers, because they are often indices.
    pub(crate) fn put(&mut self, dtype: DType, float: fn(&mut Self) -> f32, bytes: &mut Vec<u8>) {
        match dtype {
            DType::F16 => bytes.extend(f16::from_f32(float(self)).to_le_bytes()),
            DType::BF16 => bytes.extend(bf16::from_f32(float(self)).to_le_bytes()),
            DType::F32 => bytes.extend(float(self).to_le_bytes()),
            DType::F64 => bytes.extend(f64::from(float(self)).to_le_bytes()),
            DType::String => bytes.extend([1, 0, 0, 0, b'a' + self.bit()]),
            _ => {
                bytes.push(self.bit());
                bytes.extend(std::iter::repeat_n(0, dtype.size().unwrap_or(1) - 1));
            }
        }
    }

    fn bit(&mut self) -> u8 {
        u8::try_from(self.next() >> 63).unwrap_or(0)
    }
}

/// The elements as `f64`, if they are of a floating-point type.
pub(crate) fn floats(dtype: DType, bytes: &[u8]) -> Option<Vec<f64>> {
    Some(match dtype {
        DType::F16 => bytes.as_chunks().0.iter().map(|two| f16::from_le_bytes(*two).to_f64()).collect(),
        DType::BF16 => bytes.as_chunks().0.iter().map(|two| bf16::from_le_bytes(*two).to_f64()).collect(),
        DType::F32 => bytes.as_chunks().0.iter().map(|four| f32::from_le_bytes(*four).into()).collect(),
        DType::F64 => bytes.as_chunks().0.iter().map(|eight| f64::from_le_bytes(*eight)).collect(),
        _ => return None,
    })
}
