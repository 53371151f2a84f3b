//! Deployments with the built program against the stand-in for Azure.

mod exec;
mod existing;
mod leaks;
mod outputs;
mod preflight;
mod secrets;
mod sweep;
mod trouble;
mod world;
