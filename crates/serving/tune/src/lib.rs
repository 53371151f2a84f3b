//! Searches the settings with which a model is served fastest within a latency target.
//!
//! Each combination of settings is measured as users get it: `cudock serve` as a child process with these settings, under
//! a closed loop of clients. Which combination is tried next is decided by [`search`], which knows neither processes
//! nor clocks and is tested on generated surfaces.

mod chart;
mod options;
mod report;
pub mod search;
mod serve_space;
mod trial_server;
mod tuner;

pub use options::TuneOptions;
pub use report::TuneReport;
pub use serve_space::AxisFilter;
pub use tuner::{TuneError, tune};
