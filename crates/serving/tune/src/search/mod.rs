//! The search alone: which combination to try next. No I/O, no clock.

mod descent;
mod finals;
mod history;
mod ladder;
mod measurement;
mod race;
mod space;

pub use descent::{Best, Rival, Search, SearchSettings};
pub(crate) use finals::FINALISTS;
pub use history::{Record, Trial};
pub use ladder::Ladder;
pub use measurement::Measurement;
pub use space::{AxisShape, Config, Space};
