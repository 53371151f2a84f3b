//! Outputs of a batch.

use cudock_tensor::{DType, rows_range};

/// One output of a batch, in memory that the lane's next batch will reuse.
#[derive(Clone, Debug)]
pub struct OutputView<'lane> {
    pub dtype: DType,
    pub shape: Vec<usize>,
    /// Its bytes, in the layout of [`cudock_tensor::Tensor`].
    pub data: &'lane [u8],
}

impl OutputView<'_> {
    /// Its rows `from..to`; `None` if out of range.
    pub fn rows(&self, from: usize, to: usize) -> Option<Self> {
        let data = self.data.get(rows_range(self.dtype, &self.shape, self.data, from, to)?)?;
        let mut shape = self.shape.clone();
        *shape.first_mut()? = to - from;
        Some(Self { dtype: self.dtype, shape, data })
    }
}
