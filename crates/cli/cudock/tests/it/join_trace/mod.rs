//! Processes that join a container, held at every step while a hostile program in the container looks at them.
//!
//! A spy that races against a joining process sees some of them, mostly too late. Here the test traces the processes
//! instead: whatever is born in the container's pid namespace stops at birth and at each of its system calls, until it
//! executes the container's program, and goes on only when the spy has looked at it. Kernel state changes by system calls
//! only, and the pid namespace of a process never changes, so nothing of a join remains unseen.

mod spy;
mod tracer;

pub use spy::{Secrets, Spy, compile};
pub use tracer::{Hold, Join, Trace, Tracer};

/// Capabilities added to the container's.
pub const CAPABILITIES: [&str; 3] = ["", "SYS_PTRACE", "ALL"];

/// How many processes join in each test, under each set of capabilities.
pub fn attempts() -> usize {
    let value = std::env::var("CUDOCK_ESCAPE_ATTEMPTS").ok();
    value.map_or(20, |count| count.parse().expect("CUDOCK_ESCAPE_ATTEMPTS is a number"))
}

/// Whether a spy with these capabilities may follow the root of a process and read its memory.
pub fn may_look_inside(added: &str) -> bool {
    !added.is_empty()
}

/// Fails unless the process was looked at before it executed the container's program, and did execute it.
pub fn assert_looked_at(join: &Join, added: &str) {
    assert!(join.executed, "it never became the container's program: {join:?}");
    assert!(join.looks > 1, "it was not looked at between its birth and its program: {join:?}");
    if may_look_inside(added) {
        assert_eq!(join.deep_looks, join.looks, "the spy did not get at its root and memory: {join:?}");
    }
}
