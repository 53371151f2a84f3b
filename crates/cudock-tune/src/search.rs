//! The search alone: which combination to try next. No I/O, no clock.

mod descent;
mod history;
mod ladder;
mod measurement;
mod space;

pub use descent::{Best, Search, SearchSettings};
pub use history::{Record, Trial};
pub use ladder::Ladder;
pub use measurement::Measurement;
pub use space::{AxisShape, Config, Space};
