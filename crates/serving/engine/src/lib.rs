//! The interface of engines that run models.
//!
//! A server must outlive its engine: GPU kernels fault, libraries crash, a graph can loop forever. So an engine runs in
//! a process of its own ([`IsolatedEngine`] on the server's side, [`serve_child`] on the other) and shares memory with
//! the server: tensors are written once, where the engine reads them, and a dead or hanging engine is killed and
//! restarted. Between the two is the engine's owner ([`own_engine`]), which leaves nothing behind.
//!
//! A lane is the memory of one batch (inputs and outputs), and a thread that waits for a batch to run. With several
//! lanes, one batch is filled while the engine runs another.
//!
//! An engine implements [`SharedEngine`] and [`SharedLane`] and has a settings type of its own, which is the `Kind` of
//! [`EngineSettings`]. Nothing here knows a particular engine.

mod channel;
mod child;
mod engine;
mod error;
mod independence;
mod isolated;
mod lane_memory;
mod output;
mod owner;
mod precision;
mod process;
mod test_data;
mod warm_up;
mod wire;

pub use child::serve_child;
pub use engine::{
    CancelBatch, DeviceInfo, Engine, EngineSettings, ExitCheck, Lane, Provider, SharedEngine, SharedLane,
    skip_reasons,
};
pub use error::{EngineError, InvalidRow};
pub use independence::{RowCheck, check_rows};
pub use isolated::IsolatedEngine;
pub use lane_memory::output_view::OutputView;
pub use lane_memory::{Extent, LaneMemory};
pub use output::OutputSink;
pub use owner::own_engine;
pub use precision::report::{Difference, PrecisionReport};
pub use precision::{Sample, run_sample};
pub use warm_up::warm_up;
