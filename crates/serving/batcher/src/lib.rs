//! Decides which requests run together, and when.
//!
//! A device runs thirty rows in little more time than one, so requests should share batches; but a request that waits
//! for others that never arrive has waited in vain. The usual server has two numbers for this, a size and a delay, and
//! both are wrong as soon as the load changes. A [`Batcher`] learns instead: how long batches of each size take, how
//! soon clients come back, how many there are. It dispatches at once when the device is idle and no request is
//! expected, collects while the device is busy, and waits only if the wait is shorter than the time that a shared
//! batch saves.
//!
//! It is a state machine without threads, clock or tensors. Requests are known by their [`Ticket`], events are passed
//! in with their [`Time`], and the result is what a free lane does next. So the policy is tested by simulation.
//!
//! # Usage
//!
//! Under one lock: call [`Batcher::admit`] for each request that was read, [`Batcher::on_reads_drained`] when there is
//! no more to read, and [`Batcher::cancel`] when a client disconnects. A free lane calls [`Batcher::next_action`] and
//! sleeps until the returned time or until it is woken, which happens after a request was admitted, after the reads
//! were drained, and after another lane finished. It reports [`Batcher::on_filled`] when its buffers are full and
//! [`Batcher::on_finished`] when the engine is done. Each time, the requests of [`Batcher::take_expired`] are to be
//! failed. [`Batcher::record_batch_time`] passes in what was measured while a model was warmed up, so that the first
//! clients do not pay for the learning.

mod arrivals;
mod batch_time;
mod batcher;
mod convert;
mod hash;
mod moving_average;
mod queue;
mod request;
mod settings;
mod time;

pub use batcher::Batcher;
pub use queue::LEVELS;
pub use request::{AdmissionError, Arrival, Batch, LaneAction, Ticket};
pub use settings::BatcherSettings;
pub use time::Time;
