//! `cudock run` and the verbs beside it with real containers, as a user types them.
//!
//! They need root, control groups, overlayfs and a static busybox, of which images are made; where one is missing they are
//! skipped. Each test has a directory and a control group of its own, and fails if anything is left in them at its end.

mod built;
pub(crate) mod busybox;
mod cgroups;
mod conformance;
mod docker_flags;
mod docker_lines;
mod driver;
mod ends;
mod environment;
mod escapes;
mod exec;
mod files;
mod gpus;
pub(crate) mod images;
mod interrupts;
mod joining;
pub(crate) mod leftovers;
mod life;
mod limits;
mod logs;
pub(crate) mod machine;
mod networks;
mod oci;
mod processes;
mod programs;
pub(crate) mod pseudo_terminal;
mod registries;
mod resolution;
mod restarts;
mod rights;
mod robustness;
mod rootless;
mod signals;
mod streams;
mod sweep;
mod terminals;
mod verbs;
mod watchers;
