//! Python models in worker processes, with numpy only.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail loudly")]

mod faults;
mod hostile;
mod loading;
mod models;
mod support;
