//! What the tests of groups share: a machine's worth of state of its own, and images to fill it.
#![allow(missing_docs, unreachable_pub, reason = "only the tests beside it use it")]

mod ending;
mod faults;
mod foreground;
mod gpus;
mod health;
mod layout;
mod machine;
mod names;
mod networks;
mod order;
mod rootfs;
mod volumes;
