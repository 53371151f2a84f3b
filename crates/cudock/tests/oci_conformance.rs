//! Behaviors that the test suites of runc, youki and runtime-tools ask of a container runtime, asked of `cudock run` and
//! `cudock exec`. Each case names the case it mirrors. Like the other tests of containers they need root, control
//! groups, overlayfs and a static busybox; where one is missing they say so.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail loudly"
)]

mod containers {
    //! What the tests of `run` have already.
    #![allow(dead_code, reason = "a part of it is used here")]

    mod busybox;
    #[path = "../conformance/mod.rs"]
    mod conformance;
    mod leftovers;
    mod machine;
    mod programs;
}
mod support;
