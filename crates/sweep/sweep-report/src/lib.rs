//! Views of a sweep for people and other tools: text, a live table, JSON, CSV, an HTML report, and
//! a file for Optuna.
//!
//! Every view is a function of the replayed [`Sweep`](cudock_sweep::Sweep), the ends of the logs of failed trials and the time.
//! Names of parameters and metrics, and messages of programs, are untrusted: each view escapes them for its format.

mod csv;
mod html;
mod live;
mod optuna;
mod report;
mod text;
mod values;

pub use csv::csv;
pub use html::html;
pub use live::live;
pub use optuna::optuna_journal;
pub use report::{SweepReport, report};
pub use text::{log_end, show};
