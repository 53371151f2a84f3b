//! Which requests run together, and when.
//!
//! A device runs thirty rows in little more time than one, so requests should share batches; but whoever waits for
//! company that does not come has waited for nothing. The usual server has two numbers for this, a size and a delay,
//! and both are wrong at another load. A [`Batcher`] learns instead: how long batches of each size take, how soon
//! clients come back, how many there are. It dispatches at once when the device is idle and nobody is about to come,
//! collects while the device is busy, and waits only where the wait is shorter than the time a shared batch saves.
//!
//! It is a state machine: no thread, no clock, no tensor. It knows requests by [`Ticket`], is told what happens and at
//! what [`Time`], and says what a free lane is to do. So its policy is tested by simulation.
//!
//! # How it is driven
//!
//! Under one lock: [`Batcher::admit`] for each request that was read, [`Batcher::quiet`] when there is no more to read,
//! [`Batcher::cancel`] when a client leaves. A free lane asks [`Batcher::next`] and sleeps until the time it is given or
//! until it is woken: after something was admitted, after the transport became quiet, after another lane finished. It
//! reports [`Batcher::filled`] when its buffers are full and [`Batcher::finished`] when the engine is done. Whoever is
//! woken at [`Batcher::next_deadline`] answers those of [`Batcher::take_expired`]. While a model is warmed up,
//! [`Batcher::teach`] saves the first clients from being the ones it learns with.

mod average;
mod batcher;
mod hash;
mod number;
mod queue;
mod rhythm;
mod settings;
mod slab;
mod snapshot;
mod speed;
mod time;
mod work;

pub use batcher::Batcher;
pub use queue::LEVELS;
pub use settings::Settings;
pub use snapshot::{LearnedSize, Snapshot};
pub use time::Time;
pub use work::{Arrival, Batch, Next, Refusal, Ticket};
