//! What the tests of containers share, and the tests by what they are about.

mod busybox;
mod driver;
mod ends;
mod environment;
mod exec;
mod files;
mod gpus;
mod images;
mod leftovers;
mod limits;
mod logs;
mod machine;
mod networks;
mod oci;
mod processes;
mod programs;
mod pseudo_terminal;
mod registries;
mod restarts;
mod rights;
mod rootless;
mod signals;
mod streams;
mod terminals;
mod verbs;
mod watchers;
