//! Formats of numbers.

use std::fmt;

/// How the numbers of a tensor are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NumberFormat {
    /// 64 bits, floating point.
    F64,
    /// 32 bits, floating point.
    F32,
    /// 16 bits with the exponent of 32.
    BF16,
    /// 16 bits, floating point.
    F16,
    /// 8 bits, floating point, of any kind.
    F8,
    /// 6 bits, floating point.
    F6,
    /// 4 bits, floating point.
    F4,
    /// Whole numbers of 64 bits: shapes and places, not weights.
    I64,
    /// Whole numbers of 32 bits.
    I32,
    /// Whole numbers of 16 bits.
    I16,
    /// Whole numbers of 8 bits.
    I8,
    /// Whole numbers of 4 bits.
    I4,
    /// Whole numbers of 2 bits.
    I2,
    /// Two floating point numbers of 32 bits.
    C64,
    /// Two floating point numbers of 64 bits.
    C128,
    /// True or false, a byte each.
    Bool,
    /// Texts.
    Text,
    /// One that is newer than this program.
    Other,
}

impl NumberFormat {
    /// Bits of one number; none if they differ or are not known.
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

    /// As people write it.
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
            Self::Other => "another format",
        }
    }

    /// What a name in `needs.precision` stands for. `tf32` is a way of computing: its numbers are kept as `fp32`.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "fp64" => Self::F64,
            "fp32" | "tf32" => Self::F32,
            "bf16" => Self::BF16,
            "fp16" => Self::F16,
            "fp8" => Self::F8,
            "fp4" => Self::F4,
            "int8" => Self::I8,
            "int4" => Self::I4,
            _ => return None,
        })
    }

    /// Whether numbers of it are floating point, and so can be kept in another such format.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F64 | Self::F32 | Self::BF16 | Self::F16 | Self::F8 | Self::F6 | Self::F4)
    }

    /// Whether tensors of it hold what was learnt, rather than shapes, places, flags or words.
    pub const fn is_weight(self) -> bool {
        !matches!(self, Self::I64 | Self::Bool | Self::Text)
    }

    /// What so many numbers take; none if that is beyond counting, or not known.
    pub fn bytes(self, elements: u64) -> Option<u64> {
        Some(elements.checked_mul(self.bits()?)?.div_ceil(8))
    }
}

impl fmt::Display for NumberFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
