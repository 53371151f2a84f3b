//! The services of this cloud.

pub(crate) mod activity;
mod authorization;
pub(crate) mod batch;
mod compute;
mod container_apps;
pub(crate) mod container_instances;
mod cost;
mod graph;
pub(crate) mod logic;
pub(crate) mod machine_learning;
pub(crate) mod storage;
pub(crate) mod terminal;
