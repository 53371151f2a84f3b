//! Number formats.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NumberFormat {
    F64,
    F32,
    /// 16-bit floating point with the exponent of F32.
    BF16,
    F16,
    /// 8-bit floating point, in any variant.
    F8,
    F6,
    F4,
    /// Shapes and indices, not weights.
    I64,
    I32,
    I16,
    I8,
    I4,
    I2,
    /// Two 32-bit floating point numbers.
    C64,
    /// Two 64-bit floating point numbers.
    C128,
    /// Booleans, one byte each.
    Bool,
    Text,
    Other,
}

impl NumberFormat {
    /// Bits per number; none if they vary or are unknown.
    pub const fn bits(self) -> Option<u64> {
        match self {
            Self::C128 => Some(128),
            Self::F64 | Self::I64 | Self::C64 => Some(64),
            Self::F32 | Self::I32 => Some(32),
            Self::BF16 | Self::F16 | Self::I16 => Some(16),
            Self::F8 | Self::I8 | Self::Bool => Some(8),
            Self::F6 => Some(6),
            Self::F4 | Self::I4 => Some(4),
            Self::I2 => Some(2),
            Self::Text | Self::Other => None,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::F64 => "fp64",
            Self::F32 => "fp32",
            Self::BF16 => "bf16",
            Self::F16 => "fp16",
            Self::F8 => "fp8",
            Self::F6 => "fp6",
            Self::F4 => "fp4",
            Self::I64 => "int64",
            Self::I32 => "int32",
            Self::I16 => "int16",
            Self::I8 => "int8",
            Self::I4 => "int4",
            Self::I2 => "int2",
            Self::C64 => "complex64",
            Self::C128 => "complex128",
            Self::Bool => "bool",
            Self::Text => "text",
            Self::Other => "unknown format",
        }
    }

    /// Parses a name in `needs.precision`. `tf32` is a compute mode: its numbers are stored as `fp32`.
    pub fn from_name(name: &str) -> Option<Self> {
        const NAMED: [NumberFormat; 8] = {
            use NumberFormat::{BF16, F4, F8, F16, F32, F64, I4, I8};
            [F64, F32, BF16, F16, F8, F4, I8, I4]
        };
        let name = if name == "tf32" { "fp32" } else { name };
        NAMED.into_iter().find(|format| format.name() == name)
    }

    /// Whether it is a floating point format, which can be converted to another one.
    pub(crate) const fn is_float(self) -> bool {
        matches!(self, Self::F64 | Self::F32 | Self::BF16 | Self::F16 | Self::F8 | Self::F6 | Self::F4)
    }

    /// Whether tensors of this format are weights, rather than shapes, indices, flags or strings.
    pub(crate) const fn is_weight(self) -> bool {
        !matches!(self, Self::I64 | Self::Bool | Self::Text)
    }

    /// The size of `elements` numbers; none on overflow or if unknown.
    pub fn bytes(self, elements: u64) -> Option<u64> {
        Some(elements.checked_mul(self.bits()?)?.div_ceil(8))
    }
}

impl fmt::Display for NumberFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
