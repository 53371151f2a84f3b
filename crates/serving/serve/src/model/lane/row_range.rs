//! A part of a batch.

use cudock_engine::EngineError;

/// Rows of a batch that the engine runs at once.
#[derive(Clone, Copy)]
pub(super) struct RowRange {
    pub(super) from: usize,
    pub(super) to: usize,
    /// Rows that the engine runs: as many, or more if batches are padded.
    pub(super) padded: usize,
}

impl RowRange {
    pub(super) fn len(self) -> usize {
        self.to - self.from
    }

    /// An error whose rows are counted from the beginning of the batch.
    pub(super) fn in_batch(self, error: EngineError) -> EngineError {
        let EngineError::InvalidRows(mut rows) = error else { return error };
        for invalid in &mut rows {
            invalid.row = invalid.row.saturating_add(self.from);
        }
        EngineError::InvalidRows(rows)
    }
}
