//! How large requests may be.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimits {
    /// Maximum number of bytes of a body, after decompression.
    pub body: usize,
    /// Maximum number of dimensions of a tensor.
    pub rank: usize,
    /// Maximum number of elements of a tensor.
    pub elements: usize,
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self { body: 64 << 20, rank: 16, elements: 64 << 20 }
    }
}
