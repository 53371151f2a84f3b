//! Hostile images and programs: each test tries a known way out of a container for real, and shows that it leads nowhere.
//!
//! Beside every container lies a canary on this machine, which the attack would read or change if it worked. The attacks
//! are those of runc's advisories and of its kin; `docs/security.md` lists them with the tests below. Like the other
//! tests of containers they need root, control groups, overlayfs and a static busybox, some also a C compiler; where one
//! is missing they say so.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail loudly"
)]

mod containers {
    //! What the tests of `run` have already, such as machines of their own and a root of one busybox; and the attacks.
    #![allow(dead_code, reason = "a part of it is used here")]

    mod busybox;
    #[path = "../escapes/mod.rs"]
    mod escapes;
    mod leftovers;
    mod machine;
    mod programs;
    mod pseudo_terminal;
}
mod support;
