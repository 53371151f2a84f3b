//! The watcher of a container, and what it passes on.

pub mod signal;
pub(crate) mod streams;
pub(crate) mod terminal;
pub(crate) mod watch;
