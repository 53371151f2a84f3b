//! Trials on this machine: a worker process for each slot, and the program that it runs.

mod attempt;
mod follow;
pub(crate) mod gpus;
pub(crate) mod lines;
pub(crate) mod local_runner;
mod messages;
mod outbox;
mod protocol;
mod report_reader;
mod spare_dir;
pub(crate) mod trial_log;
pub(crate) mod worker;
