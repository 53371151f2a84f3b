//! `cudock up`, `down` and `groups` with real containers, as a user types them.
//!
//! They need root and a static busybox, from which a root file system is made; where one is missing they are skipped.

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
